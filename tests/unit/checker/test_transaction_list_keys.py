"""What is assumed of each key of lists: sequential and linearizable keys, in words and in each path."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from checker.formats.columns import of_operations
from checker.transactions.judge import judge
from harness.errors import InputError
from harness.op import OpType
from harness.verdict import Verdict
from tests.unit.checker.transaction_orders import transaction
from workloads.transactions import ListAppendOptions, ListAppendWorkload

if TYPE_CHECKING:
    from collections.abc import Sequence

    from checker.judging import Judgement
    from harness.op import Operation


def judged(operations: Sequence[Operation], *sources: str) -> Judgement:
    """Judges lists as serializable, so that only what is assumed orders transactions besides their data."""
    return judge(of_operations(operations), workload="list-append", model="serializable", sources=sources)


@pytest.mark.parametrize(
    ("source", "reader", "how"),
    [
        (
            "linearizable-keys",
            1,
            "ended at event 1, before T2 (process 1, events 2-3), which read nil, began at event 2",
        ),
        (
            "sequential-keys",
            0,
            "and T2 (process 0, events 2-3), which read nil, are transactions of process 0, in this order",
        ),
    ],
)
def test_a_stale_read_of_a_key_contradicts_the_assumption(source: str, reader: int, how: str) -> None:
    """Alone it is serializable; the sentence has both transactions, and the edge between them."""
    operations = [
        transaction(0, OpType.OK, [["append", "x", 1]], start=0, end=1),
        transaction(reader, OpType.OK, [["r", "x", None]], start=2, end=3),
        transaction(2, OpType.OK, [["r", "x", [1]]], start=4, end=5),
    ]
    assert judged(operations).verdict is Verdict.VALID
    judgement = judged(operations, source)
    assert judgement.verdict is Verdict.INVALID
    [anomaly] = judgement.anomalies
    assert anomaly.kind == "cyclic-versions"
    assert how in anomaly.explanation
    assert "contradicts the lists. T1 (process 0, events 0-1), which appended 1, " in anomaly.explanation
    assert "But what T2 read lacks 1." in anomaly.explanation
    assert anomaly.edges == ((0, 1, "1 before nil"),)
    assert judgement.figures["assumed-orders"] == [source]


def test_an_append_before_an_older_one_contradicts_the_assumption() -> None:
    """The list that was read has them in the other order."""
    operations = [
        transaction(0, OpType.OK, [["append", "x", 1]], start=0, end=1),
        transaction(1, OpType.OK, [["append", "x", 2]], start=2, end=3),
        transaction(2, OpType.OK, [["r", "x", [2, 1]]], start=4, end=5),
    ]
    assert judged(operations).verdict is Verdict.VALID
    [anomaly] = judged(operations, "linearizable-keys").anomalies
    assert "But in the lists, 2 comes before 1." in anomaly.explanation
    assert judged(operations, "sequential-keys").verdict is Verdict.VALID


@pytest.mark.parametrize(
    ("source", "process", "why"),
    [
        ("sequential-keys", 0, "(one process had 1 before 2)"),
        ("linearizable-keys", 1, "(a transaction with 1 ended before one with 2 began)"),
    ],
)
def test_appends_that_nobody_read_follow_each_other(source: str, process: int, why: str) -> None:
    """Their order is an edge of a cycle, and the sentence says what it follows from."""
    operations = [
        transaction(0, OpType.OK, [["append", "x", 1], ["r", "y", [1]]], start=0, end=1),
        transaction(process, OpType.OK, [["append", "x", 2], ["append", "y", 1]], start=2, end=3),
    ]
    assert judged(operations).verdict is Verdict.VALID
    [anomaly] = judged(operations, source).anomalies
    assert anomaly.kind == "G1c"
    assert f"T2 appended 1 to x, and T1 appended 2 after it {why}, so T2 precedes T1." in anomaly.explanation


def test_an_append_that_nobody_read_comes_last() -> None:
    """It was acknowledged before a read that lacks it began, so the read is stale."""
    operations = [
        transaction(0, OpType.OK, [["append", "x", 1]], start=0, end=1),
        transaction(1, OpType.OK, [["append", "x", 2]], start=2, end=3),
        transaction(2, OpType.OK, [["r", "x", [1]]], start=4, end=5),
    ]
    assert judged(operations).verdict is Verdict.VALID
    [anomaly] = judged(operations, "linearizable-keys").anomalies
    assert "But what T2 read lacks 2." in anomaly.explanation


def test_a_workload_of_lists_has_the_options() -> None:
    """As for registers; an append without an answer may come later."""
    workload = ListAppendWorkload(ListAppendOptions(consistency_model="serializable", linearizable_keys=True))
    assert workload.question().sources == ("linearizable-keys",)
    open_ = [
        transaction(0, OpType.INFO, [["append", "x", 1]], start=0, end=None),
        transaction(1, OpType.OK, [["r", "x", None], ["append", "y", 1]], start=2, end=3),
        transaction(2, OpType.OK, [["r", "x", [1]], ["r", "y", [1]]], start=4, end=5),
    ]
    assert workload.judge(of_operations(open_)).verdict is Verdict.VALID
    both = ListAppendWorkload(ListAppendOptions(sequential_keys=True, linearizable_keys=True))
    assert both.question().sources == ("sequential-keys", "linearizable-keys")


def test_a_history_without_real_time_is_refused() -> None:
    """The assumption needs to know when transactions began."""
    alone = of_operations([transaction(0, OpType.OK, [["append", "x", 1]], start=0, end=1)])
    object.__setattr__(alone, "lacks", ("realtime",))
    with pytest.raises(InputError, match="which linearizable-keys needs"):
        judge(alone, workload="list-append", model="serializable", sources=("linearizable-keys",))
