"""Anomalies of transactions, their explanations, the models that they contradict, and bad input."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from checker.consistency import MODELS, UNDECIDED, find, order_of, prohibited, ruled_out
from checker.formats.columns import of_operations
from checker.transactions.judge import judge
from harness.errors import ExitCode, InputError
from harness.op import OpType
from harness.verdict import Verdict
from tests.unit.checker.transaction_orders import transaction

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from checker.judging import Judgement
    from harness.op import Operation
    from tests.unit.checker.conftest import Ran


def history(*transactions: str) -> list[Operation]:
    """Returns transactions one after the other, each on its own process: `ax1 rx12 ry`, with `!` failed and `?` unknown."""
    listed = []
    for number, text in enumerate(transactions):
        mops: list[list[Any]] = [
            ["append", word[1], int(word[2:])] if word[0] == "a" else ["r", word[1], [int(digit) for digit in word[2:]]]
            for word in text.strip("!?").split()
        ]
        type_ = OpType.FAIL if text[0] == "!" else OpType.INFO if text[0] == "?" else OpType.OK
        end = None if type_ is OpType.INFO else 100 + number
        listed.append(transaction(number, type_, mops, start=number, end=end))
    return listed


def judged(operations: Sequence[Operation], model: str = "strict-serializable") -> Judgement:
    """Returns the judgement of lists."""
    return judge(of_operations(operations), workload="list-append", model=model)


def of_registers(*transactions: str, model: str = "strict-serializable", sources: Sequence[str] = ()) -> Judgement:
    """Returns the judgement of registers: `wx1 rx2 ry`, all at the same time."""
    listed = []
    for number, text in enumerate(transactions):
        mops = [[word[0], word[1], int(word[2:]) if word[2:] else None] for word in text.strip("!?").split()]
        type_ = OpType.FAIL if text[0] == "!" else OpType.INFO if text[0] == "?" else OpType.OK
        end = None if type_ is OpType.INFO else 100 + number
        listed.append(transaction(number, type_, mops, start=number, end=end))
    return judge(of_operations(listed), workload="rw-register", model=model, sources=sources)


@pytest.mark.parametrize(
    ("kind", "transactions", "sentence"),
    [
        (
            "G0",
            ("ax1 ay2", "ax2 ay1", "rx12 ry12"),
            "T1 (process 0, events 0-100) appended 1 to x, and T2 (process 1, events 1-101) appended 2 after it, so T1",
        ),
        ("G1a", ("!ax1", "rx1"), "read x as [1], with 1, but T2 (process 0, events 0-100) appended 1 and failed"),
        (
            "G1b",
            ("ax1 ax2", "rx1"),
            "read x as [1], which ends with 1, but T2 (process 0, events 0-100) appended to x again after 1",
        ),
        (
            "G1c",
            ("ax1 ry1", "ay1 rx1"),
            "appended 1 to x, and T2 (process 1, events 1-101) read x as [1], so T1 precedes T2",
        ),
        (
            "G-single-item",
            ("ax1 ay1", "rx1 ry"),
            "read y as [], and T2 (process 0, events 0-100) appended 1 after that, so T1 precedes T2",
        ),
        ("G2-item", ("rx ay1", "ry ax1", "rx1 ry1"), "T2 precedes T1. A transaction cannot precede itself."),
        ("lost-update", ("rx ax1", "rx ax2"), "each read x as [] first, and then appended to it"),
        ("dirty-update", ("!ax1", "ax2", "rx12"), "appended 1 to x and failed, but T2"),
        ("internal", ("rx ax1 rx2", "ax2"), "read x as [2], but it had read x as [] and appended 1 after that"),
        ("internal", ("ax1 rx2", "ax2"), "read x as [2], but it had appended 1 before"),
        ("future-read", ("rx1 ax1",), "read x as [1], with 1, which the same transaction appended only later"),
        ("garbage-read", ("rx7",), "read x as [7], but no transaction appended 7"),
        ("duplicate-elements", ("ax1", "rx11"), "read x as [1 1], which has 1 twice"),
        (
            "incompatible-order",
            ("ax1", "ax2", "rx12", "rx21"),
            "read x as [1 2], and T2 (process 3, events 3-103) read it as [2 1]; neither list is the beginning of the other",
        ),
    ],
)
def test_each_type_has_an_explanation(kind: str, transactions: tuple[str, ...], sentence: str) -> None:
    """The smallest history of each type has the type, and words that name the transactions and the reason."""
    judgement = judged(history(*transactions))
    assert judgement.verdict is Verdict.INVALID
    [anomaly] = [candidate for candidate in judgement.anomalies if candidate.kind == kind]
    assert sentence in anomaly.explanation
    assert anomaly.explanation.endswith(f"So the history is not {' and not '.join(ruled_out([kind])[0])}.")


def test_three_anti_dependencies_apart() -> None:
    """A cycle with two anti-dependencies that do not follow each other is G-nonadjacent-item: a long fork."""
    judgement = judged(history("ax1", "ay1", "rx1 ry", "rx ry1"))
    assert judgement.counts["G-nonadjacent-item"] == 1
    assert "G-single-item" not in judgement.counts
    assert judged(history("ax1", "ay1", "rx1 ry", "rx ry1"), "repeatable-read").verdict is Verdict.INVALID
    assert judged(history("ax1", "ay1", "rx1 ry", "rx ry1"), "read-committed").verdict is Verdict.VALID


@pytest.mark.parametrize(
    ("model", "suffix"), [("strict-serializable", "realtime"), ("strong-session-serializable", "process")]
)
def test_order_besides_the_data(model: str, suffix: str) -> None:
    """A stale read contradicts real time, or the order of its process, and the words name it."""
    write = transaction(0, OpType.OK, [["append", "x", 1]], start=0, end=1)
    read = transaction(0, OpType.OK, [["r", "x", None]], start=2, end=3)
    judgement = judged([write, read], model)
    [anomaly] = judgement.anomalies
    assert anomaly.kind == f"G-single-item-{suffix}"
    assert (
        "ended at event 1, before" if suffix == "realtime" else "are transactions of process 0"
    ) in anomaly.explanation
    assert judged([write, read], "serializable").verdict is Verdict.VALID


def test_a_long_ring_is_found_among_many() -> None:
    """A cycle of 2,000 transactions with one anti-dependency is found, in a component of all of them."""
    count = 2_000
    ring = [
        transaction(n, OpType.OK, [["append", f"k{n}", 1], ["r", f"k{n - 1}", [1]]], start=n, end=10_000 + n)
        for n in range(1, count)
    ]
    first = transaction(0, OpType.OK, [["append", "k0", 1], ["r", f"k{count - 1}", None]], start=0, end=10_000)
    last = transaction(count, OpType.OK, [["r", f"k{count - 1}", [1]], ["r", "k0", None]], start=count, end=20_000)
    judgement = judged([first, *ring, last])
    assert [(anomaly.kind, len(anomaly.rows)) for anomaly in judgement.anomalies] == [("G-single-item", 13)]
    assert f"a cycle of {count + 1} transactions." in judgement.anomalies[0].explanation
    assert "among" not in judgement.anomalies[0].explanation
    assert f"{count + 1 - 12} more edges lead back to T1" in judgement.anomalies[0].explanation


def test_many_readers_before_many_writers_take_little_room() -> None:
    """In a store that lost everything, each of 20,000 transactions that read nothing precedes all writers but itself."""
    count = 20_000
    some = [
        transaction(n % 50, OpType.OK, [["r", "x", None], ["append", "x", n]], start=2 * n, end=2 * n + 1)
        for n in range(count)
    ]
    judgement = judged(some, "serializable")
    assert judgement.figures["dependencies"] == count * count
    assert judgement.counts == {"transactions": count, "G-SI": 1, "G2-item": 1, "lost-update": 1}
    lost, cycle, snapshots = sorted(judgement.anomalies, key=lambda anomaly: anomaly.kind, reverse=True)
    assert "and 19998 more each read x as [] first" in lost.explanation
    assert len(cycle.rows) == 2
    assert "read x as [], and T2 (process" in cycle.explanation
    assert "appended " in cycle.explanation
    assert "both appended to x, so they must not overlap" in snapshots.explanation


def test_types_that_a_model_allows_are_named() -> None:
    """A valid verdict states the anomalies that the model allows."""
    judgement = judged(history("rx ay1", "ry ax1", "rx1 ry1"), "snapshot-isolation")
    assert judgement.verdict is Verdict.VALID
    assert "snapshot-isolation allows these anomalies, which are there: G2-item." in judgement.reason
    assert judgement.figures["not"] == ["repeatable-read"]


def test_nothing_is_tested_without_a_dependency() -> None:
    """Appends that nobody reads, and no transactions, are unknown."""
    for some in (history("ax1", "ax2"), []):
        judgement = judged(some)
        assert judgement.verdict is Verdict.UNKNOWN
        assert "nothing was tested" in judgement.reason


@pytest.mark.parametrize(
    ("kind", "transactions", "sentence"),
    [
        ("G1a", ("!wx1", "rx1"), "read x as 1, but T2 (process 0, events 0-100) wrote 1 and failed"),
        ("G1b", ("wx1 wx2", "rx1"), "read x as 1, but T2 (process 0, events 0-100) wrote to x again after 1"),
        (
            "G1c",
            ("wx1 ry1", "wy1 rx1"),
            "wrote 1 to x, and T2 (process 1, events 1-101) read x as 1, so T1 precedes T2",
        ),
        ("G-single-item", ("wx1 wy1", "rx1 ry"), "read y as nil, and T2 (process 0, events 0-100) wrote 1 after that"),
        ("G2-item", ("rx wy1", "ry wx1"), "T2 precedes T1. A transaction cannot precede itself."),
        ("lost-update", ("rx wx1", "rx wx2"), "each read x as nil first, and then wrote to it"),
        ("internal", ("wx1 rx2", "wx2"), "read x as 2, but it had written 1 before"),
        ("internal", ("rx rx2", "wx2"), "read x as 2, but it had read x as nil"),
        ("future-read", ("rx1 wx1",), "read x as 1, which the same transaction wrote only later"),
        ("garbage-read", ("rx7",), "read x as 7, but no transaction wrote 7"),
    ],
)
def test_each_type_of_registers_has_an_explanation(kind: str, transactions: tuple[str, ...], sentence: str) -> None:
    """The smallest history of each type has the type, and words that name the transactions and the reason."""
    judgement = of_registers(*transactions)
    assert judgement.verdict is Verdict.INVALID
    [anomaly] = [candidate for candidate in judgement.anomalies if candidate.kind == kind]
    assert sentence in anomaly.explanation


@pytest.mark.parametrize(
    ("kind", "model"),
    [
        ("observed-transaction-vanishes", "monotonic-atomic-view"),
        ("fractured-read", "read-atomic"),
        ("fractured-read", "update-atomic"),
        ("G-causal", "causal-cerone"),
    ],
)
def test_weak_models_of_registers(kind: str, model: str) -> None:
    """A transaction reads a write of another one, and an older version of another key: the initial one or a known one."""
    judgement = of_registers("wx1 wy1", "rx1 ry", model=model)
    assert [anomaly.kind for anomaly in judgement.anomalies] == [kind]
    chain = ("wx1 wy1", "rx1 wx2 ry1 wy2", "rx2 ry1")
    implied = of_registers(*chain, model=model)
    assert implied.verdict is Verdict.INVALID
    assert "implied-orders" in implied.figures
    judgement = of_registers(*chain, model=model, sources=["writes-follow-reads"])
    assert [anomaly.kind for anomaly in judgement.anomalies] == [kind]


def test_versions_follow_what_is_assumed() -> None:
    """Each source gives an order, and sources that disagree are cyclic-versions; what the model implies needs none."""
    fork = ("wx1", "rx1 wx2", "rx2 ry", "wy1", "ry1 rx1")
    implied = of_registers(*fork, model="serializable")
    assert implied.counts == {"transactions": 5, "G2-item": 1}
    assert "implied-orders" in implied.figures
    judgement = of_registers(*fork, model="serializable", sources=["writes-follow-reads"])
    assert judgement.counts == {"transactions": 5, "G-nonadjacent-item": 1}
    assert judgement.anomalies[0].kind == "G-nonadjacent-item"
    assert "wrote 2 after that (a transaction read 1 first, and wrote 2)" in judgement.anomalies[0].explanation
    assert "wrote 1 after that, so T1 precedes T2" in judgement.anomalies[0].explanation
    disagree = of_registers("rx2 wx1", "rx1 wx2", sources=["writes-follow-reads"])
    assert "cyclic-versions" in disagree.counts
    [cyclic] = [anomaly for anomaly in disagree.anomalies if anomaly.kind == "cyclic-versions"]
    assert (
        "the assumed order of the versions of x has a cycle. 2 precedes 1, because T1 (process 0, events 0-100) read 2 first, "
        "and wrote 1. 1 precedes 2, because T2 (process 1, events 1-101) read 1 first, and wrote 2. No version precedes itself."
    ) in cyclic.explanation
    assert (sorted(cyclic.rows), cyclic.edges) == ([0, 1], ())


@pytest.mark.parametrize(
    ("source", "reader", "how"),
    [
        ("linearizable-keys", 7, "{0}, ended at event {1}, before {2}, began at event {3}."),
        ("sequential-keys", 0, "{0}, and {2}, are transactions of process 0, in this order."),
        ("transaction-order", 7, "the system says that it committed {0}, before {2}."),
    ],
)
def test_a_cycle_of_versions_has_each_step_with_its_transactions(source: str, reader: int, how: str) -> None:
    """A value that comes back after another one contradicts the assumption, and the words and the edges show the three."""
    first = replace(transaction(0, OpType.OK, [["w", "x", 1]], start=0, end=1), order=1)
    second = replace(transaction(0, OpType.OK, [["w", "x", 2]], start=2, end=3), order=2)
    third = replace(transaction(reader, OpType.OK, [["r", "x", 1], ["w", "x", 3]], start=4, end=5), order=0)
    judgement = judge(
        of_operations([first, second, third]), workload="rw-register", model="serializable",
        sources=["writes-follow-reads", source],
    )  # fmt: skip
    [cyclic] = [anomaly for anomaly in judgement.anomalies if anomaly.kind == "cyclic-versions"]
    names = ("T1 (process 0, events 0-1), which wrote 1", "T2 (process 0, events 2-3), which wrote 2")
    if source == "transaction-order":
        assert cyclic.edges == ((2, 0, "3 before 1"),)
        assert "1 precedes 3, because T1 (process 7, events 4-5) read 1 first, and wrote 3." in cyclic.explanation
        assert (
            "the system says that it committed T1, which wrote 3, before T2 (process 0, events 0-1), which"
            in cyclic.explanation
        )
        return
    assert cyclic.edges == ((0, 1, "1 before 2"), (1, 2, "2 before 1"))
    assert f"1 precedes 2, because {how.format(names[0], 1, names[1], 2)}" in cyclic.explanation
    last = f"T3 (process {reader}, events 4-5), which read 1"
    assert f"2 precedes 1, because {how.format('T2, which wrote 2', 3, last, 4)}" in cyclic.explanation


def test_the_initial_value_comes_first_in_a_cycle_of_versions() -> None:
    """A read of nil after a write contradicts linearizable keys."""
    written = transaction(0, OpType.OK, [["w", "x", 1]], start=0, end=1)
    read = transaction(1, OpType.OK, [["r", "x", None]], start=2, end=3)
    judgement = judge(
        of_operations([written, read]), workload="rw-register", model="serializable", sources=["linearizable-keys"]
    )
    [cyclic] = judgement.anomalies
    assert "nil precedes 1, because it is the initial value (T1 wrote 1)." in cyclic.explanation
    assert cyclic.edges == ((0, 1, "1 before nil"),)


@pytest.mark.parametrize(
    ("source", "process", "why"),
    [
        ("sequential-keys", 0, "one process had 1 before 2"),
        ("linearizable-keys", 1, "a transaction with 1 ended before one with 2 began"),
    ],
)
def test_versions_follow_processes_and_real_time(source: str, process: int, why: str) -> None:
    """A later write of the same process, or a write that began after another one had ended, has the later version."""
    first = transaction(0, OpType.OK, [["w", "x", 1]], start=0, end=1)
    second = transaction(process, OpType.OK, [["w", "x", 2], ["w", "y", 1]], start=3, end=4)
    read = transaction(7, OpType.OK, [["r", "y", 1], ["r", "x", 1]], start=2, end=5)
    columns = of_operations([first, read, second])
    assert judge(columns, workload="rw-register", model="serializable").verdict is Verdict.VALID
    judgement = judge(columns, workload="rw-register", model="serializable", sources=[source])
    assert judgement.counts == {"transactions": 3, "G-single-item": 1}
    assert f"wrote 2 after that ({why}), so" in judgement.anomalies[0].explanation


@pytest.mark.parametrize("read", ["rx32", "rx324", "rx2"])
def test_a_list_has_the_appends_of_a_transaction_in_their_order(read: str) -> None:
    """A list with an element, but not after what the same transaction appended before it, contradicts read-committed."""
    judgement = judged(history("ax1 ax2 ax3" if read == "rx2" else "ax2 ax3", "ax4", read), "read-committed")
    assert judgement.counts["incompatible-order"] == 1
    [anomaly] = [candidate for candidate in judgement.anomalies if candidate.kind == "incompatible-order"]
    elem, before = (2, 1) if read == "rx2" else (3, 2)
    assert (
        f", where {elem} does not follow {before}, but T2 (process 0, events 0-100) appended {before} and then {elem}."
        in (anomaly.explanation)
    )
    assert anomaly.rows == (2, 0)


def test_transactions_that_write_a_common_key_do_not_overlap_in_snapshots() -> None:
    """Each reads x or y before the other's append, and both append to z: this is legal only if they may overlap."""
    skew = history("rx ay1 az1", "ry ax1 az2")
    assert judged(skew, "repeatable-read").counts == {"transactions": 2, "G2-item": 1}
    assert judged(history("rx ay1", "ry ax1"), "snapshot-isolation").verdict is Verdict.VALID
    judgement = judged(skew, "snapshot-isolation")
    assert judgement.counts == {"transactions": 2, "G-SI": 1}
    assert judgement.figures["not"] == ["repeatable-read", "snapshot-isolation"]
    assert ruled_out(["G-SI"])[0] == ["snapshot-isolation"]
    [anomaly] = judgement.anomalies
    assert "both appended to z, so they must not overlap, so T1 precedes T2." in anomaly.explanation
    assert anomaly.edges == ((0, 1, "rw x"), (1, 0, "rw y"))


