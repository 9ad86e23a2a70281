"""`labrys crash` in the JVM of the simulator: a process stands still right after a step of its disk, and loses power there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

import cli
from harness.errors import ExitCode
from tests.crashes import crashed_twice

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("without_plots")]


@pytest.mark.parametrize(
    ("nth", "call", "options"),
    [
        (1, "write", {"lost": "all"}),
        pytest.param(2, "sync", {"lost": "none"}, marks=pytest.mark.night),
        (3, "write", {"lost": "1", "torn": True}),
    ],
)
def test_a_loss_of_power_at_a_step_repeats(tmp_path: Path, nth: int, call: str, options: dict[str, str | bool]) -> None:
    """The same step of the same seed gives the same operations."""
    one, two = crashed_twice(tmp_path, "dledger", nth, call, options)
    assert one.operations == two.operations


def test_finding_21_is_met_in_the_first_try(tmp_path: Path) -> None:
    """A node that loses its power while it makes a file of its log never starts again."""
    words = "crash --system dledger --nodes 3 --seed 5 --time-limit 2.5 --rate 1 --down 0.5 --states 1 --jobs 1"
    done = CliRunner().invoke(cli.labrys, [*words.split(), "--store", str(tmp_path)])
    assert done.exit_code == ExitCode.INVALID, done.output
    (find,) = [line for line in done.output.splitlines() if line.startswith(str(tmp_path)) and "\t" in line]
    _, parts, told = find.split("\t")
    assert parts == "recovered,log-patterns"
    assert "create dledger-" in told
