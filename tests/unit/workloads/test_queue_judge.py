"""The judge of queues: it finds exactly the violations, compared with a brute force."""

from __future__ import annotations

import itertools
import random
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any

import pytest

from checker.formats.columns import of_operations
from harness.errors import InputError
from harness.op import OpType
from harness.verdict import Verdict
from tests.unit.workloads.histories import chance, done
from workloads.queue import Delivery, Order, QueueOptions, QueueWorkload

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from checker.judging import Judgement
    from harness.op import Operation, Value

OK, FAIL, INFO = OpType.OK, OpType.FAIL, OpType.INFO
NEVER = 10**9


def judge(operations: Sequence[Operation], **options: Any) -> Judgement:
    """Decides one queue."""
    return QueueWorkload(QueueOptions(**options)).judge(of_operations(operations))


def kinds(judgement: Judgement) -> Counter[str]:
    """Returns the number of anomalies of each kind."""
    return Counter(anomaly.kind for anomaly in judgement.anomalies)


def put(start: int, end: int | None, value: Value, process: int = 0, kind: OpType = OK) -> Operation:
    """Returns an enqueue."""
    return done(start, end, process, "enqueue", value, value, kind=kind)


def take(start: int, end: int | None, value: Value, process: int = 1) -> Operation:
    """Returns a dequeue."""
    return done(start, end, process, "dequeue", None, value)


def drain(start: int, end: int | None, values: Sequence[Value] = (), process: int = 2) -> Operation:
    """Returns a drain."""
    return done(start, end, process, "drain", None, list(values))


def test_what_came_out_is_ok() -> None:
    """Values come out by a dequeue or a drain; if the enqueue has no answer, the value is recovered."""
    judgement = judge([put(0, 1, 1), put(2, 3, 2), put(4, None, 3), take(6, 7, 1), drain(8, 9, [2, 3])])
    assert judgement.verdict is Verdict.VALID
    assert judgement.counts == {
        "attempted": 3, "acknowledged": 2, "ok": 3, "lost": 0, "unexpected": 0, "duplicated": 0, "recovered": 1,
    }  # fmt: skip


def test_an_acknowledged_value_that_a_drain_did_not_find_is_lost() -> None:
    """The anomaly names the enqueue and the drain."""
    judgement = judge([put(0, 1, 1), put(2, 3, 2), drain(4, 5, [1])])
    assert judgement.verdict is Verdict.INVALID
    (anomaly,) = judgement.anomalies
    assert (anomaly.kind, anomaly.subject, anomaly.rows, anomaly.decisive) == ("lost", 2, (1, 2), 2)
    assert anomaly.explanation == (
        "The enqueue of the value 2 by process 0 was acknowledged. Later process 2 drained the queue until it was empty. "
        "The value never came out."
    )


@pytest.mark.parametrize(
    "history",
    [
        [put(0, 1, 1), drain(2, 3, [1]), put(4, 5, 2)],  # not drained after it
        [put(0, 1, 1), drain(2, 3, [1]), put(4, 7, 2), drain(6, 8, [])],  # the drain may have been empty before it
        [put(0, 1, 1), put(2, 3, 2), take(4, 5, 1)],  # never drained
        [put(0, 1, 1), drain(2, None), put(4, 5, 2), drain(6, 7, [1])],  # the unanswered drain may have taken it
    ],
)
def test_a_loss_that_could_not_be_seen_is_unknown(history: Sequence[Operation]) -> None:
    """Without a successful drain, no value is lost, and the verdict is not valid either."""
    judgement = judge(history)
    assert judgement.verdict is Verdict.UNKNOWN
    assert judgement.counts["lost"] == 0
    assert "so a loss was not seen" in judgement.reason


def test_a_queue_of_which_all_came_out_needs_no_drain() -> None:
    """Nothing is missing, so nothing is lost."""
    assert judge([put(0, 1, 1), take(2, 3, 1)]).verdict is Verdict.VALID


