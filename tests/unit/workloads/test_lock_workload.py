"""The operations of the lock workload, and the parts of its verdict."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from harness.declare import click_options
from harness.errors import InputError
from harness.final_reads import FinalReads
from harness.history import pair
from harness.load import ClosedLoop, OpenLoop
from harness.node import Node
from harness.op import FINAL_PHASE, Fail, Info, Invocation, Ok, OpType, Outcome
from harness.option_values import build
from harness.testing import simulate
from harness.verdict import Verdict
from harness.workload import Observed
from tests.unit.workloads.histories import done
from tests.unit.workloads.streams import described, drawn, in_turns
from workloads.lock import LockOptions, LockWorkload

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness.load import Load
    from harness.op import Op

NODE = Node(name="n1", address="10.0.0.1")
NS_PER_MS = 1_000_000


class Locks:
    """Correct locks with tokens; sometimes an answer is lost."""

    def __init__(self, lost: int = 10**9) -> None:
        self.holders: dict[str | None, int] = {}
        self.asked = 0
        self._lost = lost

    def __call__(self, process: int, invocation: Invocation) -> Outcome:
        """Answers a request of a process."""
        self.asked += 1
        holder = self.holders.get(invocation.key)
        if invocation.f == "acquire":
            if holder is not None:
                return Fail("held")
            self.holders[invocation.key] = process
        else:
            if holder != process:
                return Fail("not-held")
            del self.holders[invocation.key]
        return Info("no-answer") if self.asked % self._lost == 0 else Ok(self.asked)


def turns(number: int, count: int, options: LockOptions | None = None) -> list[Invocation]:
    """Returns the first turns of a stream, with the times of the holds."""
    return drawn(LockWorkload(options), number, count, preview=True)


def test_the_nth_turn_depends_on_seed_stream_and_n_alone() -> None:
    """The n-th turn of a stream does not depend on other streams or on the number of turns."""
    turns = in_turns(LockWorkload(), [0, 1] * 100, streams=4)
    assert turns == {number: drawn(LockWorkload(), number, 100, streams=4) for number in (0, 1)}
    assert drawn(LockWorkload(), 0, 200, streams=4)[:100] == turns[0]
    assert turns[0] != turns[1]


def test_locks_and_holds_are_those_of_the_options() -> None:
    """Locks are used evenly, and held for the requested time on average."""
    some = turns(0, 4000, LockOptions(locks=4, hold_ms=50, stray_share=0.1))
    assert sorted(Counter(str(turn.key) for turn in some)) == ["l0", "l1", "l2", "l3"]
    holds_ms = [turn.value["hold_ms"] for turn in some if turn.f == "acquire"]
    assert sum(holds_ms) / len(holds_ms) == pytest.approx(50, abs=2)
    assert Counter(turn.f for turn in some)["release"] / 4000 == pytest.approx(0.1, abs=0.02)


def test_locks_that_nobody_frees_are_left() -> None:
    """All streams together use each lock about as often as the option requests, and then other locks."""
    options = LockOptions(locks=2, ops_per_lock=50)
    keys = Counter(turn.key for number in range(4) for turn in turns(number, 100, options))
    assert set(keys) == {f"l{number}" for number in range(8)}
    assert all(25 < number < 75 for number in keys.values())
    assert {turn.key for turn in turns(0, 25, options)} == {"l0", "l1"}


def test_a_preview_is_what_will_be_asked() -> None:
    """The description is always the same; only the run knows the releases of acquired locks."""
    workload = LockWorkload(LockOptions(stray_share=0.2))
    first, second = (json.dumps(described(workload, seed=1, streams=3, count=30)) for _ in range(2))
    assert first == second
    ops = simulate(workload.generator(seed=1, streams=3), load=ClosedLoop(concurrency=3), respond=Locks(), stop_s=3)
    for stream in json.loads(first):
        # The locks here have tokens, so a release without one is stray.
        asked = [
            (op.f, op.key)
            for op in ops
            if op.process == stream["stream"] and op.type is OpType.INVOKE and (op.f == "acquire" or op.value is None)
        ]
        assert asked[:30] == [(operation["f"], operation["key"]) for operation in stream["operations"]]
        acquires = [operation["value"] for operation in stream["operations"] if operation["f"] == "acquire"]
        assert all(list(value) == ["hold_ms"] and 0 <= value["hold_ms"] <= 40 for value in acquires)


LOADS: dict[str, Load] = {"closed": ClosedLoop(concurrency=6), "open": OpenLoop(rate_per_node=100)}


def by_process(ops: list[Op]) -> Iterator[list[Op]]:
    """Yields the events of each process."""
    for process in dict.fromkeys(op.process for op in ops):
        yield [op for op in ops if op.process == process]


@pytest.mark.parametrize("load", LOADS.values(), ids=LOADS)
def test_who_acquired_releases_after_a_while(load: Load) -> None:
    """The acquiring process releases with the token, and does nothing else in between, until the run or the process ends."""
    workload = LockWorkload(LockOptions(hold_ms=30))
    generator = workload.generator(seed=1, streams=load.streams(3))
    ops = simulate(generator, load=load, respond=Locks(lost=40), stop_s=10, seed=1)
    holds_ms = []
    left = 0
    for events in by_process(ops):
        for index, op in enumerate(events):
            if (op.f, op.type) == ("acquire", OpType.OK):
                following = events[index + 1] if index + 1 < len(events) else None
                if following is None:
                    left += 1
                    continue
                assert (following.f, following.key, following.value) == ("release", op.key, op.value)
                holds_ms.append((following.time_ns - op.time_ns) / NS_PER_MS)
            elif op.type is OpType.FAIL:
                assert op.f == "acquire"
    assert left <= 6
    assert len(holds_ms) > 50
    assert len({round(hold) for hold in holds_ms}) > 10
    assert sum(holds_ms) / len(holds_ms) > 25


@pytest.mark.parametrize("load", LOADS.values(), ids=LOADS)
def test_many_ask_while_one_holds(load: Load) -> None:
    """A correct lock passes, in a run that could have shown two holders."""
    generator = LockWorkload().generator(seed=1, streams=load.streams(3))
    ops = simulate(generator, load=load, respond=Locks(), stop_s=10, seed=1)
    (part,) = LockWorkload().check(pair(ops), Observed())
    assert part.verdict is Verdict.VALID
    assert part.details["counts"]["contended"] > 100


def test_a_release_that_failed_is_asked_again_some_times() -> None:
    """After the attempts the process continues, since it may have lost the lock."""

    def respond(process: int, invocation: Invocation) -> Outcome:
        return Ok(1) if invocation.f == "acquire" else Fail("not-leader")

    load = ClosedLoop(concurrency=1)
    ops = simulate(LockWorkload().generator(seed=1, streams=1), load=load, respond=respond, stop_s=2)
    asked = "".join(op.f[0] for op in ops if op.type is OpType.INVOKE)
    assert asked.startswith("arrrrrarrrrra")


def test_each_lock_is_acquired_and_released_once_in_the_end() -> None:
    """A failed acquire is repeated after a pause; the same process releases the lock."""
    history = simulate(LockWorkload().generator(seed=1, streams=3), respond=Locks(), stop_s=2)
    locks = Locks()
    refusals: Iterator[Outcome] = iter([Fail("held"), Info("timeout"), Fail("held")])

    def respond(process: int, invocation: Invocation) -> Outcome:
        return next(refusals, None) or locks(process, invocation)

    ops = simulate(LockWorkload().final_generator(history=history, node=NODE), respond=respond)
    assert {op.phase for op in ops} == {FINAL_PHASE}
    done_with = Counter((op.f, op.key) for op in ops if op.type is OpType.OK)
    assert done_with == {(f, f"l{number}"): 1 for f in ("acquire", "release") for number in range(3)}
    assert not locks.holders
    for events in by_process(ops):
        succeeded = Counter(op.f for op in events if op.type is OpType.OK)
        assert succeeded["acquire"] == succeeded["release"]


@pytest.mark.parametrize(("lease_s", "least_s", "most_s"), [(6, 6, 12), (None, 4, 8)])
def test_a_lock_that_cannot_be_had_does_not_hold_up_the_end(lease_s: float | None, least_s: int, most_s: int) -> None:
    """The attempts take longer than the lease, or without one than a session of 4 s, and then end."""
    history = simulate(LockWorkload().generator(seed=1, streams=3), respond=Locks(), stop_s=2)

    def respond(process: int, invocation: Invocation) -> Outcome:
        return Fail("held")

    options = LockOptions(lease_s=lease_s)
    ops = simulate(LockWorkload(options).final_generator(history=history, node=NODE), respond=respond)
    assert Counter(op.key for op in ops if op.type is OpType.INVOKE) == {"l0": 5, "l1": 5, "l2": 5}
    assert least_s * 1e9 < ops[-1].time_ns < most_s * 1e9


def test_locks_that_could_not_be_had_make_the_run_unknown() -> None:
    """The part `final-reads` has the locks that could not be acquired."""
    operations = [
        done(0, 1, 0, "acquire", None, 1, key="a"),
        done(2, 3, 0, "acquire", None, 2, key="b"),
        done(4, 5, 1, "acquire", None, 3, key="a", phase=FINAL_PHASE),
        done(6, 7, 1, "release", 3, 3, key="a", phase=FINAL_PHASE),
    ]
    parts = {part.name: part for part in LockWorkload().check(operations, Observed(final_reads=FinalReads()))}
    assert set(parts) == {"lock", "final-reads"}
    assert parts["final-reads"].verdict is Verdict.UNKNOWN
    assert parts["final-reads"].reason.endswith("could not be acquired after healing: b.")
    fine = [*operations, done(8, 9, 1, "acquire", None, 4, key="b", phase=FINAL_PHASE)]
    parts = {part.name: part for part in LockWorkload().check(fine, Observed(final_reads=FinalReads()))}
    assert parts["final-reads"].verdict is Verdict.VALID
    assert parts["final-reads"].reason.startswith("All 2 locks were acquired again after healing")
    missing = Observed(final_reads=FinalReads(missing="The run ended before."))
    assert LockWorkload().check(operations, missing)[1].reason == "The run ended before."


def test_options_come_from_the_command_line() -> None:
    """The judging options are the lease and the sessions."""
    options = build(LockOptions, {"lease_s": 2.5, "sessions": False, "locks": 2, "hold_ms": 5.0})
    assert options == LockOptions(lease_s=2.5, sessions=False, locks=2, hold_ms=5)
    assert [option.name for option in click_options(LockOptions, judging=True)] == ["lease_s", "sessions"]


@pytest.mark.parametrize(
    "options", [{"locks": 0}, {"ops_per_lock": 0}, {"hold_ms": -1}, {"stray_share": 1}, {"lease_s": 0}]
)
def test_options_that_make_no_sense_are_refused(options: dict[str, float]) -> None:
    """The error has the expected values."""
    with pytest.raises(InputError, match="expected"):
        LockOptions(**options)  # type: ignore[arg-type]
