"""Labrys measures whether the control node is behind, and then a missed deadline is not a finding."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import pytest

from harness import pace as pace_module
from harness.clock import Clock, run_virtual
from harness.pace import MAX_LAG_S, MIN_TICKS, Pace, Pacer, processor_ticks
from harness.reached import control_node, recovered
from harness.recovery import Recovery
from harness.verdict import Verdict

if TYPE_CHECKING:
    from pathlib import Path

FINE = Pace(seconds=40.0, worst_lag_s=0.01, late_s=0.1, steal_share=0.02)
STOOD_STILL = Pace(seconds=40.0, worst_lag_s=MAX_LAG_S, late_s=2.0, steal_share=None)
LATE = Pace(seconds=40.0, worst_lag_s=0.5, late_s=9.0, steal_share=None)
STOLEN = Pace(seconds=40.0, worst_lag_s=0.01, late_s=0.1, steal_share=0.4)

WORKED = Recovery(seconds=3.0, restarted=False, first_error=None, error=None, quorum=2, nodes=3)
RESTARTED = Recovery(seconds=33.0, restarted=True, first_error="no leader", error=None, quorum=2, nodes=3)
GONE = Recovery(seconds=60.0, restarted=True, first_error="no leader", error="no leader", quorum=2, nodes=3)


@pytest.mark.parametrize("recovery", [RESTARTED, GONE])
@pytest.mark.parametrize("pace", [STOOD_STILL, LATE, STOLEN])
def test_a_missed_deadline_while_the_control_node_is_behind_is_unknown(recovery: Recovery, pace: Pace) -> None:
    """The reason has the measurement, and the details stay the same."""
    part = recovered(recovery, pace)
    assert (part.verdict, part.decides) == (Verdict.UNKNOWN, True)
    assert part.reason.startswith(recovered(recovery).reason)
    assert pace.behind is not None
    assert pace.behind in part.reason
    assert part.details == recovered(recovery).details


@pytest.mark.parametrize("recovery", [WORKED, RESTARTED, GONE, None])
def test_a_control_node_that_kept_up_changes_nothing(recovery: Recovery | None) -> None:
    """A missing measurement changes nothing either. A system that recovered in time is valid on any machine."""
    assert recovered(recovery, FINE) == recovered(recovery) == recovered(recovery, None)
    if recovery in {WORKED, None}:
        assert recovered(recovery, STOLEN) == recovered(recovery)


def test_the_part_of_the_control_node() -> None:
    """Its reason has the stage and the figure. It is an extra part, so it alone makes no run unknown."""
    part = control_node({"workload": FINE, "recovery": FINE})
    assert (part.verdict, part.extra) == (Verdict.VALID, True)
    assert part.details["workload"]["steal_share"] == 0.02
    part = control_node({"workload": STOLEN, "recovery": STOOD_STILL})
    assert (part.verdict, part.decides) == (Verdict.UNKNOWN, False)
    assert "in the stage workload, the hypervisor took 40% of its processor time" in part.reason
    assert "in the stage recovery, its event loop stood still for 2.0 s" in part.reason


def test_a_loop_that_stands_still_is_measured() -> None:
    """A block of the loop delays its timers by the same time."""

    async def main() -> Pace:
        pacer = Pacer(ticks=lambda: None)
        with pacer.stage("workload", Clock(asyncio.get_running_loop())):
            await asyncio.sleep(0.01)
            time.sleep(0.6)  # noqa: ASYNC251 - the fault that is measured
            await asyncio.sleep(0.01)
        return pacer.stages["workload"]

    measured = asyncio.run(main())
    assert 0.3 < measured.worst_lag_s <= measured.late_s
    assert measured.seconds > 0.6


def test_virtual_time_is_never_late() -> None:
    """A simulated hour is not late. A stage with an error is measured, and the error is raised."""

    async def main() -> dict[str, Pace]:
        pacer = Pacer(ticks=iter([(0, 0), (MIN_TICKS - 1, 400), (1000, 0), (2000, 400)]).__next__)
        clock = Clock(asyncio.get_running_loop())

        async def broken_off() -> None:
            with pacer.stage("workload", clock):
                await asyncio.sleep(3600)
                raise ValueError("x")

        with pytest.raises(ValueError, match="x"):
            await broken_off()
        with pacer.stage("recovery", clock):
            await asyncio.sleep(1)
        return pacer.stages

    stages = run_virtual(main())
    assert (stages["workload"].worst_lag_s, stages["workload"].behind) == (0.0, None)
    assert (stages["workload"].seconds, stages["workload"].steal_share) == (3600.0, None)
    assert stages["recovery"].steal_share == 0.4


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("cpu  1 2 3 4 5 6 7 8 9 10\ncpu0 1\n", (36, 8)),
        ("cpu 1 2 3\n", None),
        ("", None),
        ("cpu a b c d e f g h\n", None),
    ],
)
def test_the_stolen_time_comes_from_the_kernel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, expected: tuple[int, int] | None
) -> None:
    """Guest time is in user time already, so it does not count twice. A malformed line gives None."""
    monkeypatch.setattr(pace_module, "STAT", tmp_path / "stat")
    assert processor_ticks() is None
    (tmp_path / "stat").write_text(text)
    assert processor_ticks() == expected