def test_a_dequeue_without_an_answer_excuses_one_missing_value() -> None:
    """Two values and one dequeue's answer are missing: one value is lost, and the explanation has both possibilities."""
    history = [put(0, 1, 1), put(2, 3, 2), put(4, 5, 3), take(6, None, None), drain(8, 9, [1])]
    judgement = judge(history)
    assert judgement.counts["lost"] == 1
    assert "In all 2 values are missing in this way" in judgement.anomalies[0].explanation
    assert "can have taken 1 of them at most" in judgement.anomalies[0].explanation
    excused = judge([*history[:2], *history[3:]])
    assert excused.verdict is Verdict.VALID
    assert excused.reason.endswith(
        "Dequeues without an answer may have taken 1 acknowledged values that did not come out."
    )


def test_a_dequeue_that_began_after_the_drain_excuses_nothing() -> None:
    """A dequeue that began after the drain does not excuse the value."""
    assert judge([put(0, 1, 1), drain(2, 3, []), take(4, None, None)]).counts["lost"] == 1
    assert judge([put(0, 1, 1), drain(2, 5, []), take(4, None, None, 3)]).counts["lost"] == 0


def test_a_value_that_came_out_twice_is_duplicated() -> None:
    """Duplicates are counted, as in Jepsen's total-queue; with exactly-once and at-most-once they are anomalies."""
    history = [put(0, 1, "a"), take(2, 3, "a"), take(4, 5, "a"), drain(6, 7, [])]
    judgement = judge(history)
    assert judgement.verdict is Verdict.VALID
    assert judgement.counts["duplicated"] == 1
    for delivery in (Delivery.EXACTLY_ONCE, Delivery.AT_MOST_ONCE):
        judgement = judge(history, delivery=delivery)
        assert kinds(judgement) == {"duplicated": 1}
        assert judgement.anomalies[0].rows == (0, 1, 2)
        assert judgement.anomalies[0].explanation == (
            'The value "a" was put in once at most, and came out 2 times: by a dequeue of process 1, and by a dequeue of '
            "process 1."
        )


def test_at_most_once_may_lose() -> None:
    """A lost value is counted, and is not an anomaly."""
    judgement = judge([put(0, 1, 1), put(2, 3, 2), drain(4, 5, [1])], delivery=Delivery.AT_MOST_ONCE)
    assert judgement.verdict is Verdict.VALID
    assert judgement.counts["lost"] == 1


@pytest.mark.parametrize(
    ("history", "why"),
    [
        ([put(0, 1, 1), take(2, 3, 2)], "No process put it in."),
        ([put(0, 1, 1, kind=FAIL), take(2, 3, 1)], "Its enqueue failed."),
        ([take(0, 1, 1), put(2, 3, 1)], "Its enqueue began only after that."),
        ([put(0, 1, 1), drain(2, 3, [1, "x"])], "No process put it in."),
    ],
)
def test_a_value_from_nowhere_is_unexpected(history: Sequence[Operation], why: str) -> None:
    """A value is unexpected without an enqueue, with a failed one, or before its enqueue began."""
    judgement = judge(history)
    assert kinds(judgement)["unexpected"] == 1
    assert why in judgement.anomalies[0].explanation


ORDERED = [
    (Order.PRODUCER, [put(0, 1, 1), put(2, 3, 2), take(4, 5, 2), take(6, 7, 1)], 1),
    (Order.PRODUCER, [put(0, 1, 1), put(2, 3, 2), drain(4, 5, [2, 1])], 1),
    (Order.PRODUCER, [put(0, 1, 1), put(2, 3, 2), drain(4, 5, [1, 2])], 0),
    (Order.PRODUCER, [put(0, 1, 1), put(2, 3, 2), take(4, 6, 2), take(5, 7, 1, 3)], 0),
    (Order.PRODUCER, [put(0, 1, 1), put(2, 3, 2, 5), take(4, 5, 2), take(6, 7, 1)], 0),
    (Order.REALTIME, [put(0, 1, 1), put(2, 3, 2, 5), take(4, 5, 2), take(6, 7, 1)], 1),
    (Order.REALTIME, [put(0, 2, 1), put(1, 3, 2, 5), take(4, 5, 2), take(6, 7, 1)], 0),
    (Order.REALTIME, [put(0, 1, 1), put(2, None, 2, 5), take(4, 5, 2), take(6, 7, 1)], 1),
    (Order.REALTIME, [put(0, None, 1), put(2, 3, 2, 5), take(4, 5, 2), take(6, 7, 1)], 0),
    (Order.REALTIME, [put(0, 1, 1), put(2, 3, 2, 5), drain(4, 5, [2, 1])], 1),
    (Order.REALTIME, [put(0, 1, 1), put(2, 3, 2), take(4, 5, 2), take(6, 7, 1), take(8, 9, 2)], 0),
]


