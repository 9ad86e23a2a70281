"""`labrys crash` in the JVM of the simulator: a process stands still right after a step of its disk, and loses power there."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
from click.testing import CliRunner

import cli
from clusters.sim.jvm import idle
from harness.errors import ExitCode
from tests.crashes import crashed_twice

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("without_plots")]
DEAD: Final = Path(__file__).parents[3] / "findings" / "dledger-0.4.0-dead-leader" / "plan.json"
BUT_16: Final = "1,2,4,6,7,8,9,10,11,12,13,14,15,17,18"


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


@pytest.mark.night
@pytest.mark.timeout(600)
def test_finding_16_is_met_with_late_packets(tmp_path: Path) -> None:
    """Packets of a new leader are late. A loss of its power at one of 71 steps leaves a request of a dead process."""
    words = f"crash --system dledger --nodes 3 --seed 1 --plan {DEAD} --rate 10 --down 0.05 --states 1 --jobs 1 --mend {BUT_16}"
    steps = ["--at", "write:dledger-n1/index/*", "--minutes", "9", "--store", str(tmp_path)]
    done = CliRunner().invoke(cli.labrys, [*words.split(), *steps])
    assert done.exit_code == ExitCode.INVALID, done.output
    (find,) = [line for line in done.output.splitlines() if line.startswith(str(tmp_path)) and "\t" in line]
    plan, parts, _ = find.split("\t")
    assert parts == "raft-invariants"
    idle.close_all()
    again = f"test --cluster sim --system dledger --nodes 3 --seed 1 --plan {plan} --rate 10 --mend {BUT_16},16"
    mended = CliRunner().invoke(cli.labrys, [*again.split(), "--store", str(tmp_path / "mended")])
    assert mended.exit_code in {ExitCode.VALID, ExitCode.UNKNOWN}, mended.output
