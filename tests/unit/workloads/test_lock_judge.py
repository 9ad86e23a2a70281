"""The judge of locks: it finds exactly the violations, compared with a brute force."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from checker.formats.columns import of_operations
from checker.models import model
from checker.search import brute
from harness.errors import InputError
from harness.op import OpType
from harness.verdict import Verdict
from tests.unit.workloads.histories import MS, chance, done
from workloads.lock import LockOptions, LockWorkload

if TYPE_CHECKING:
    from collections.abc import Sequence

    from checker.judging import Judgement
    from harness.op import Operation, Value

OK, FAIL, INFO = OpType.OK, OpType.FAIL, OpType.INFO
NEVER = 10**9
KINDS = ("two-holders", "token-not-growing", "token-twice", "released-by-other")


def judge(operations: Sequence[Operation], **options: Any) -> Judgement:
    """Decides one lock."""
    return LockWorkload(LockOptions(**options)).judge(of_operations(operations))


def wrong(judgement: Judgement) -> dict[str, int]:
    """Returns the number of anomalies of each kind, and checks that the counts agree."""
    told = dict(Counter(anomaly.kind for anomaly in judgement.anomalies))
    assert told == {kind: judgement.counts[kind] for kind in KINDS if judgement.counts[kind]}
    assert (judgement.verdict is Verdict.INVALID) == bool(told)
    return told


def acquire(start: int, end: int | None, process: int, token: Value = None, kind: OpType = OK) -> Operation:
    """Returns an acquire."""
    return done(start, end, process, "acquire", None, token, kind=kind)


def release(start: int, end: int | None, process: int, token: Value = None, kind: OpType = OK) -> Operation:
    """Returns a release."""
    return done(start, end, process, "release", token, token, kind=kind)


def test_one_after_the_other_is_fine() -> None:
    """The second process requested the held lock, and acquired it after the release had begun."""
    judgement = judge([acquire(0, 1, 0, 7), acquire(2, 5, 1, 8), release(3, 4, 0, 7), release(6, 7, 1, 8)])
    assert (judgement.verdict, wrong(judgement)) == (Verdict.VALID, {})
    assert (judgement.counts["acquired"], judgement.counts["released"], judgement.counts["contended"]) == (2, 2, 1)
    assert judgement.figures == {"tokens": 2}


def test_two_holders_are_told_with_their_operations() -> None:
    """The anomaly has the impossible acquire, the one before it, and the next operation of that process."""
    (anomaly,) = judge([acquire(0, 1, 0), acquire(2, 3, 1), release(4, 5, 0)]).anomalies
    assert (anomaly.kind, anomaly.subject, anomaly.rows, anomaly.decisive) == ("two-holders", 1, (0, 1, 2), 1)
    assert anomaly.explanation == (
        "Process 0 acquired the lock by 0.001000 s and began its release at 0.004000 s. Process 1 acquired it by 0.003000 s, "
        "while the other one held it."
    )


HOLDERS: list[tuple[list[Operation], int]] = [
    ([acquire(0, 1, 0), acquire(2, 3, 1), release(4, None, 0)], 1),  # for any outcome of the release
    ([acquire(0, 1, 0), acquire(2, 3, 1), release(4, 5, 0, kind=FAIL)], 1),
    ([acquire(0, 1, 0), release(2, None, 0), acquire(3, 4, 1)], 0),  # the release may take effect at once
    ([acquire(0, 1, 0), release(2, 3, 0, kind=FAIL), acquire(4, 5, 1)], 0),
    ([acquire(0, None, 0), acquire(2, 3, 1)], 0),  # without an answer, a process certainly holds nothing
    ([acquire(0, 1, 0), acquire(2, None, 1), release(3, 4, 0)], 0),
    ([acquire(0, 1, 0), acquire(2, 3, 1, kind=FAIL), release(4, 5, 0)], 0),
    ([acquire(0, 1, 0), acquire(2, 3, 0), release(4, 5, 0)], 0),  # one process
    ([acquire(0, 9, 0), acquire(1, 8, 1), release(10, 11, 0), release(12, 13, 1)], 1),
    ([acquire(0, 1, 0), acquire(2, 3, 1), acquire(4, 5, 2), release(6, 7, 0), release(8, 9, 1)], 2),
]


@pytest.mark.parametrize(("history", "holders"), HOLDERS)
def test_two_holders_are_accused_only_where_both_are_certain(history: list[Operation], holders: int) -> None:
    """A certain hold lasts from the end of a successful acquire to the start of the process' next operation."""
    assert wrong(judge(history)).get("two-holders", 0) == holders


