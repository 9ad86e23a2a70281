"""The system's own commit order as an order of the versions of registers."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from checker.formats.columns import ColumnReader, batches_of, joined, of_operations
from checker.formats.parquet import open_parquet, write_operations
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

SOURCE = "transaction-order"
# Another source shows no order of 1 and 2: nobody reads before a write, and all transactions overlap.
STALE = ("wx1@5", "wx2 wy1@7", "ry1 rx1")


def operations(*transactions: str) -> list[Operation]:
    """Returns transactions of registers that overlap: `wx1 rx2 ry@7`, with `!` failed, `?` unknown, and the order after `@`."""
    listed = []
    for number, text in enumerate(transactions):
        words, _, order = text.partition("@")
        mops = [[word[0], word[1], int(word[2:]) if word[2:] else None] for word in words.strip("!?").split()]
        type_ = OpType.FAIL if text[0] == "!" else OpType.INFO if text[0] == "?" else OpType.OK
        end = None if type_ is OpType.INFO else 100 + number
        one = transaction(number, type_, mops, start=number, end=end)
        listed.append(replace(one, order=int(order) if order else None))
    return listed


def judged(*transactions: str, sources: Sequence[str] = (SOURCE,), model: str = "serializable") -> Judgement:
    """Returns the judgement of registers."""
    return judge(of_operations(operations(*transactions)), workload="rw-register", model=model, sources=sources)


def test_it_shows_what_no_other_source_shows() -> None:
    """A stale read of a register is found by the order alone; the result and the words name it."""
    others = ["writes-follow-reads", "sequential-keys", "linearizable-keys"]
    assert judged(*STALE, sources=others).verdict is Verdict.VALID
    judgement = judged(*STALE)
    assert judgement.counts == {"transactions": 3, "G-single-item": 1}
    assert "wrote 2 after that (the system says that it committed 1 before 2)" in judgement.anomalies[0].explanation
    assert judgement.figures["assumed-orders"] == [SOURCE]
    assert judgement.reason.endswith("This assumes that the versions of each key follow the system's own commit order.")
    assert judged("wx1@7", "wx2 wy1@5", "ry1 rx1").verdict is Verdict.VALID


def test_only_the_order_counts_not_the_numbers() -> None:
    """Numbers may be negative and far apart; that of a transaction that only reads, or that failed, is not used."""
    assert judged("wx1@-9223372036854775808", "wx2 wy1@9223372036854775807", "ry1 rx1").verdict is Verdict.INVALID
    assert judged("wx1@5", "wx2 wy1@7", "ry1 rx2@1").verdict is Verdict.VALID
    assert judged("wx1@5", "!wx3@5", "wx2 wy1@7", "ry1 rx2@5").verdict is Verdict.VALID


def test_an_order_says_that_a_transaction_without_an_answer_happened() -> None:
    """Its version stands between those of others, though nobody read it."""
    assert judged("wx1 wz1@5", "?wx2 rz wy1@6", "wx3 ry wu1@7", "ru1 rx1").verdict is Verdict.INVALID
    judgement = judged("wx1@5", "?wx2 wy1", "ry1 rx1")
    assert judgement.verdict is Verdict.VALID
    assert judgement.reason.endswith("1 of 2 transactions that may have written have no place in it.")


def test_contradictions_with_what_was_read_are_found() -> None:
    """A transaction read a version and wrote the next one, but the order has them the other way round."""
    wrong = ("wx1@7", "rx1 wx2@5")
    judgement = judged(*wrong)
    assert judgement.counts["G1c"] == 1
    assert judged(*wrong, sources=()).verdict is Verdict.VALID
    both = judged(*wrong, sources=("writes-follow-reads", SOURCE))
    assert both.counts["cyclic-versions"] == 1
    assert judged(*wrong, model="read-uncommitted", sources=("writes-follow-reads", SOURCE)).verdict is Verdict.INVALID


def test_one_order_for_two_writers_of_a_key_is_unknown() -> None:
    """The reason names both, the key and the order; two writers of other keys may share one."""
    judgement = judged("wx1@5", "wx2@5", "rx1")
    assert judgement.verdict is Verdict.UNKNOWN
    assert judgement.reason.startswith(
        "Event 1 writes the key 'x' with the order 5, and so does event 0; expected another order"
    )
    assert judged("wx1@5", "wy2@5", "rx1 ry2").verdict is Verdict.VALID
    assert judged("wx1 wx2@5", "rx2").verdict is Verdict.VALID


def test_without_any_order_nothing_is_shown() -> None:
    """Then it is unknown; what the data shows is still invalid."""
    judgement = judged("wx1", "rx1", "rx1@4")
    assert judgement.verdict is Verdict.UNKNOWN
    assert "No transaction that wrote has an order, so transaction-order shows nothing." in judgement.reason
    assert judged("!wx1", "rx1").verdict is Verdict.INVALID


def test_files_keep_it(tmp_path: Path, run: Callable[..., Ran]) -> None:
    """EDN, JSON Lines and Parquet give the same verdict; a file of two batches has orders in one of them alone."""
    edn = tmp_path / "history.edn"
    lines = []
    for operation, end in zip(operations(*STALE), (0, 1, 2), strict=True):
        for type_, mops, order in (("invoke", operation.value, None), ("ok", operation.result, operation.order)):
            text = " ".join(f"[:{f} :{key} {'nil' if value is None else value}]" for f, key, value in mops)
            more = "" if order is None else f" :order {order}"
            lines.append(f"{{:type :{type_} :process {end} :f :txn :value [{text}]{more}}}")
    edn.write_text("\n".join(lines[:5:2] + lines[1::2]), encoding="utf-8")
    options = ["--workload", "rw-register", "--workload-option", "consistency-model=serializable"]
    assert run(str(edn), *options).code == ExitCode.VALID
    told = run(str(edn), *options, "--workload-option", "transaction-order=true")
    assert told.code == ExitCode.INVALID
    assert "the system says that it committed 1 before 2" in told.out
    table = tmp_path / "operations.parquet"
    write_operations(table, operations(*STALE), run="t/1")
    told = run(str(table), *options, "--workload-option", "transaction-order=true")
    assert told.code == ExitCode.INVALID
    reader = ColumnReader("t")
    parts = [columns for _, columns in batches_of(open_parquet(table), reader, more=["order"])]
    whole = joined([parts[0], replace(parts[0], order=None)], reader).order
    assert whole is not None
    assert whole.known.tolist() == [True, True, False] + [False] * 3
    assert whole.number.tolist() == [5, 7, 0, 0, 0, 0]


@pytest.mark.parametrize(
    ("order", "what"), [("1.5", "1.5"), ('"5"', '"5"'), ("9223372036854775808", "9223372036854775808")]
)
def test_an_order_that_is_no_integer_is_refused(tmp_path: Path, run: Callable[..., Ran], order: str, what: str) -> None:
    """The error names the place and what was found."""
    file = tmp_path / "history.edn"
    file.write_text(
        "{:type :invoke :process 0 :f :txn :value [[:w :x 1]]}\n"
        f"{{:type :ok :process 0 :f :txn :value [[:w :x 1]] :order {order}}}",
        encoding="utf-8",
    )
    with pytest.raises(InputError, match=re.escape(what)):
        run(str(file), "--workload", "rw-register")