@pytest.mark.parametrize("many", [1, 2, 5])
def test_conflicts_with_many_readers_and_writers(many: int) -> None:
    """The same if several transactions read the version that several others replace."""
    others = [f"rx ry aq{number}" for number in range(1, many + 1)]
    blind = [f"ax{number} ay{number}" for number in range(2, many + 2)]
    both = [("rx ay1 az1", "ry ax1 az2"), ("rx ax9 ay1 az1", "ry ax1 az2")]
    for pair in both:
        judgement = judged(history(*pair, *others, *blind), "snapshot-isolation")
        assert judgement.counts["G-SI"] == 1, pair
    free = judged(history("rx ay1 az1", "ry ax1 av2", *others, *blind), "snapshot-isolation")
    assert free.verdict is Verdict.VALID


def test_an_unanswered_writer_whose_value_was_read_counts() -> None:
    """Its other writes happened too."""
    judgement = of_registers("?wx1 wy1", "rx1 ry", model="serializable")
    assert judgement.counts["G-single-item"] == 1


def test_a_write_of_null_is_one_of_the_initial_value() -> None:
    """A read of null may show it or the initial value; what else is there is judged."""
    judgement = of_registers("wx wy1", "rx ry1")
    assert judgement.verdict is Verdict.UNKNOWN
    assert judgement.reason.startswith(
        "Event 0, micro-operation 1 writes nil to the key 'x', which is the initial value;"
    )
    assert of_registers("wx wy1", "ry1").verdict is Verdict.VALID
    assert of_registers("wx wy1", "rx ry1 rz7").verdict is Verdict.INVALID