def test_a_client_that_is_gone_holds_nothing_where_there_are_sessions() -> None:
    """Without sessions, only a release frees a lock."""
    history = [acquire(0, 1, 0), acquire(2, 3, 1)]
    assert wrong(judge(history)) == {}
    judgement = judge(history, sessions=False)
    assert wrong(judgement) == {"two-holders": 1}
    assert "and did not release it." in judgement.anomalies[0].explanation


def test_a_client_that_got_the_lock_last_held_it_then() -> None:
    """A client that may be dead holds the lock at the end of its acquire."""
    assert wrong(judge([acquire(0, 1, 0), acquire(2, 3, 1), release(4, 5, 0)])) == {"two-holders": 1}


@pytest.mark.parametrize(("lease_s", "holders"), [(None, 1), (0.020, 1), (0.0101, 1), (0.010, 0), (0.001, 0)])
def test_a_lease_ends_a_hold(lease_s: float | None, holders: int) -> None:
    """The lease counts from the request: process 0 sends it at 0 ms, and process 1 acquires the lock at 10 ms."""
    history = [acquire(0, 1, 0), acquire(2, 10, 1), release(40, 41, 0), release(42, 43, 1)]
    assert wrong(judge(history, lease_s=lease_s)).get("two-holders", 0) == holders


def test_a_lease_that_ended_before_the_answer_is_no_hold() -> None:
    """An answer after the end of the lease does not count."""
    history = [acquire(0, 30, 0), acquire(2, 35, 1), release(40, 41, 0), release(42, 43, 1)]
    assert wrong(judge(history, lease_s=0.02)) == {}
    assert wrong(judge(history, lease_s=0.04)) == {"two-holders": 1}


TOKENS: list[tuple[list[Operation], dict[str, int]]] = [
    ([acquire(0, 1, 0, 5), release(2, 3, 0), acquire(4, 5, 1, 4)], {"token-not-growing": 1}),
    ([acquire(0, 1, 0, 5), release(2, 3, 0), acquire(4, 5, 1, 5)], {"token-twice": 1}),
    ([acquire(0, 1, 0, 5), release(2, 3, 0), acquire(4, 5, 0, 5)], {"token-twice": 1}),
    ([acquire(0, 1, 0, 5), acquire(2, 3, 0, 5)], {}),  # it holds the lock already
    ([acquire(0, 1, 0, 5), acquire(2, 3, 0, 4)], {"token-not-growing": 1}),
    ([acquire(0, 3, 0, 5), acquire(1, 4, 1, None), acquire(2, 6, 2, 4)], {}),  # they overlap
    ([acquire(0, 1, 0, 10**18), release(2, 3, 0), acquire(4, 5, 1, 10**18 - 1)], {"token-not-growing": 1}),
    ([acquire(0, 1, 0, 10**18), release(2, 3, 0), acquire(4, 5, 1, 2**63 - 1)], {}),
    ([acquire(0, 1, 0, 0), release(2, 3, 0), acquire(4, 5, 1, None)], {}),
    ([acquire(0, 1, 0, 5), release(2, 3, 0), acquire(4, None, 1, 4), acquire(6, 7, 2, 6)], {}),
]


@pytest.mark.parametrize(("history", "expected"), TOKENS)
def test_tokens_grow(history: list[Operation], expected: dict[str, int]) -> None:
    """Tokens grow from one acquire to the next in real time, and none occurs twice."""
    assert wrong(judge(history)) == expected


