"""Writes of holders to a resource: what it refuses, what the judge finds, and planted bugs of locks and resources."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from checker.formats.columns import of_operations
from checker.models import made
from checker.models.locks import OwnerMutex
from harness.errors import InputError
from harness.history import pair
from harness.load import ClosedLoop, OpenLoop
from harness.node import Node
from harness.op import RESOURCE_PHASE, Fail, Info, Invocation, Ok, OpType
from harness.testing import drive_virtually
from harness.verdict import Verdict
from harness.workload import Observed, clients_of
from results.measure.availability import overall
from results.measure.op_outcomes import Codes
from tests.deciding import check_keys
from tests.unit.workloads.histories import chance, done
from workloads.lock import LockOptions, LockWorkload
from workloads.lock.resource import Resource, Takes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from checker.judging import Judgement
    from harness.load import Load
    from harness.op import Op, Operation, Outcome, Value
    from harness.verdict import Part

LEASE_S = 0.5
NODE = Node(name="n1", address="10.0.0.1")


def judge(operations: Sequence[Operation]) -> Judgement:
    """Decides one lock whose leases have ended whenever another process acquires it."""
    return LockWorkload(LockOptions(lease_s=1e-9)).judge(of_operations(operations))


def write(start: int, end: int | None, process: int, number: Value, kind: OpType = OpType.OK) -> Operation:
    """Returns a write that the resource took with this number, or refused."""
    return done(start, end, process, "write", None, number, kind=kind, phase=RESOURCE_PHASE)


def acquire(start: int, end: int, process: int, token: Value = None) -> Operation:
    """Returns a successful acquire."""
    return done(start, end, process, "acquire", None, token)


LATE: list[tuple[list[Operation], int]] = [
    ([acquire(0, 1, 0), acquire(2, 3, 1), write(4, 5, 1, 1), write(6, 7, 0, 2)], 1),
    ([acquire(0, 1, 0), acquire(2, 3, 1), write(4, 5, 0, 1), write(6, 7, 1, 2)], 0),  # the later holder is last
    (
        [acquire(0, 1, 0), acquire(2, 3, 1), write(4, 7, 1, 2), write(5, 6, 0, 1)],
        0,
    ),  # the numbers decide, not the times
    ([acquire(0, 1, 0), acquire(2, 3, 1), write(4, 5, 1, 1), write(6, 7, 0, None, OpType.FAIL)], 0),  # it was refused
    ([acquire(0, 1, 0), acquire(2, 3, 1), write(4, 5, 1, 0, OpType.FAIL), write(6, 7, 0, 1)], 0),
    ([acquire(0, 3, 0), acquire(2, 4, 1), write(5, 6, 1, 1), write(7, 8, 0, 2)], 0),  # either may be the later one
    (
        [acquire(0, 1, 0), acquire(2, 3, 1), write(4, 5, 1, 1), acquire(6, 7, 0), write(8, 9, 0, 2)],
        0,
    ),  # a hold of its own
    ([acquire(0, 1, 0), acquire(2, 3, 1), write(4, 5, 1, 1), write(6, 7, 0, 2), write(8, 9, 0, 3)], 2),
]


@pytest.mark.parametrize(("history", "late"), LATE)
def test_a_write_is_late_after_one_of_a_later_holder(history: list[Operation], late: int) -> None:
    """A holder is later if its acquire began after that of the other one had ended; the resource orders the writes."""
    judgement = judge(history)
    assert judgement.counts["late-write"] == late
    assert Counter(anomaly.kind for anomaly in judgement.anomalies)["late-write"] == late
    assert (judgement.verdict is Verdict.INVALID) == bool(late)


def test_a_late_write_is_told_with_both_holders() -> None:
    """The anomaly has both acquires and both writes."""
    (anomaly,) = judge(LATE[0][0]).anomalies
    assert (anomaly.kind, anomaly.subject, anomaly.rows, anomaly.decisive) == ("late-write", 0, (0, 1, 2, 3), 3)
    assert anomaly.explanation == (
        "Process 0 acquired the lock by 0.001000 s, and process 1 acquired it by 0.003000 s. The resource took a write of the "
        "later holder at 0.004000 s, and then one of the earlier holder at 0.006000 s."
    )


def test_a_holder_that_writes_still_holds_the_lock() -> None:
    """Only the next acquire or release ends a certain hold; without writes, no count speaks of them."""
    history = [acquire(0, 1, 0), write(2, 3, 0, 1), acquire(4, 5, 1), done(6, 7, 0, "release")]
    judgement = LockWorkload().judge(of_operations(history))
    assert judgement.counts["two-holders"] == 1
    assert judgement.counts["released"] == 1
    assert "written" not in judge([acquire(0, 1, 0)]).counts


def test_a_resource_that_took_nothing_tested_nothing() -> None:
    """If the resource refused all writes, the lock is unknown."""
    history = [acquire(0, 1, 0), acquire(2, 5, 1), done(3, 4, 0, "release"), write(6, 7, 1, None, OpType.FAIL)]
    judgement = LockWorkload().judge(of_operations(history))
    assert (judgement.verdict, judgement.reason) == (
        Verdict.UNKNOWN,
        "The resource took no write, so nothing was tested.",
    )


@pytest.mark.parametrize(
    ("history", "expected"),
    [
        ([acquire(0, 1, 0), write(2, 3, 0, "x")], "event 2: expected a write to answer its number at the resource"),
        ([acquire(0, 1, 0), write(2, 3, 0, None)], "event 2: expected a write to answer its number at the resource"),
        ([acquire(0, 1, 0), write(2, 3, 1, 1)], "event 2: expected an acquire of the same process before its write"),
    ],
)
def test_what_is_no_write_of_a_holder_is_refused(history: list[Operation], expected: str) -> None:
    """The error has the operation and the expected form."""
    with pytest.raises(InputError, match=expected):
        judge(history)


def late_by_pairs(history: Sequence[Operation]) -> int:
    """Returns the number of late writes, by comparing all pairs."""
    held: dict[int | str, Operation] = {}
    taken: list[tuple[int, Operation]] = []
    for operation in history:
        if operation.f == "acquire" and operation.type is OpType.OK:
            held[operation.process] = operation
        elif operation.f == "write" and operation.type is OpType.OK:
            taken.append((operation.result, held[operation.process]))
    return sum(
        any(earlier < number and later.invoke_index > (hold.complete_index or 0) for earlier, later in taken)
        for number, hold in taken
    )


def test_the_judge_agrees_with_all_pairs() -> None:
    """The number of late writes in random histories is that of a comparison of all pairs."""
    seen: Counter[bool] = Counter()
    for seed in range(300):
        draws = random.Random(seed)
        holders: set[int] = set()
        numbers = random.Random(seed).sample(range(100), 100)  # a resource of another harness may number as it likes

        def call(process: int, draws: random.Random = draws, holders: set[int] = holders) -> tuple[str, Value]:
            return ("write" if process in holders and draws.random() < 0.6 else "acquire"), None

        def answer(
            process: int,
            asked: tuple[str, Value],
            draws: random.Random = draws,
            holders: set[int] = holders,
            numbers: list[int] = numbers,
        ) -> tuple[OpType, Value]:
            kind = draws.choices((OpType.OK, OpType.FAIL, OpType.INFO), (8, 2, 1))[0]
            if asked[0] == "acquire" and kind is OpType.OK:
                holders.add(process)
            return kind, numbers.pop() if asked[0] == "write" else None

        history = chance(draws, draws.randint(4, 16), call, answer)
        if not any(operation.f == "write" for operation in history):
            continue
        expected = late_by_pairs(history)
        assert judge(history).counts["late-write"] == expected, (seed, history)
        seen[bool(expected)] += 1
    assert min(seen[True], seen[False]) > 30


def test_a_fenced_resource_refuses_old_tokens_of_the_same_lock() -> None:
    """It takes the newest token again and again, and refuses an older one, and a write without a token."""
    resource = Resource(fenced=True)
    assert [resource.write("a", token) for token in (3, 3, 5)] == [Ok(1), Ok(2), Ok(3)]
    assert resource.write("a", 4) == Fail("old-token: 4 is older than 5")
    assert resource.write("b", 1) == Ok(4)
    refused = resource.write("a", None)
    assert isinstance(refused, Fail)
    assert refused.error.startswith("no-token: ")
    everything = Resource(fenced=False)
    assert [everything.write("a", token) for token in (5, 4, None)] == [Ok(1), Ok(2), Ok(3)]


class Leases:
    """Locks with leases, in place of a system. A holder may pause for longer than its lease.

    The tokens are those of `tokens`: by default they rise with each acquire.
    """

    def __init__(self, tokens: Callable[[int], Value] = lambda acquires: acquires) -> None:
        self._tokens = tokens
        self._acquires = 0
        self._held: dict[str | None, tuple[int, float]] = {}

    def client(self, process: int, node: Node) -> LeaseClient:
        """Returns the client of a process."""
        return LeaseClient(process, node, self)

    def answer(self, process: int, invocation: Invocation, now_s: float) -> Outcome:
        """Answers an acquire or a release."""
        holder, until_s = self._held.get(invocation.key, (-1, 0.0))
        if invocation.f == "acquire":
            if now_s < until_s:
                return Fail("held")
            self._acquires += 1
            self._held[invocation.key] = process, now_s + LEASE_S
            return Ok(self._tokens(self._acquires))
        if holder != process or now_s >= until_s:
            return Fail("not-held")
        del self._held[invocation.key]
        return Ok(invocation.value)


class LeaseClient:
    """A client of `Leases`."""

    def __init__(self, process: int, node: Node, leases: Leases) -> None:
        self.node = node
        self._process = process
        self._leases = leases

    async def invoke(self, invocation: Invocation) -> Outcome:
        """Answers after 10 ms; the system never sees a write."""
        assert invocation.f != "write"
        await asyncio.sleep(0.01)
        return self._leases.answer(self._process, invocation, asyncio.get_running_loop().time())

    async def close(self) -> None:
        """Does nothing."""


def run(takes: Takes, leases: Leases, *, hold_ms: float = 600, load: Load | None = None) -> tuple[list[Op], Part]:
    """Runs the workload in virtual time, with holds of up to twice `hold_ms`, and judges it."""
    workload = LockWorkload(LockOptions(lease_s=LEASE_S, sessions=False, locks=2, hold_ms=hold_ms, resource=takes))
    load = load or ClosedLoop(concurrency=6)
    _, ops = drive_virtually(
        workload.generator(seed=1, streams=load.streams(3)),
        clients=clients_of(workload, leases.client),
        load=load,
        stop_s=30,
    )
    (part,) = workload.check(pair(ops), Observed())
    return ops, part


def test_a_lease_alone_lets_two_clients_write_and_a_fence_does_not() -> None:
    """The locks are correct in both runs, and the same holders come late; only the fenced resource refuses them."""
    _, alone = run(Takes.ALL, Leases())
    _, fenced = run(Takes.FENCED, Leases())
    assert (alone.verdict, fenced.verdict) == (Verdict.INVALID, Verdict.VALID)
    before, after = alone.details["counts"], fenced.details["counts"]
    assert before["late-write"] > 5
    assert before["two-holders"] == after["two-holders"] == after["late-write"] == before["refused-writes"] == 0
    assert after["refused-writes"] > 5
    assert before["acquired"] == after["acquired"]


@pytest.mark.parametrize(
    ("tokens", "kinds"),
    [
        (lambda _: 7, {"token-twice", "late-write"}),
        (lambda acquires: acquires // 8, {"token-twice", "late-write"}),
        (lambda acquires: -acquires, {"token-not-growing"}),  # the resource refuses all later holders
    ],
    ids=["same", "slow", "falling"],
)
def test_a_fence_does_not_help_a_system_whose_tokens_do_not_rise(
    tokens: Callable[[int], Value], kinds: set[str]
) -> None:
    """Planted bug: the tokens stay, rise too slowly, or fall; equal tokens let late writes in."""
    _, part = run(Takes.FENCED, Leases(tokens))
    counts = part.details["counts"]
    assert part.verdict is Verdict.INVALID
    assert {kind for kind in ("token-twice", "token-not-growing", "late-write") if counts[kind]} == kinds


def test_a_fence_that_does_not_check_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted bug: a resource with the fence takes old tokens too."""
    monkeypatch.setattr("workloads.lock.workload.Resource", lambda *, fenced: Resource(fenced=not fenced))
    _, part = run(Takes.FENCED, Leases())
    assert part.verdict is Verdict.INVALID
    assert part.details["counts"]["late-write"] > 5