def test_an_element_that_was_appended_twice_is_unknown() -> None:
    """The reason has both places. Without a read of it, the appends are two like others."""
    judgement = judged(history("ax1", "ay1 ax1", "rx1 ry1"))
    assert judgement.verdict is Verdict.UNKNOWN
    assert judgement.reason.startswith(
        "Event 1, micro-operation 2 writes 1 to the key 'x' again, after event 0, micro-operation 1"
    )
    assert "So 1 read that may show several writes was left out." in judgement.reason
    assert judged(history("ax1", "ay1 ax1", "ry1")).verdict is Verdict.VALID
    assert judged(history("rx ax1", "rx ax1"), "snapshot-isolation").verdict is Verdict.INVALID
    others = ("rx2 rz", "ax2 az5", "rz5")
    assert judged(history("ax1", "ay1 ax1", "rx21 ry1", *others)).verdict is Verdict.INVALID


@pytest.mark.parametrize(
    ("request_", "answer", "message"),
    [
        (3, 3, r"event 0: expected a list of micro-operations, found 3"),
        ([1, 2], [1, 2], r"event 0: expected a list of micro-operations, found \[1, 2\]"),
        (
            [["r", "x"]],
            [["r", "x"]],
            r"event 0, micro-operation 1: expected a micro-operation \[function, key, value\]",
        ),
        ([["r", "x", None], 7], [["r", "x", None], 7], r"event 0, micro-operation 2: expected a micro-operation"),
        (
            [["w", "x", 1]],
            [["w", "x", 1]],
            r"expected a micro-operation \[r key null\] or \[append key element\], found",
        ),
    ],
)
def test_what_is_no_transaction_is_refused(request_: Any, answer: Any, message: str) -> None:
    """The message has the event, the micro-operation, what was expected and what was found."""
    wrong = transaction(0, OpType.OK, [], start=0, end=1, request=request_)
    object.__setattr__(wrong, "result", answer)
    with pytest.raises(InputError, match=message):
        judged([wrong])