RELEASES: list[tuple[list[Operation], int]] = [
    ([acquire(0, 1, 0), release(2, 3, 1), release(4, 5, 0)], 1),
    ([acquire(0, 1, 0), release(2, 3, 0), release(4, 5, 0)], 1),
    ([acquire(0, 1, 0), release(2, 3, 0, kind=FAIL), release(4, 5, 0)], 0),
    ([acquire(0, 1, 0), acquire(2, 3, 0), release(4, 5, 0), release(6, 7, 0)], 0),  # entered twice
    ([release(0, 1, 0), acquire(2, 3, 0), release(4, 5, 0)], 1),
    ([acquire(0, 1, 0), release(2, 3, 1, kind=FAIL), release(4, None, 1)], 0),
    ([acquire(0, 1, 0, 7), release(2, 3, 1, 7)], 0),  # released by its token
    ([acquire(0, 1, 0, 7), release(2, 3, 1, 8)], 1),
    ([acquire(0, None, 0), acquire(2, 3, 2, 7), release(4, 5, 1, 8)], 0),  # the token may be that of process 0
]


@pytest.mark.parametrize(("history", "wrongs"), RELEASES)
def test_only_who_has_a_lock_may_release_it(history: list[Operation], wrongs: int) -> None:
    """A process that may hold the lock is not an anomaly."""
    assert judge(history).counts["released-by-other"] == wrongs
    assert wrong(judge(history)).get("released-by-other", 0) == wrongs


@pytest.mark.parametrize(
    ("history", "reason"),
    [
        ([], "No acquire succeeded"),
        ([acquire(0, None, 0), acquire(1, 2, 1, kind=FAIL)], "No acquire succeeded"),
        ([acquire(0, 1, 0), release(2, 3, 0), acquire(4, 5, 1)], "No process requested the lock while another"),
        ([acquire(0, 1, 0), acquire(2, None, 1), release(3, 4, 0)], "No process requested the lock while another"),
    ],
)
def test_nothing_tested_is_unknown(history: list[Operation], reason: str) -> None:
    """Without a request for a held lock, nothing was tested."""
    judgement = judge(history)
    assert judgement.verdict is Verdict.UNKNOWN
    assert judgement.reason.startswith(reason)


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        (done(4, 5, 0, "lock", None, None), "event 4: expected the function acquire, release or write, found 'lock'"),
        (acquire(4, 5, 0, "x"), "event 4: expected an acquire to answer a fencing token, an integer"),
        (acquire(4, 5, 0, 2**63), "an integer of 64 bits"),
        (acquire(4, 5, 0, token=True), "an integer of 64 bits"),
        (acquire(4, 5, 0, [1, 2]), "an integer of 64 bits"),
    ],
)
def test_what_is_no_lock_is_refused(operation: Operation, expected: str) -> None:
    """The error has the operation and the expected form."""
    with pytest.raises(InputError, match=expected):
        judge([acquire(0, 1, 0), operation])


# The brute force compares all pairs of operations.


def random_history(seed: int, *, sane: bool) -> Sequence[Operation]:
    """Returns a history of a lock with random results; sane processes acquire and release in turns."""
    draws = random.Random(seed)
    holds: set[int] = set()
    tokens = itertools.count(1)

    def call(process: int) -> tuple[str, Value]:
        holding = process in holds if sane else draws.random() < 0.5
        return ("release", draws.choice((None, None, 1, 2))) if holding and not sane else (
            ("release" if holding else "acquire"), None
        )  # fmt: skip

    def answer(process: int, asked: tuple[str, Value]) -> tuple[OpType, Value]:
        f, value = asked
        releasing = sane and f == "release"  # a sane one succeeds, or is the last of its process
        kind = draws.choices((OK, FAIL, INFO), (6, 0 if releasing else 3, 1))[0]
        if f == "release":
            holds.discard(process)
            return kind, value
        if kind is OK:
            holds.add(process)
        return kind, draws.choice((None, next(tokens), next(tokens) - draws.randint(1, 8)))

    return chance(draws, draws.randint(2, 14), call, answer)


