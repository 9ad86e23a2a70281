"""Commands start fast: help, lists and errors in options come without the libraries that only a run or its judges need."""

from __future__ import annotations

import subprocess
import sys

import pytest

from harness.errors import ExitCode

HEAVY = frozenset(
    {
        "checker.decide.decision",
        "checker._kernel",
        "fabric",
        "jinja2",
        "matplotlib",
        "networkx",
        "numpy",
        "pandas",
        "paramiko",
        "py4j",
        "pyarrow",
        "pyspark",
        "rich",
        "urllib.request",
    }
)
FAULTS = frozenset({"nemesis.kinds", "nemesis.plan", "nemesis.planfile"})
SCRIPT = f"""
import contextlib, io, sys
import cli
code = 0
with contextlib.redirect_stdout(io.StringIO()):
    try:
        cli.main(sys.argv[1:])
    except SystemExit as end:
        code = end.code
print(int(code or 0), *sorted(sys.modules.keys() & set({sorted(HEAVY | FAULTS)!r})))
"""


def started(*words: str) -> tuple[int, set[str]]:
    """Carries out a command line in a process of its own; returns its exit code, and the named modules that it imported."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, *words], capture_output=True, text=True, check=True, timeout=60
    )
    code, *imported = done.stdout.split()
    return int(code), {*imported}


@pytest.mark.parametrize(
    "words",
    [
        ("--help",),
        ("--version",),
        *((command, "--help") for command in ("analyze", "check", "hunt", "plan", "suite", "test")),
        ("test", "--workload", "log", "--help"),
        ("faults",),
        ("systems",),
        ("workloads",),
    ],
    ids=" ".join,
)
def test_help_and_lists_bring_nothing_heavy(words: tuple[str, ...]) -> None:
    """They import the systems, workloads and kinds of faults, but no judge, no library of arrays, plots or shells."""
    code, imported = started(*words)
    assert code == ExitCode.VALID
    assert not imported & HEAVY


@pytest.mark.parametrize("words", [("--nope",), ("test", "--nope"), ("test", "--rate", "fast")], ids=" ".join)
def test_an_error_in_options_brings_nothing_heavy(words: tuple[str, ...]) -> None:
    """An error in the options comes before what a run needs is imported."""
    code, imported = started(*words)
    assert code == ExitCode.BAD_ARGUMENTS
    assert not imported & HEAVY


@pytest.mark.parametrize("words", [("--help",), ("test", "--help"), ("check", "--help")], ids=" ".join)
def test_help_needs_no_faults(words: tuple[str, ...]) -> None:
    """Help of other commands than those about faults does not import their kinds."""
    assert not started(*words)[1] & FAULTS