@pytest.mark.parametrize(
    ("request_", "answer", "message"),
    [
        (
            [["r", "x", 5]],
            [["r", "x", 5]],
            r"event 1, micro-operation 1: expected a list as the result of a read, found",
        ),
        ([["r", "x", None]], None, r"event 1: expected a list of micro-operations, found None"),
        ([["r", "x", None]], 3, r"event 1: expected a list of micro-operations, found 3"),
        (
            [["r", "x", None]],
            [["pop", "x", 1]],
            r"event 1, micro-operation 1: expected a micro-operation \[r key null\]",
        ),
        ([["r", "x", None]], [["r", "x", 5]], r"event 1, micro-operation 1: expected a list as the result of a read"),
        (
            [["r", "x", None]],
            [["r", "y", [1]]],
            r"event 1, micro-operation 1: expected the functions, keys and written",
        ),
        ([["append", "x", 1]], [["append", "x", 2]], r"event 1, micro-operation 1: expected the functions, keys and"),
        ([["r", "x", None]], [], r"event 1: expected the functions, keys and written values of the request"),
    ],
)
def test_an_answer_of_another_form_is_a_fault_of_the_system(request_: Any, answer: Any, message: str) -> None:
    """The verdict is invalid for each model, with the event, the micro-operation, what was expected and what was found."""
    wrong = transaction(0, OpType.OK, [], start=0, end=1, request=request_)
    object.__setattr__(wrong, "result", answer)
    judgement = judged([wrong], "read-uncommitted")
    assert judgement.verdict is Verdict.INVALID
    assert judgement.counts == {"transactions": 1, "malformed-answer": 1}
    [anomaly] = judgement.anomalies
    assert re.search(message, anomaly.explanation)
    assert (anomaly.rows, anomaly.decisive) == ((0,), 0)


