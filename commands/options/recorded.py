"""The options of the system of a run, from the record of the run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from commands.options import choosing
from harness.console import plugins
from harness.errors import InputError
from harness.option_values import build

if TYPE_CHECKING:
    from results.record.record import TestInfo


def recorded_options(test: TestInfo) -> Any | None:
    """Returns the options of the system of a run; None if the system is not installed, or does not take the values any more."""
    try:
        options = choosing.chosen(plugins.SYSTEMS, test.system, by_place=False).type.Options
        return build(options, test.options)
    except (InputError, ValueError, TypeError):
        return None
