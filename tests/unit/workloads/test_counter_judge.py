"""The judge of counters: bounds, verdicts and reasons."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from checker.formats.columns import of_operations
from checker.models import model
from checker.search.brute import linearizable as brute
from harness.errors import InputError
from harness.op import Operation, OpType
from harness.verdict import Verdict
from tests.unit.workloads.spoiled_histories import operation, random_history
from workloads.counter import CounterWorkload
from workloads.counter.workload import CounterOptions

if TYPE_CHECKING:
    from checker.judging import Judgement

GREAT = 3 * 10**18  # a few of these do not fit 64 bits


def judged(operations: list[Operation]) -> Judgement:
    """Judges one counter."""
    return CounterWorkload().judge(of_operations(operations))


def add(begin: int, end: int, amount: Any, kind: OpType = OpType.OK) -> Operation:
    """Returns an add."""
    return operation(begin, end, "add", amount, amount, kind)


def read(begin: int, end: int, count: Any) -> Operation:
    """Returns a read."""
    return operation(begin, end, "read", None, count, process=1)


def bounds(one: Operation, operations: list[Operation]) -> tuple[int, int]:
    """Returns the bounds of a read, directly by the judge's docstring."""
    low = high = 0
    for op in operations:
        if op.f != "add" or op.type is OpType.FAIL or op.invoke_index > (one.complete_index or 0):
            continue
        sure = op.type is OpType.OK and op.complete_index is not None and op.complete_index < one.invoke_index
        low += op.value if sure else min(0, op.value)
        high += op.value if sure else max(0, op.value)
    return low, high


def drawn(seed: int) -> list[Operation]:
    """Returns a small random history with wrong counts now and then."""
    source = random.Random(seed)
    amounts = source.choice([[1], [1, 2, 3], [-2, 1, 3], [GREAT, -GREAT, 1], [10**18 - 1, -7]])
    bad = source.random() < 0.5
    count = 0

    def call(number: int) -> tuple[str, Any]:
        return ("read", None) if source.random() < 0.5 else ("add", source.choice(amounts))

    def apply(f: str, value: Any) -> Any:
        nonlocal count
        count += value if f == "add" else 0
        return value if f == "add" else count

    def spoil(f: str, result: Any) -> Any:
        wrong = f == "read" and result is not None and bad and source.random() < 0.4
        return result + source.choice([-1, 1, *amounts]) if wrong else result

    return random_history(source, size=source.randint(1, 9), call=call, apply=apply, spoil=spoil)


def test_bounds_are_those_of_the_definition() -> None:
    """Each read is in or out of bounds by the definition; a history with a read out of bounds is never linearizable."""
    seen: Counter[tuple[Verdict, bool]] = Counter()
    for seed in range(700):
        operations = drawn(seed)
        judgement = judged(operations)
        reads = [op for op in operations if op.f == "read" and op.type is OpType.OK]
        all_bounds = [bounds(own_read, operations) for own_read in reads]
        out = [
            own_read.invoke_index
            for own_read, (low, high) in zip(reads, all_bounds, strict=True)
            if not low <= own_read.result <= high
        ]
        assert [operations[anomaly.decisive or 0].invoke_index for anomaly in judgement.anomalies] == out, seed
        assert (judgement.verdict is Verdict.INVALID) == bool(out)
        if reads:
            assert judgement.figures["widest-interval"] == max(high - low for low, high in all_bounds)
            away = [
                max(low - own_read.result, own_read.result - high, 0)
                for own_read, (low, high) in zip(reads, all_bounds, strict=True)
            ]
            assert judgement.figures["greatest-distance"] == max(away)
        small = all(abs(op.value or 0) < 10**17 and abs(op.result or 0) < 10**17 for op in operations)
        legal = brute(model("counter"), operations) if small else not out
        assert not (out and legal), seed
        seen[judgement.verdict, bool(legal)] += 1
    assert min(seen[Verdict.INVALID, False], seen[Verdict.VALID, True], seen[Verdict.UNKNOWN, True]) > 50, seen
    assert seen[Verdict.VALID, False] > 5, "the judge says that it sees less than linearizability"


