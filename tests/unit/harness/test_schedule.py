"""The schedule of faults: each fault that begins also ends, errors are recorded, and no error stops the run."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.clock import Clock, run_virtual
from harness.errors import InfrastructureError, NodeError
from harness.faults import RARE_MESSAGE, Begun, FaultRecord, Fired, PlannedFault, Proof, Sight, Trigger, lasting
from harness.history import MemoryHistory
from harness.op import NEMESIS, Op, OpType
from harness.reached import faults_effective
from harness.schedule import BEGIN_TIMEOUT_S, END_TIMEOUT_S, LOOK_TIMEOUT_S, conduct
from harness.targets import AllNodes, Named
from harness.verdict import Verdict
from nemesis.errors import FaultError

if TYPE_CHECKING:
    from collections.abc import Sequence

FOREVER_S = 10.0**6
SEEN = Proof(effective=True, reason="4 packets dropped")


def fault(number: int, start_s: float, end_s: float, kind: str = "kill") -> PlannedFault:
    """Returns a planned fault."""
    return PlannedFault(id=number, kind=kind, target=AllNodes(), start_s=start_s, end_s=end_s)


def waiting(planned: PlannedFault, limit_s: float) -> PlannedFault:
    """Returns the fault with a trigger."""
    return replace(planned, trigger=Trigger(name=RARE_MESSAGE, limit_s=limit_s))


class FakeNemesis:
    """A nemesis whose methods take a given time or fail; records its calls with their times."""

    def __init__(self, **behaviour: Any) -> None:
        self.behaviour = behaviour
        self.calls: list[tuple[str, int, float]] = []
        self.open: set[int] = set()

    async def _do(self, what: str, planned: PlannedFault) -> None:
        self.calls.append((what, planned.id, round(asyncio.get_running_loop().time(), 6)))
        behaviour = self.behaviour.get(what, 0.0)
        if isinstance(behaviour, Exception):
            raise behaviour
        await asyncio.sleep(behaviour)

    async def wait(self, planned: PlannedFault, sight: Sight) -> Fired | None:
        """Waits for the trigger."""
        await self._do("wait", planned)
        fired: Fired | None = self.behaviour.get(
            "fired", Fired(time_ns=sight.clock.now_ns(), what="after Vote from n1 to n2")
        )
        return fired

    async def begin(self, planned: PlannedFault) -> Begun:
        """Begins the fault."""
        self.open.add(planned.id)
        await self._do("begin", planned)
        return Begun(targets=("n2", "n4"), details={"grudge": {"n2": ["n4"]}})

    async def prove(self, planned: PlannedFault) -> Proof:
        """Measures."""
        seen = self.behaviour.get("prove")
        if isinstance(seen, Proof):
            return seen
        await self._do("prove", planned)
        return SEEN

    async def look_again(self, planned: PlannedFault) -> Proof | None:
        """Measures again."""
        if "again" not in self.behaviour:
            return None
        await self._do("again", planned)
        seen: Proof | None = self.behaviour.get("seen_again", SEEN)
        return seen

    async def end(self, planned: PlannedFault) -> Proof | None:
        """Ends the fault."""
        await self._do("end", planned)
        self.open.discard(planned.id)
        return self.behaviour.get("counted")

    async def heal(self) -> None:
        """Ends all faults."""
        self.open.clear()


def carry_out(
    plan: Sequence[PlannedFault],
    nemesis: FakeNemesis,
    *,
    stop_s: float = FOREVER_S,
    history: Any = None,
    in_turn: bool = False,
) -> tuple[list[FaultRecord], list[Op]]:
    """Carries out a plan in virtual time."""
    recorder = history or MemoryHistory()

    async def main() -> list[FaultRecord]:
        loop = asyncio.get_running_loop()
        stop = asyncio.Event()
        loop.call_later(stop_s, stop.set)
        return await conduct(plan, nemesis, clock=Clock(loop), history=recorder, stop=stop, in_turn=in_turn)

    return run_virtual(main()), recorder.ops


def test_a_fault_begins_is_proved_and_ends_at_its_times() -> None:
    """The record has its times, targets, details and proof."""
    planned = fault(0, 10, 25)
    nemesis = FakeNemesis(begin=0.5, prove=2.0, end=0.25)
    records, _ = carry_out([planned], nemesis)
    assert nemesis.calls == [("begin", 0, 10.0), ("prove", 0, 10.5), ("end", 0, 25.0)]
    assert records == [
        FaultRecord(
            planned=planned,
            targets=("n2", "n4"),
            start_ns=10_000_000_000,
            end_ns=25_250_000_000,
            proof=SEEN,
            details={"grudge": {"n2": ["n4"]}},
        )
    ]


def test_the_effect_is_looked_at_again_before_the_end() -> None:
    """The second look is done when the planned time is over, if it takes as long as the first. The proof has both times."""
    nemesis = FakeNemesis(begin=0.5, prove=2.0, again=2.0, end=0.25)
    (record,), ops = carry_out([fault(0, 10, 25)], nemesis)
    assert nemesis.calls == [("begin", 0, 10.0), ("prove", 0, 10.5), ("again", 0, 23.0), ("end", 0, 25.0)]
    assert record.proof is not None
    assert record.proof.effective
    assert record.proof.reason == f"{SEEN.reason} It was seen at 12.5 s, and again at 23.0 s."
    assert record.proof.measured["seen_s"] == [12.5, 23.0]
    assert ops[-1].value["reason"] == record.proof.reason


def test_an_effect_that_is_over_at_the_end_has_no_proof() -> None:
    """A supervisor that starts a killed process again is such a case. The times of a look are no claim then."""
    gone = lasting(SEEN, Proof(effective=False, reason="n2 runs again."))
    (record,), _ = carry_out([fault(0, 10, 25)], FakeNemesis(prove=1.0, again=1.0, seen_again=gone))
    assert record.proof is not None
    assert not record.proof.effective
    assert record.proof.reason == f"{SEEN.reason} But at its end: n2 runs again."


@pytest.mark.parametrize("again", [FaultError("n2 is gone"), 1000.0], ids=["an error", "no end"])
def test_a_second_look_that_fails_leaves_no_proof(again: Any) -> None:
    """The record has the reason, the fault ends at its time or soon after, and nothing claims that it lasted."""
    nemesis = FakeNemesis(prove=1.0, again=again)
    (record,), _ = carry_out([fault(0, 10, 25)], nemesis)
    assert record.proof is not None
    assert not record.proof.effective
    assert "nobody could look at it again" in record.proof.reason
    assert "second look" in str(record.error)
    assert nemesis.calls[-1][0] == "end"
    assert nemesis.calls[-1][2] <= 25 + LOOK_TIMEOUT_S


def test_a_fault_without_an_effect_is_not_looked_at_again() -> None:
    """One look without the effect suffices."""
    nemesis = FakeNemesis(prove=Proof(effective=False, reason="No."), again=1.0)
    carry_out([fault(0, 10, 25)], nemesis)
    assert "again" not in [what for what, _, _ in nemesis.calls]


@pytest.mark.parametrize(("wait_s", "begin_s", "end_s"), [(1.5, 11.5, 21.5), (5.0, 15.0, 25.0)])
def test_a_fault_that_waits_begins_with_the_message(wait_s: float, begin_s: float, end_s: float) -> None:
    """It lasts as long as planned after that, and its record has the message."""
    nemesis = FakeNemesis(wait=wait_s)
    (record,), ops = carry_out([waiting(fault(0, 10, 25), 5.0)], nemesis)
    assert [call for call in nemesis.calls if call[0] != "prove"] == [
        ("wait", 0, 10.0),
        ("begin", 0, begin_s),
        ("end", 0, end_s),
    ]
    assert record.start_ns == begin_s * 1e9 == ops[0].time_ns
    assert record.details == {"grudge": {"n2": ["n4"]}}
    assert record.fired == Fired(time_ns=round(begin_s * 1e9), what="after Vote from n1 to n2")
    assert record.error is None


def test_a_fault_whose_trigger_does_not_fire_never_begins() -> None:
    """Its record has no proof and no duration, so the part about its kind is unknown. It is no event of the history."""
    nemesis = FakeNemesis(wait=5.0, fired=None)
    planned = waiting(fault(0, 10, 25), 5.0)
    (record,), ops = carry_out([planned], nemesis)
    assert nemesis.calls == [("wait", 0, 10.0)]
    assert ops == []
    assert record == FaultRecord(
        planned=planned,
        targets=(),
        start_ns=15_000_000_000,
        end_ns=15_000_000_000,
        proof=None,
        error="it never began, because its trigger rare-message did not fire in 5 s",
    )
    part = faults_effective([record], [planned])
    assert part.verdict is Verdict.UNKNOWN
    assert "its trigger rare-message did not fire" in part.reason


def test_a_fault_whose_trigger_fails_never_begins() -> None:
    """The record has the error of the trigger."""
    (record,), ops = carry_out([waiting(fault(0, 10, 25), 5.0)], FakeNemesis(wait=NodeError("n1", "is gone")))
    assert (record.proof, record.error, ops) == (None, "its wait failed: n1: is gone", [])


def test_a_run_that_stops_during_a_wait_has_no_fault() -> None:
    """The fault never began, so there is no record of it."""
    nemesis = FakeNemesis(wait=4.0)
    assert carry_out([waiting(fault(0, 10, 25), 5.0)], nemesis, stop_s=12.0) == ([], [])
    assert nemesis.calls == [("wait", 0, 10.0)]


def test_a_fault_in_turn_waits_too() -> None:
    """The next one begins at its own time, and each lasts as long as planned without its wait."""
    nemesis = FakeNemesis(wait=1.0)
    plan = [waiting(fault(0, 1, 8), 4.0), waiting(fault(1, 10, 15), 2.0)]
    carry_out(plan, nemesis, in_turn=True)
    assert [call for call in nemesis.calls if call[0] in {"begin", "end"}] == [
        ("begin", 0, 2.0),
        ("end", 0, 5.0),
        ("begin", 1, 11.0),
        ("end", 1, 14.0),
    ]


def test_a_fault_leaves_two_events_at_each_end() -> None:
    """They are infos of the nemesis, before and after the commands. The last one has the proof."""
    _, ops = carry_out([fault(3, 1, 5)], FakeNemesis(begin=0.5, end=0.5))
    assert [(op.time_ns / 1e9, op.f, op.value) for op in ops] == [
        (1.0, "start-kill", {"fault": 3, "targets": []}),
        (1.5, "start-kill", {"fault": 3, "targets": ["n2", "n4"]}),
        (5.0, "stop-kill", {"fault": 3, "targets": ["n2", "n4"]}),
        (5.5, "stop-kill", {"fault": 3, "targets": ["n2", "n4"], "effective": True, "reason": SEEN.reason}),
    ]
    assert {(op.type, op.process) for op in ops} == {(OpType.INFO, NEMESIS)}


def test_named_targets_are_known_from_the_first_event() -> None:
    """The plan already has the names."""
    _, ops = carry_out(
        [replace(fault(0, 1, 2), target=Named(("n1", "n3")))], FakeNemesis(begin=InfrastructureError("no"))
    )
    assert [op.value["targets"] for op in ops] == [["n1", "n3"]] * 3


def test_faults_in_turn_begin_at_their_times() -> None:
    """A fault lasts as long as planned after its start, and a fault that ends in the planned pause delays nothing."""
    nemesis = FakeNemesis(begin=0.5, prove=1.0, end=4.0)
    records, _ = carry_out([fault(0, 1, 5), fault(1, 10, 15), fault(2, 20, 25)], nemesis, in_turn=True)
    assert [call for call in nemesis.calls if call[0] != "prove"] == [
        ("begin", 0, 1.0),
        ("end", 0, 5.5),
        ("begin", 1, 10.0),
        ("end", 1, 15.5),
        ("begin", 2, 20.0),
        ("end", 2, 25.5),
    ]
    assert [record.planned.id for record in records] == [0, 1, 2]


def test_faults_in_turn_with_the_same_times_go_together() -> None:
    """They are one turn: both begin after the end of the one before, and the next one waits for both."""
    nemesis = FakeNemesis(end=7.0)
    carry_out([fault(0, 1, 5), fault(1, 10, 15), fault(2, 10, 15), fault(3, 20, 25)], nemesis, in_turn=True)
    assert [call for call in nemesis.calls if call[0] != "prove"] == [
        ("begin", 0, 1.0),
        ("end", 0, 5.0),
        ("begin", 1, 17.0),
        ("begin", 2, 17.0),
        ("end", 1, 22.0),
        ("end", 2, 22.0),
        ("begin", 3, 34.0),
        ("end", 3, 39.0),
    ]


def test_faults_in_turn_wait_for_a_late_end() -> None:
    """The next fault begins the planned pause after the late end, lasts as long as planned, and catches up if it can."""
    nemesis = FakeNemesis(prove=1.0, end=7.0)
    plan = [fault(0, 1, 5), fault(1, 10, 15), fault(2, 40, 45)]
    carry_out(plan, nemesis, in_turn=True)
    assert [call for call in nemesis.calls if call[0] != "prove"] == [
        ("begin", 0, 1.0),
        ("end", 0, 5.0),
        ("begin", 1, 17.0),
        ("end", 1, 22.0),
        ("begin", 2, 40.0),
        ("end", 2, 45.0),
    ]


def test_the_proof_of_a_fault_in_turn_has_the_planned_time() -> None:
    """A slow start, or a late end of the fault before, costs no proof."""
    nemesis = FakeNemesis(begin=15.0, end=20.0, prove=3.0)
    records, _ = carry_out([fault(0, 1, 5), fault(1, 6, 10)], nemesis, in_turn=True)
    assert [record.proof for record in records] == [SEEN, SEEN]
    assert [(record.start_ns, record.end_ns) for record in records] == [
        (1_000_000_000, 40_000_000_000),
        (41_000_000_000, 80_000_000_000),
    ]


def test_no_fault_in_turn_begins_after_the_end_of_the_run() -> None:
    """The faults that still wait for their turn then have no record."""
    nemesis = FakeNemesis(end=20.0)
    records, _ = carry_out([fault(0, 1, 5), fault(1, 6, 10), fault(2, 11, 15)], nemesis, stop_s=12, in_turn=True)
    assert [record.planned.id for record in records] == [0]
    assert nemesis.open == set()


def test_overlapping_faults_do_not_wait_for_each_other() -> None:
    """The records are in the order of the plan."""
    nemesis = FakeNemesis(begin=2.0, end=3.0)
    records, _ = carry_out([fault(0, 0, 20), fault(1, 1, 4), fault(2, 1, 5)], nemesis)
    assert [(call, number, time_s) for call, number, time_s in nemesis.calls if call != "prove"] == [
        ("begin", 0, 0.0),
        ("begin", 1, 1.0),
        ("begin", 2, 1.0),
        ("end", 1, 4.0),
        ("end", 2, 5.0),
        ("end", 0, 20.0),
    ]
    assert [record.planned.id for record in records] == [0, 1, 2]


def test_a_proof_that_counts_the_whole_time_replaces_the_first() -> None:
    """The proof of `end` replaces that of `prove`."""
    counted = Proof(effective=True, reason="900 packets dropped")
    records, _ = carry_out([fault(0, 1, 5)], FakeNemesis(counted=counted))
    assert records[0].proof == counted


@pytest.mark.parametrize("error", [NodeError("n2", "no route to host"), ValueError("a bug")])
def test_a_fault_whose_start_failed_is_ended(error: Exception) -> None:
    """It may have begun in part. Its record has an error and no proof."""
    nemesis = FakeNemesis(begin=error, counted=SEEN)
    records, _ = carry_out([fault(0, 1, 5), fault(1, 8, 9, "pause")], nemesis)
    assert [call for call, number, _ in nemesis.calls if number == 0] == ["begin", "end"]
    assert nemesis.open == set()
    assert records[0].proof is None
    assert str(error) in (records[0].error or "")
    assert (records[0].error or "").startswith("its start failed")
    assert len(records) == 2


def test_a_fault_whose_proof_failed_is_not_effective() -> None:
    """The record has the error."""
    records, _ = carry_out([fault(0, 1, 5)], FakeNemesis(prove=NodeError("n2", "gone")))
    assert records[0].proof is not None
    assert not records[0].proof.effective
    assert records[0].error == "its proof failed: n2: gone"


def test_a_proof_is_bounded_by_the_fault_s_end() -> None:
    """A measurement never prolongs a fault."""
    nemesis = FakeNemesis(prove=FOREVER_S)
    records, _ = carry_out([fault(0, 1, 5)], nemesis)
    assert nemesis.calls[-1] == ("end", 0, 5.0)
    assert records[0].proof is not None
    assert not records[0].proof.effective
    assert records[0].error == "its proof took longer than 4 s"


def test_a_deadline_is_a_number_that_people_can_read() -> None:
    """What is left of a fault after a slow start has many digits, of which three are told."""
    records, _ = carry_out([fault(0, 1, 1.0548462)], FakeNemesis(prove=FOREVER_S))
    assert records[0].error == "its proof took longer than 0.0548 s"


def test_a_start_that_takes_the_whole_fault_leaves_no_time_for_a_proof() -> None:
    """The fault ends at once, and the error names both times."""
    nemesis = FakeNemesis(begin=6.0)
    records, _ = carry_out([fault(0, 1, 5)], nemesis)
    assert [call for call, _, _ in nemesis.calls] == ["begin", "end"]
    assert records[0].proof is not None
    assert not records[0].proof.effective
    expected = "its start took 6.0 s, and 4.0 s were planned for it and its proof; plan longer faults with --fault-on"
    assert records[0].error == expected


def test_the_error_of_an_end_is_recorded() -> None:
    """The proof stays."""
    records, _ = carry_out([fault(0, 1, 5)], FakeNemesis(end=NodeError("n4", "still cut off")))
    assert records[0].proof == SEEN
    assert records[0].error == "its end failed: n4: still cut off"


def test_a_nemesis_that_hangs_is_not_waited_for() -> None:
    """The start and the end have their own time limits."""
    records, ops = carry_out([fault(0, 1, 5)], FakeNemesis(begin=FOREVER_S, end=FOREVER_S))
    assert records[0].end_ns / 1e9 == pytest.approx(1 + BEGIN_TIMEOUT_S + END_TIMEOUT_S)
    assert records[0].error == "its start took longer than 30 s; its end took longer than 60 s"
    assert [op.f for op in ops] == ["start-kill", "stop-kill", "stop-kill"]


def test_stopping_ends_all_open_faults_and_begins_no_other() -> None:
    """A running proof is cut short, and a fault that never began has no record."""
    nemesis = FakeNemesis(prove=60.0)
    records, _ = carry_out([fault(0, 1, 500), fault(1, 5, 600), fault(2, 50, 60)], nemesis, stop_s=10)
    assert [call for call in nemesis.calls if call[0] == "end"] == [("end", 0, 10.0), ("end", 1, 10.0)]
    assert [record.planned.id for record in records] == [0, 1]
    assert records[0].error == "its proof was cut short by the end of the run"


def test_stopping_does_not_cut_a_start_short() -> None:
    """The fault begins, and then ends at once."""
    nemesis = FakeNemesis(begin=5.0)
    records, _ = carry_out([fault(0, 1, 500)], nemesis, stop_s=2)
    assert nemesis.calls[-1] == ("end", 0, 6.0)
    assert records[0].targets == ("n2", "n4")


class BrokenHistory(MemoryHistory):
    """A history whose disk is full."""

    def append(self, **_: Any) -> Op:
        """Raises."""
        raise InfrastructureError("the disk is full")


def test_a_history_that_cannot_be_written_does_not_keep_faults_open() -> None:
    """The faults are healed without records."""
    nemesis = FakeNemesis()
    records, _ = carry_out([fault(0, 1, 5)], nemesis, history=BrokenHistory())
    assert nemesis.open == set()
    assert "recording its start failed: the disk is full" in (records[0].error or "")


def test_a_cancellation_keeps_the_records() -> None:
    """The record of each open fault has an error."""
    records: list[FaultRecord] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()
        task = asyncio.create_task(
            conduct(
                [fault(0, 1, 500), fault(1, 100, 200)],
                FakeNemesis(),
                clock=Clock(loop),
                history=MemoryHistory(),
                stop=asyncio.Event(),
                records=records,
            )
        )
        await asyncio.sleep(10)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run_virtual(main())
    assert [(record.planned.id, record.error) for record in records] == [
        (0, "the run ended before this fault was over")
    ]


TIMES = st.floats(0, 5)
BEHAVIOURS = st.one_of(TIMES, st.just(FOREVER_S), st.just(NodeError("n1", "gone")))


@settings(deadline=None)
@given(
    begin=BEHAVIOURS,
    prove=BEHAVIOURS,
    end=TIMES,
    spans=st.lists(st.tuples(st.floats(0, 50), st.floats(0, 20)), max_size=6),
    stop_s=st.floats(0, 80),
)
def test_no_fault_stays_open(begin: Any, prove: Any, end: Any, spans: list[tuple[float, float]], stop_s: float) -> None:
    """In random plans, each fault that begins ends once and has one record; others have none."""
    plan = [fault(number, start_s, start_s + length_s) for number, (start_s, length_s) in enumerate(spans)]
    nemesis = FakeNemesis(begin=begin, prove=prove, end=end)
    records, ops = carry_out(plan, nemesis, stop_s=stop_s)
    begun = sorted(number for call, number, _ in nemesis.calls if call == "begin")
    ended = sorted(number for call, number, _ in nemesis.calls if call == "end")
    assert begun == ended == [record.planned.id for record in records]
    assert nemesis.open == set()
    assert all(record.start_ns <= record.end_ns for record in records)
    assert [op.time_ns for op in ops] == sorted(op.time_ns for op in ops)