def test_a_value_tells_a_transaction() -> None:
    """Its function may have any name; a value that is no transaction is refused with its event."""
    named = transaction(0, OpType.OK, [["append", "x", 1]], start=0, end=1)
    object.__setattr__(named, "f", "write")
    judgement = judged([named, transaction(1, OpType.OK, [["r", "x", [1]]], start=2, end=3)])
    assert (judgement.verdict, judgement.counts) == (Verdict.VALID, {"transactions": 2})
    object.__setattr__(named, "value", 1)
    with pytest.raises(InputError, match="event 0: expected a list of micro-operations, found 1"):
        judged([named])


def test_strange_keys_and_elements_are_themselves() -> None:
    """Keys and elements are any JSON values; 1 and "1" are two elements."""
    strange = ['a"]', [1, [2]], {"b": "]"}, "1", 1, 10**30, -5, 1.5, None, True]
    writes = [
        transaction(n, OpType.OK, [["append", strange, element]], start=n, end=50 + n)
        for n, element in enumerate(strange)
    ]
    read = transaction(20, OpType.OK, [["r", strange, strange]], start=100, end=101)
    judgement = judged([*writes, read])
    assert judgement.verdict is Verdict.VALID
    assert judgement.figures["dependencies"] == 10


def test_models_have_names_and_aliases() -> None:
    """A model is found by each name in any case; one that no anomaly decides is refused with the reason."""
    for model in MODELS:
        assert all(find(name.upper()) is model for name in (model.name, *model.aliases))
    for name in UNDECIDED:
        with pytest.raises(
            InputError, match=f"the consistency model {name} is .* no anomaly of transactions decides it"
        ):
            find(name)
    with pytest.raises(InputError, match="Did you mean 'serializable'"):
        find("serialisable")