@pytest.mark.parametrize(("order", "history", "reordered"), ORDERED)
def test_values_that_come_out_the_other_way_round_are_reordered(
    order: Order, history: Sequence[Operation], reordered: int
) -> None:
    """The option chooses the order of each producer or of all in real time; concurrent operations have no order."""
    judgement = judge(history, order=order)
    assert judgement.counts["reordered"] == kinds(judgement)["reordered"] == reordered
    assert "reordered" not in judge(history).counts
    assert not kinds(judge(history))["reordered"]


def test_a_reordered_pair_is_told() -> None:
    """The anomaly has both enqueues and both dequeues; the decisive one is that of the early value."""
    (anomaly,) = judge(ORDERED[0][1], order=Order.PRODUCER).anomalies
    assert (anomaly.rows, anomaly.decisive) == ((0, 1, 2, 3), 2)
    assert anomaly.explanation == (
        "Process 0 put in the value 1 before process 0 put in the value 2. They came out in the reverse order:  the value 2 by "
        "a dequeue of process 1, then the value 1 by a dequeue of process 1."
    )


@pytest.mark.parametrize(
    "history", [[], [put(0, None, 1), drain(2, 3, [1])], [put(0, 1, 1), take(2, None, None), drain(4, 5)]]
)
def test_nothing_tested_is_unknown(history: Sequence[Operation]) -> None:
    """Without an acknowledged enqueue, or without a value that came out, nothing was tested."""
    judgement = judge(history)
    assert judgement.verdict is Verdict.UNKNOWN
    assert "nothing was tested" in judgement.reason


def test_an_order_without_two_values_is_unknown() -> None:
    """With an order option, the reason says that no order was tested."""
    assert judge([put(0, 1, 1), drain(2, 3, [1])], order=Order.REALTIME).verdict is Verdict.UNKNOWN


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        (done(4, 5, 0, "push", 1, 1), "event 4: expected the function enqueue, dequeue or drain, found 'push'"),
        (done(4, 5, 0, "enqueue", None, None), "event 4: expected an enqueue of a value, found null"),
        (
            done(4, 5, 0, "dequeue", None, None),
            "expected a dequeue that returns a value, or fails if the queue is empty",
        ),
        (done(4, 5, 0, "drain", None, 7), "event 4: expected a drain that returns a list of values"),
        (done(4, 5, 0, "drain", None, None), "expected a drain that returns a list of values"),
        (done(4, 5, 0, "drain", None, {"a": 1}), "expected a drain that returns a list of values"),
        (done(4, 5, 0, "drain", None, [1, None]), "without null in it"),
    ],
)
def test_what_is_no_queue_is_refused(operation: Operation, expected: str) -> None:
    """The error has the operation and the expected form."""
    with pytest.raises(InputError, match=expected):
        judge([put(0, 1, 1), operation])


VALUES: dict[str, list[Value]] = {
    "small": [1, 2, 3, 4, 5, 6],
    "spread": [-(10**17), 0, 5, 10**9, 10**12, 10**17],
    "pairs": [[1, 2], [2, 1], [1, 1], [2, 2], [0, 0], [7, 7]],
    "mixed": [1, "1", [1, 2], [1, [2]], 1.5, True],
    "great": [10**18, 10**18 + 1, -(10**20), 10**17, "a", {"b": [1]}],
}