def ends(operation: Operation) -> int:
    """Returns the end of an operation in the history."""
    return NEVER if operation.complete_index is None else operation.complete_index


def brute_force(history: Sequence[Operation], lease_ms: int | None, *, sessions: bool) -> dict[str, int]:
    """Returns the counts, by comparing all pairs."""
    holds = []
    for a in history:
        if a.f == "acquire" and a.type is OK:
            following = [o.invoke_index for o in history if o.process == a.process and o.invoke_index > a.invoke_index]
            last = ends(a) + 1 if sessions else NEVER
            lease = NEVER if lease_ms is None else a.invoke_index + lease_ms  # an event each millisecond
            holds.append((a.process, ends(a), min(following, default=last), lease))
    sure = [(process, begin, min(until, lease)) for process, begin, until, lease in holds if begin < min(until, lease)]
    two = sum(any(p != q and earlier < begin < until for q, earlier, until in sure) for p, begin, _ in sure)
    got = [o for o in history if o.f == "acquire" and o.type is OK and o.result is not None]
    fresh = []
    for o in got:
        before = [op for op in history if op.process == o.process and op.invoke_index < o.invoke_index]
        again = bool(before) and before[-1] in got and before[-1].result == o.result
        fresh += [] if again else [o]
    falling = sum(any(ends(a) < b.invoke_index and b.result < a.result for a in fresh) for b in fresh)
    twice = sum(number - 1 for number in Counter(o.result for o in fresh).values())
    unsure = any(o.f == "acquire" and o.type is INFO for o in history)
    given = {o.result for o in got}
    left: Counter[int | str] = Counter()
    by_other = 0
    for o in history:
        if o.type is OK and o.f == "acquire":
            left[o.process] += 1
        elif o.type is OK and left[o.process]:
            left[o.process] -= 1
        elif o.type is OK:
            by_other += o.value is None or not (unsure or o.value in given)
    counts = dict(zip(KINDS, (two, falling, twice, by_other), strict=True))
    return {kind: number for kind, number in counts.items() if number}


@pytest.mark.parametrize("sessions", [True, False])
@pytest.mark.parametrize("lease_ms", [None, 6])
def test_the_judge_agrees_with_a_brute_force(lease_ms: int | None, sessions: bool) -> None:
    """The counts of small histories equal those of the brute force."""
    seen: Counter[str] = Counter()
    for seed in range(200):
        history = random_history(seed, sane=seed % 4 == 0)
        lease_s = None if lease_ms is None else lease_ms * MS / 1e9
        judgement = judge(history, lease_s=lease_s, sessions=sessions)
        expected = brute_force(history, lease_ms, sessions=sessions)
        assert wrong(judgement) == expected, (seed, history)
        seen.update(expected.keys() or {"fine"})
    assert min(seen[kind] for kind in (*KINDS, "fine")) > 5


def test_the_judge_agrees_with_a_search_for_linearizations() -> None:
    """If processes acquire and release in turns and none vanishes, two holders are equivalent to a failed search."""
    seen: Counter[bool] = Counter()
    for seed in range(200):
        history = random_history(seed, sane=True)
        linearizable = brute.linearizable(model("owner-mutex"), [o for o in history if o.type is not FAIL])
        judgement = judge(history, sessions=False)
        assert (not judgement.counts["two-holders"]) == linearizable, (seed, history)
        seen[bool(linearizable)] += 1
    assert min(seen[True], seen[False]) > 15


def test_a_clock_that_went_back_shortens_leases_at_most() -> None:
    """In a foreign history, times can decrease."""
    history = [acquire(0, 1, 0), acquire(2, 10, 1), release(40, 41, 0), release(42, 43, 1)]
    odd = [history[0], replace(history[1], start_ns=10**15), *history[2:]]
    assert wrong(judge(history, lease_s=5)) == {"two-holders": 1}
    assert wrong(judge(odd, lease_s=5)) == {}
