"""JVMs between two runs: a broken one is ended, and its files are removed."""

from __future__ import annotations

import pytest

from clusters.sim.jvm import idle
from harness.errors import InfrastructureError


def test_a_broken_jvm_has_no_further_run() -> None:
    """A program that has ended cannot end its run. The next run gets another one."""
    broken = idle.take(["true"])
    assert broken.directory.is_dir()
    with pytest.raises(
        InfrastructureError, match="the JVM of the simulator ended with status 0; it has printed nothing"
    ):
        idle.give_back(broken)
    assert not broken.directory.exists()
    other = idle.take(["true"])
    assert other is not broken
    with pytest.raises(InfrastructureError):
        idle.give_back(other)


def test_a_program_that_cannot_start() -> None:
    """The error names it, and no folder stays."""
    before = set(idle.MEMORY.glob("labrys-sim-*"))
    with pytest.raises(InfrastructureError, match="cannot start /nonexistent/java: No such file or directory"):
        idle.take(["/nonexistent/java"])
    assert set(idle.MEMORY.glob("labrys-sim-*")) <= before