@pytest.mark.parametrize(
    "operations",
    [
        [add(0, 9, 2, OpType.INFO), read(1, 2, 1)],
        [add(0, 1, 5), add(2, 90, 1, OpType.INFO), read(3, 4, 6), read(5, 6, 5)],
    ],
)
def test_what_it_cannot_see_is_what_it_says(operations: list[Operation]) -> None:
    """Impossible sums and decreasing counts can be within the bounds, but are not linearizable."""
    assert judged(operations).verdict is not Verdict.INVALID
    assert not judged(operations).counts["out-of-bounds"]
    assert not brute(model("counter"), operations)


def test_a_read_out_of_bounds_says_by_how_much() -> None:
    """The explanation has the interval and the distance; the operations are the read and the adds that may count."""
    judgement = judged([add(0, 1, 5), add(2, 9, 3, OpType.INFO), add(3, 8, -2), read(4, 5, 9), read(10, 11, 2)])
    assert judgement.verdict is Verdict.INVALID
    first, second = judgement.anomalies
    assert first.explanation == (
        "A read returned 9, but between 3 and 8 was possible: it is 1 too large. 2 adds may have counted or not when it was"
        " made, from 0.004000 s to 0.005000 s."
    )
    assert first.rows == (1, 2, 3)
    assert "between 3 and 6 was possible: it is 1 too small" in second.explanation
    assert judgement.figures == {
        "reads": 2, "out-of-bounds": 2, "widest-interval": 5, "greatest-distance": 1, "last-interval": [3, 6],
    }  # fmt: skip
    assert judgement.counts == {"adds": 2, "reads": 2, "out-of-bounds": 2, "not-read": 0}


@pytest.mark.parametrize(
    "operations",
    [
        [],
        [add(0, 1, 5)],
        [read(0, 1, 0)],
        [add(0, 1, 5, OpType.INFO), read(2, 3, 5)],
        [read(0, 1, 0), add(2, 3, 5)],
        [add(0, 3, 5), read(1, 2, 0)],
        [add(0, 1, 5), operation(2, 3, "read", None, None, OpType.INFO)],
    ],
)
def test_a_counter_that_was_not_read_after_an_add_is_unknown(operations: list[Operation]) -> None:
    """If no read could show a loss, nothing was tested."""
    judgement = judged(operations)
    assert judgement.verdict is Verdict.UNKNOWN
    assert "nothing was tested" in judgement.reason


def test_with_rest_only_reads_long_after_the_last_add_are_judged() -> None:
    """A read that misses an add is invalid at rest, and says nothing before."""
    second = 10**9

    def late(begin: int, after_s: float, count: int) -> Operation:
        moment = int(3 * second + after_s * second)
        return replace(read(begin, begin + 1, count), start_ns=moment, end_ns=moment + 1)

    added = replace(add(0, 1, 3), start_ns=second, end_ns=3 * second)
    workload = CounterWorkload(CounterOptions(rest=5.0))
    for after_s, count, verdict in (
        (1.0, 0, Verdict.UNKNOWN),
        (6.0, 0, Verdict.INVALID),
        (6.0, 3, Verdict.VALID),
    ):
        assert workload.judge(of_operations([added, late(2, after_s, count)])).verdict is verdict


def test_adds_after_the_last_read_are_said() -> None:
    """The reason of a valid counter has the number of adds after the last read."""
    judgement = judged([add(0, 1, 5), read(2, 3, 5), add(4, 5, 1), add(6, 7, 1)])
    assert judgement.verdict is Verdict.VALID
    assert judgement.reason.endswith("2 adds ended after the last read began, so a loss of them was not seen.")


@pytest.mark.parametrize(
    ("operations", "message"),
    [
        ([add(0, 1, "5")], "event 0: expected an integer as the amount of an add, found '5'"),
        (
            [operation(0, 1, "add", value=True, result=True)],
            "event 0: expected an integer as the amount of an add, found True",
        ),
        ([add(0, 1, 1.5)], "event 0: expected an integer as the amount of an add, found 1.5"),
        ([add(0, 1, 1), read(2, 3, None)], "event 3: expected an integer as the result of a read, found None"),
        ([add(0, 1, 1), read(2, 3, [1, 2])], r"event 3: expected an integer as the result of a read, found \[1, 2\]"),
        ([operation(4, 5, "write", 1, 1)], "event 4: a counter has the functions add and read, found 'write'"),
    ],
)
def test_what_is_no_counter_is_refused(operations: list[Operation], message: str) -> None:
    """The error has the event, the expected and the actual value."""
    with pytest.raises(InputError, match=message):
        judged(operations)
