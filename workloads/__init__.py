"""Workloads: a generator, a model and a checker that belong together.

A workload is found by its name. Its module is imported when it is asked for, since it may bring a checker that `--help` does
not need.
"""

from __future__ import annotations

import importlib
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from harness.errors import InputError
from harness.suggest import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness.workload import Workload

# Name to `module:function`; the function makes the workload of the options that a command line gave.
FACTORIES: Mapping[str, str] = MappingProxyType({"register": "workloads.register:from_options"})


def make(name: str, options: Mapping[str, Any]) -> Workload:
    """Makes a workload.

    Args:
        name: As on the command line.
        options: All options of the command by parameter name; a workload takes its own from them.

    Raises:
        InputError: There is no workload of this name, or it cannot be what the options say.
    """
    if name not in FACTORIES:
        raise InputError(f"there is no workload {name!r}. {did_you_mean(name, FACTORIES)}")
    module, _, function = FACTORIES[name].partition(":")
    workload: Workload = getattr(importlib.import_module(module), function)(options)
    return workload