def test_a_model_of_the_lock_takes_the_writes_of_holders() -> None:
    """`owner-mutex` decides a run with a resource as without one: with holds below the lease, all locks are linearizable."""
    ops, _ = run(Takes.ALL, Leases(), hold_ms=150)
    operations = pair(ops)
    without = [operation for operation in operations if operation.phase != RESOURCE_PHASE]
    assert len(without) < len(operations)
    assert [check_keys(made(OwnerMutex), operations_of_lock).valid for operations_of_lock in (operations, without)] == [
        Verdict.VALID
    ] * 2


def test_without_tokens_a_fenced_resource_takes_nothing() -> None:
    """A system without tokens makes the run unknown."""
    _, part = run(Takes.FENCED, Leases(lambda _: None))
    assert part.verdict is Verdict.UNKNOWN


def test_short_holds_never_come_late() -> None:
    """With holds below the lease, a resource that takes everything finds a correct lock valid."""
    _, part = run(Takes.ALL, Leases(), hold_ms=150)
    assert part.verdict is Verdict.VALID
    assert part.details["counts"]["written"] > 50


LOADS: dict[str, Load] = {"closed": ClosedLoop(concurrency=6), "open": OpenLoop(rate_per_node=100)}


@pytest.mark.parametrize("load", LOADS.values(), ids=LOADS)
def test_a_holder_writes_at_both_ends_of_its_hold(load: Load) -> None:
    """After an acquire, a process writes at once, and again before its release; both with the token of the acquire."""
    ops, _ = run(Takes.ALL, Leases(), load=load)
    whole = 0
    for process in dict.fromkeys(op.process for op in ops):
        asked = [op for op in ops if op.process == process and op.type is not OpType.FAIL and op.f != "acquire"]
        events = [op for op in asked if op.type is OpType.INVOKE]
        for first, second, last in zip(events, events[1:], events[2:], strict=False):
            if (first.f, second.f, last.f) == ("write", "write", "release"):
                whole += 1
                assert first.value == second.value == last.value
                assert first.phase == second.phase == RESOURCE_PHASE
                assert last.phase is None
    assert whole > 20