@pytest.mark.parametrize(
    ("anomaly", "weakest", "stronger"),
    [
        ("G0", ["read-uncommitted"], 24),
        ("G1a", ["read-committed"], 21),
        ("internal", ["read-atomic"], 10),
        ("lost-update", ["cursor-stability", "update-atomic"], 11),
        ("G-single-item", ["consistent-view", "parallel-snapshot-isolation", "repeatable-read"], 8),
        ("G-nonadjacent-item", ["repeatable-read", "snapshot-isolation"], 5),
        ("G2-item", ["repeatable-read"], 3),
        ("G0-process", ["strong-session-read-uncommitted"], 7),
        ("G1c-process", ["strong-session-read-committed"], 5),
        ("G2-item-process", ["strong-session-serializable"], 1),
        ("G0-realtime", ["strong-read-uncommitted"], 3),
        ("G-single-item-realtime", ["strong-snapshot-isolation"], 1),
        ("G2-item-realtime", ["strict-serializable"], 0),
    ],
)
def test_models_that_an_anomaly_contradicts(anomaly: str, weakest: list[str], stronger: int) -> None:
    """The weakest models and the number of stronger ones are those that Elle 0.2.7 prints.

    But for parallel snapshot isolation: by its definition, it prohibits a cycle with one anti-dependency.
    """
    refuted = ruled_out([anomaly])
    assert (refuted[0], len(refuted[1])) == (weakest, stronger)
    assert all((anomaly in prohibited(model.name)) is (model.name in {*refuted[0], *refuted[1]}) for model in MODELS)


