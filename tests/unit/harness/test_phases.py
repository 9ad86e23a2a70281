"""The phases of a run are measured, on one axis, and the operations are handed over before the run is over."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from harness.clock import run_virtual
from harness.history import MemoryHistory
from harness.load import ClosedLoop
from harness.phases import Phase, Phases, beside_workload_s
from harness.run import RunResult, go
from harness.test import Test
from tests.unit.harness.test_run import Cluster, Nemesis, Registers, Screen, Writes

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from harness.node import Node
    from harness.service import ReplicaState


class Slow(Registers):
    """Needs 3 s to start, 1 s to lead and 2 s for each dump."""

    async def until_ready(self, nodes: Any, timeout_s: float) -> None:
        """Is ready after 3 s at the first start."""
        await asyncio.sleep(0.0 if "begin 0" in self.calls or "ready?" in self.calls else 3.0)
        await super().until_ready(nodes, timeout_s)

    async def lead_promptly(self, node: Node, timeout_s: float) -> bool:
        """Moves the leadership in 1 s."""
        await asyncio.sleep(1.0)
        return await self.lead(node, timeout_s)

    async def replica(self, node: Node, timeout_s: float) -> ReplicaState:
        """Needs 2 s."""
        await asyncio.sleep(2.0)
        return await super().replica(node, timeout_s)


def carried_out(system: Registers, tmp_path: Path, **given: Any) -> tuple[RunResult, Phases]:
    """Runs 2 s of writes in virtual time, and measures the phases in that time."""
    values: dict[str, Any] = {
        "seed": 1,
        "cluster": Cluster(),
        "system": system,
        "workload": Writes(),
        "nemesis": Nemesis(system.calls),
        "plan": (),
        "load": ClosedLoop(concurrency=2),
        "time_limit_s": 2.0,
        "operation_timeout_s": 1.0,
    }
    measured: list[Phases] = []

    async def whole() -> RunResult:
        phases = Phases(asyncio.get_running_loop().time)
        measured.append(phases)
        return await go(
            Test(**values), history=MemoryHistory(), logs_dir=tmp_path, observer=Screen(), phases=phases, **given
        )

    return run_virtual(whole()), measured[0]


def test_each_phase_has_its_time(tmp_path: Path) -> None:
    """The final reads have one phase for each node, with the move of the leadership, also for a node that could not lead."""
    _, phases = carried_out(Slow(), tmp_path)

    took = {(phase.name, phase.node): phase.seconds for phase in phases.done}
    assert {name for name, _ in took} == {
        "install", "start", "workload", "heal", "recover", "final reads", "compare replicas", "collect logs", "stop"
    }  # fmt: skip
    assert took["start", None] == pytest.approx(3.0)
    assert took["workload", None] == pytest.approx(2.0, abs=0.2)
    assert took["compare replicas", None] == pytest.approx(2.0)
    # A move of 1 s and a read of a tenth of a second; n3 never leads within its 15 s.
    assert took["final reads", "n1"] == took["final reads", "n2"] == pytest.approx(1.1)
    assert took["final reads", "n3"] == pytest.approx(16.0)
    starts = [phase.start_s for phase in phases.done]
    assert starts == sorted(starts)
    beside_s = beside_workload_s(phases.done)
    assert beside_s == pytest.approx(3.0 + 1.1 + 1.1 + 16.0 + 2.0, abs=0.3)


def test_the_operations_can_be_judged_while_the_run_goes_on(tmp_path: Path) -> None:
    """They are handed over after the last read, before the replicas are compared, the logs collected and the nodes stopped."""
    system = Slow()
    seen: list[tuple[RunResult, float, int, list[str]]] = []

    def recorded(result: RunResult) -> None:
        assert result.final_reads is not None
        seen.append((result, asyncio.get_running_loop().time(), len(result.final_reads.through), list(system.calls)))

    result, phases = carried_out(system, tmp_path, recorded=recorded)

    ((early, at_s, through, calls),) = seen
    assert early is result
    assert through == 2
    assert calls.count("stop n1") == 1  # before the installation only
    ends = {phase.name: phase.end_s for phase in phases.done}
    assert at_s == pytest.approx(ends["final reads"])
    assert at_s + 2.0 == pytest.approx(ends["compare replicas"])
    assert result.replicas is not None


def test_a_run_that_breaks_off_hands_nothing_over(tmp_path: Path) -> None:
    """The operations of such a run are judged after it."""

    class Broken(Slow):
        """Has a defect that its wait shows."""

        async def until_ready(self, nodes: Sequence[Node], timeout_s: float) -> None:
            """Raises at the second wait."""
            await super().until_ready(nodes, timeout_s)
            if self.calls.count("ready?") > 1:
                raise ZeroDivisionError("oops")

    seen: list[RunResult] = []

    result, phases = carried_out(Broken(), tmp_path, recorded=seen.append)

    assert result.error is not None
    assert "ZeroDivisionError: oops" in result.error
    assert seen == []
    assert "stop" in {phase.name for phase in phases.done}


def test_phases_that_overlap_count_once() -> None:
    """The time beside the workload is from the first start to the last end, without the workload."""
    phases = [
        Phase(name="start", start_s=0.0, end_s=3.0),
        Phase(name="workload", start_s=3.0, end_s=63.0),
        Phase(name="judge", start_s=64.0, end_s=70.0),
        Phase(name="stop", start_s=65.0, end_s=66.0),
    ]
    assert beside_workload_s(phases) == pytest.approx(10.0)
    assert beside_workload_s([]) is None


def test_a_phase_that_fails_is_measured_too() -> None:
    """An error ends the phase, and passes on."""
    now = iter([0.0, 1.0, 4.0])
    phases = Phases(lambda: next(now))
    with pytest.raises(ValueError, match="no"), phases.during("install"):
        raise ValueError("no")
    assert phases.done == [Phase(name="install", start_s=1.0, end_s=4.0)]