def test_writes_are_no_part_of_the_availability_of_the_system() -> None:
    """Writes never reach the system, so its availability and its nodes do not count them."""
    ops, _ = run(Takes.ALL, Leases())
    availability = overall(pair(ops), Codes())
    assert availability is not None
    assert availability.by_f
    assert set(availability.by_f) == {"acquire", "release"}
    assert {op.contact for op in pair(ops) if op.f == "write"} == {None}


def test_a_holder_says_where_the_client_of_the_system_went() -> None:
    """`via` is that of the wrapped client, and None after a write; an exception leaves `invoke` as it is."""

    class Routed:
        node = NODE
        via: str | None = None
        closed = False

        async def invoke(self, invocation: Invocation) -> Outcome:
            self.via = "n2"
            if invocation.f == "release":
                raise RuntimeError
            return Info("no-answer")

        async def close(self) -> None:
            self.closed = True

    routed = Routed()
    workload = LockWorkload(LockOptions(resource=Takes.ALL))
    client: Any = clients_of(workload, lambda *_: routed)(0, NODE)

    async def all_of_it() -> list[str | None]:
        assert await client.invoke(Invocation("acquire")) == Info("no-answer")
        seen = [client.via]
        await client.invoke(Invocation("write", 1))
        seen.append(client.via)
        with pytest.raises(RuntimeError):
            await client.invoke(Invocation("release", 1))
        seen.append(client.via)
        await client.close()
        return seen

    assert asyncio.run(all_of_it()) == ["n2", None, "n2"]
    assert routed.closed
    assert clients_of(LockWorkload(), lambda *_: routed)(0, NODE) is routed