@pytest.mark.parametrize("values", VALUES.values(), ids=VALUES)
def test_values_may_be_anything(values: list[Value]) -> None:
    """Equal values match in an enqueue, a dequeue, and a drain of one, two or more values."""
    puts = [put(2 * n, 2 * n + 1, value) for n, value in enumerate(values)]
    for cut in range(7):
        rest = values[cut:]
        takes = [take(20 + 2 * n, 21 + 2 * n, value) for n, value in enumerate(values[:cut])]
        judgement = judge([*puts, *takes, drain(50, 51, rest)], order=Order.REALTIME, delivery=Delivery.EXACTLY_ONCE)
        assert (judgement.verdict, judgement.counts["ok"]) == (Verdict.VALID, 6)
        judgement = judge([*puts, *takes, drain(50, 51, [*rest[:-1], "new", values[0]])])
        assert judgement.counts["lost"] == bool(rest)
        assert judgement.counts["unexpected"] == 1
        assert judgement.counts["duplicated"] == 1
        subjects = {anomaly.kind: anomaly.subject for anomaly in judgement.anomalies}
        assert subjects["unexpected"] == "new"
        if rest:
            assert subjects["lost"] == rest[-1]


# The brute force tries every assignment of takes, answered or not, to enqueues.


def random_history(seed: int, *, unique: bool) -> Sequence[Operation]:
    """Returns a small history of a queue with random results."""
    draws = random.Random(seed)
    fresh = itertools.count(1)

    def call(process: int) -> tuple[str, Value]:
        f = draws.choices(("enqueue", "dequeue", "drain"), (5, 3, 2))[0]
        if f == "enqueue":
            return f, next(fresh) if unique else draws.randint(1, 3)
        return f, None

    def answer(process: int, asked: tuple[str, Value]) -> tuple[OpType, Value]:
        f, value = asked
        kind = draws.choices((OK, FAIL, INFO), (8, 1, 2))[0]
        if f == "enqueue":
            return kind, value
        top = 6 if unique else 4
        return kind, draws.randint(1, top) if f == "dequeue" else draws.choices(
            range(1, top + 1), k=draws.randint(0, 3)
        )

    return chance(draws, draws.randint(2, 9), call, answer)