def test_order_of_models() -> None:
    """A model that needs real time or processes has this order, and no other one has."""
    assert {order_of(name) for name in ("strict-serializable", "strong-read-uncommitted")} == {"realtime"}
    assert {order_of(name) for name in ("strong-session-serializable",)} == {"process"}
    assert {order_of(name) for name in ("serializable", "read-committed")} == {"none"}


HISTORY = """\
{:index 0, :type :invoke, :process 0, :f :txn, :value [[:append :x 1] [:append :y 1]]}
{:index 1, :type :invoke, :process 1, :f :txn, :value [[:r :x nil] [:r :y nil]]}
{:index 2, :type :ok, :process 0, :f :txn, :value [[:append :x 1] [:append :y 1]]}
{:index 3, :type :ok, :process 1, :f :txn, :value [[:r :x [1]] [:r :y nil]]}
"""


def test_the_command_decides_a_history_of_jepsen(tmp_path: Path, run: Callable[..., Ran]) -> None:
    """The option of the workload chooses the model, and the text and the JSON have the cycle."""
    path = tmp_path / "history.edn"
    path.write_text(HISTORY)
    command = (path, "--workload", "list-append")
    ran = run(*command)
    assert ran.code == ExitCode.INVALID
    assert "G-single-item: a cycle of 2 transactions." in ran.out
    assert run(*command, "--workload-option", "consistency-model=PL-2").code == ExitCode.VALID
    document = json.loads(run(*command, "--format", "json").out)
    assert document["figures"][""]["anomaly-types"] == ["G-single-item"]
    assert document["kind"] == "G-single-item"
    with pytest.raises(InputError, match="causal consistency"):
        run(*command, "--workload-option", "consistency-model=causal")


def test_a_cycle_has_its_edges() -> None:
    """Each edge has two rows and its reason in short, in the order of the words."""
    judgement = of_registers("rx wy1", "ry wx1", model="serializable")
    [anomaly] = judgement.anomalies
    assert anomaly.edges == ((0, 1, "rw x"), (1, 0, "rw y"))
