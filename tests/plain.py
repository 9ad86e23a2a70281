"""The plain command of a system and a workload on real nodes, for some seconds."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest

import cli
from commands.options.choosing import Chosen, installed
from harness.console import plugins
from harness.errors import ExitCode
from tests.software import obtained

if TYPE_CHECKING:
    from pathlib import Path

USUAL_S = 8


def get(system: Any) -> None:
    """Gets the software of a system with its default options."""
    packages = getattr(sys.modules[system.__module__], "PACKAGES", None)
    if packages is not None:
        packages.fetch()
    elif system.builds():
        system.build(system.Options(), lambda _: None)


def assert_the_plain_command_is_fair(
    store: Path, capsys: pytest.CaptureFixture[str], system: str, workload: str, *nodes: str, seconds: int = USUAL_S
) -> None:
    """Asserts that a healthy system is valid with default options. The test is skipped if its software cannot be had."""
    chosen = dict(installed(plugins.SYSTEMS))[system]
    assert isinstance(chosen, Chosen), chosen
    obtained(system, lambda: get(chosen.type))
    words = ("--system", system, "--workload", workload, "--seed", "7", "--time-limit", str(seconds))
    with pytest.raises(SystemExit) as ended:
        cli.main(["test", *words, *nodes, "--store", str(store)])
    out = capsys.readouterr().out
    assert ended.value.code == ExitCode.VALID, out
    assert out.splitlines()[1].startswith("  Tested: ")