def shuffled_history(seed: int) -> Sequence[Operation]:
    """Returns a history of a queue that returns its values in any order, and sometimes twice."""
    draws = random.Random(seed)
    fresh = itertools.count(1)
    inside: list[int] = []

    def call(process: int) -> tuple[str, Value]:
        f = draws.choices(("enqueue", "dequeue", "drain"), (5, 3, 1))[0]
        return f, next(fresh) if f == "enqueue" else None

    def pop() -> int:
        value = inside.pop(draws.randrange(max(1, len(inside) // 2)))
        if draws.random() < 0.1:
            inside.append(value)
        return value

    def answer(process: int, asked: tuple[str, Value]) -> tuple[OpType, Value]:
        f, value = asked
        kind = draws.choices((OK, INFO), (9, 1))[0]
        if f == "enqueue":
            inside.append(value)
            return kind, value
        if f == "drain":
            return kind, [pop() for _ in range(len(inside))]
        return (kind, pop()) if inside else (FAIL, None)

    return chance(draws, draws.randint(2, 30), call, answer)


def ends(operation: Operation) -> int:
    """Returns the end of an operation in the history."""
    return NEVER if operation.complete_index is None else operation.complete_index


def takes_of(operations: Iterable[Operation]) -> list[tuple[Value, Operation, int]]:
    """Returns each value that came out, with its operation and its place in it."""
    taken = []
    for operation in operations:
        if operation.type is OK and operation.f != "enqueue":
            values = operation.result if operation.f == "drain" else [operation.result]
            taken += [(value, operation, index) for index, value in enumerate(values)]
    return taken


def most_pairs(edges: Sequence[Sequence[int]]) -> int:
    """Returns the size of a maximum matching of claims and supplies, by exhaustive search."""
    best = 0
    for choice in itertools.product(*([None, *edge] for edge in edges)):
        used = [supply for supply in choice if supply is not None]
        if len(used) == len(set(used)):
            best = max(best, len(used))
    return best


def brute(operations: Sequence[Operation]) -> dict[str, int]:
    """Returns the counts, each by exhaustive search."""
    puts = [operation for operation in operations if operation.f == "enqueue"]
    takes = takes_of(operations)
    sources = [
        [n for n, p in enumerate(puts) if p.type is not FAIL and p.value == value and p.invoke_index < ends(operation)]
        for value, operation, _ in takes
    ]
    ok = sum(
        most_pairs([edges for edges, (value, _, _) in zip(sources, takes, strict=True) if value == wanted])
        for wanted in {value for value, _, _ in takes}
    )
    drains = [operation for operation in operations if operation.f == "drain"]
    missing = Counter(p.value for p in puts if p.type is OK)
    for wanted in missing:
        mine = [edges for edges, (value, _, _) in zip(sources, takes, strict=True) if value == wanted]
        missing[wanted] -= most_pairs(mine)
    claims = []
    for n, p in enumerate(puts):
        if p.type is OK and missing[p.value] > 0:
            after = [d for d in drains if d.type is OK and ends(p) < d.invoke_index]
            deadline = min(map(ends, after), default=NEVER)
            free = deadline == NEVER or any(d.type is INFO and d.invoke_index < deadline for d in drains)
            lent = [
                m for m, o in enumerate(operations) if o.f == "dequeue" and o.type is INFO and o.invoke_index < deadline
            ]
            claims.append((p.value, free, lent, n))
    lost = 0 if not claims else NEVER
    # It is unknown which of several puts of one value are missing: the best case counts.
    by_value: dict[Value, list[tuple[Value, bool, list[int], int]]] = defaultdict(list)
    for claim in claims:
        by_value[claim[0]].append(claim)
    options = [itertools.combinations(some, min(missing[value], len(some))) for value, some in by_value.items()]
    for choice in itertools.product(*map(list, options)):
        needy = [lent for some in choice for _, free, lent, _ in some if not free]
        lost = min(lost, len(needy) - most_pairs(needy))
    unexpected = sum(not source for source in sources)
    return {"ok": ok, "unexpected": unexpected, "duplicated": len(takes) - ok - unexpected, "lost": lost}


def brute_reordered(operations: Sequence[Operation], order: Order) -> set[int]:
    """Returns the values that were overtaken, by comparing all pairs."""
    puts = [operation for operation in operations if operation.f == "enqueue" and operation.type is not FAIL]
    takes = takes_of(operations)
    out = Counter(value for value, _, _ in takes)
    into = Counter(p.value for p in puts)
    reordered = set()
    for a, b in itertools.permutations(puts, 2):
        if any(out[p.value] != 1 or into[p.value] != 1 for p in (a, b)) or ends(a) >= b.invoke_index:
            continue
        if order is Order.PRODUCER and a.process != b.process:
            continue
        (_, out_a, place_a), (_, out_b, place_b) = (
            next(own_take for own_take in takes if own_take[0] == p.value) for p in (a, b)
        )
        if ends(out_a) < a.invoke_index or ends(out_b) < b.invoke_index:
            continue  # unexpected
        if ends(out_b) < out_a.invoke_index or (out_a is out_b and place_b < place_a):
            reordered.add(a.value)
    return reordered


@pytest.mark.parametrize("unique", [True, False], ids=["unique", "repeated"])
def test_the_judge_agrees_with_a_brute_force(unique: bool) -> None:
    """The counts of small histories equal those of the exhaustive search, repeated values included."""
    seen: Counter[str] = Counter()
    for seed in range(250):
        history = random_history(seed, unique=unique)
        judgement, expected = judge(history, delivery=Delivery.EXACTLY_ONCE), brute(history)
        assert {name: judgement.counts[name] for name in expected} == expected, (seed, history)
        wrong = {name: number for name, number in expected.items() if number and name != "ok"}
        assert kinds(judgement) == wrong, seed
        seen.update(wrong.keys() or {"fine"})
    assert min(seen[name] for name in ("lost", "unexpected", "duplicated")) > 10
    assert seen["fine"] > 3


@pytest.mark.parametrize("order", [Order.PRODUCER, Order.REALTIME])
def test_the_order_agrees_with_a_brute_force(order: Order) -> None:
    """The overtaken values equal those of a comparison of all pairs."""
    seen = 0
    for seed in range(200):
        history = random_history(seed, unique=True) if seed % 5 == 0 else shuffled_history(seed)
        judgement, expected = judge(history, order=order), brute_reordered(history, order)
        reordered = [anomaly for anomaly in judgement.anomalies if anomaly.kind == "reordered"]
        assert {anomaly.subject for anomaly in reordered} == expected, (seed, history)
        seen += len(expected)
    assert seen > 10
