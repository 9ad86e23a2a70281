"""Laws of verdicts on transactions: names, unseen operations, stronger models, and a witness of a valid verdict."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pytest

from checker._kernel import TransactionFindings, transactions
from checker.consistency import MODELS
from checker.formats.columns import of_operations
from checker.transactions.judge import judge
from harness.op import Operation, OpType
from harness.verdict import Verdict
from tests.unit.checker.transaction_orders import is_replayed, random_history, transaction
from tests.unit.checker.transaction_positions import positioned_history

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from checker.judging import Judgement

HISTORIES: Final = 150
IN_A_NIGHT: Final = 3_000
WORKLOADS: Final = ("list-append", "rw-register")
SOURCES: Final = (
    "writes-follow-reads",
    "sequential-keys",
    "linearizable-keys",
    "transaction-order",
    "atomic-visibility",
)
UNSEEN: Final = 900  # a value, a process and a position that no other operation has


def judged(operations: Sequence[Operation], workload: str, model: str, sources: Sequence[str] = ()) -> Judgement:
    """Returns the judgement of a history."""
    return judge(of_operations(operations), workload=workload, model=model, sources=sources)


def drawn(seed: int, workload: str) -> tuple[list[Operation], str, list[str]]:
    """Returns a random history, a model of all in turn, and some sources of the order of versions."""
    random = Random(seed)
    model = MODELS[seed % len(MODELS)].name
    if workload == "list-append":
        operations = random_history(random, most=6, lists=True)
        return operations, model, [name for name in SOURCES[1:3] if random.random() < 0.3]
    operations = positioned_history(random, most=6)
    return operations, model, [name for name in SOURCES if random.random() < 0.5]


def types(judgement: Judgement) -> tuple[Verdict, dict[str, int]]:
    """Returns the verdict and the number of each type."""
    return judgement.verdict, dict(judgement.counts)


def _seeds(first: int) -> range:
    return range(first * HISTORIES, HISTORIES if not first else HISTORIES + IN_A_NIGHT)


def _mapped(operation: Operation, key: dict[Any, Any], process: Callable[[Any], Any]) -> Operation:
    def value(mops: Any) -> Any:
        return mops and [[f, key[k], _element(v)] for f, k, v in mops]

    return replace(
        operation, value=value(operation.value), result=value(operation.result), process=process(operation.process)
    )


def _element(value: Any) -> Any:
    if isinstance(value, list):
        return [_element(member) for member in value]
    return None if value is None else f'e,[{value}]"'


@pytest.mark.parametrize("workload", WORKLOADS)
@pytest.mark.parametrize("first", [0, pytest.param(1, marks=pytest.mark.night)])
def test_names_change_nothing(workload: str, first: int) -> None:
    """Other names of keys, elements and processes give the same verdict and the same numbers of each type."""
    keys = {"x": [1, {"a": "]"}], "y": "x"}
    for seed in _seeds(first):
        operations, model, sources = drawn(seed, workload)
        renamed = [_mapped(operation, keys, lambda process: 40 - process) for operation in operations]
        expected = types(judged(operations, workload, model, sources))
        assert expected == types(judged(renamed, workload, model, sources)), (seed, model, sources)


def _later(operation: Operation) -> Operation:
    """Returns an operation with room for others before all."""
    start, end = operation.invoke_index + 10, operation.complete_index and operation.complete_index + 10
    return replace(operation, invoke_index=start, start_ns=start, complete_index=end, end_ns=end)


def unseen(operations: Sequence[Operation], workload: str) -> dict[str, Operation]:
    """Returns operations that no other one sees, by what they are."""
    write = "append" if workload == "list-append" else "w"
    last = max(operation.complete_index or operation.invoke_index for operation in operations)
    first = min(operation.invoke_index for operation in operations)

    def one(type_: OpType, mop: list[Any], *, start: int, end: int | None) -> Operation:
        return transaction(UNSEEN, type_, [mop], start=start, end=end)

    return {
        "perhaps a write of a new key": one(OpType.INFO, [write, "z", UNSEEN], start=last + 1, end=None),
        "perhaps a write after all others": one(OpType.INFO, [write, "x", UNSEEN], start=last + 1, end=None),
        "perhaps a write beside all others": one(OpType.INFO, [write, "x", UNSEEN], start=first - 1, end=None),
        "a write of a new key beside all others": one(OpType.OK, [write, "z", UNSEEN], start=first - 1, end=last + 1),
        "a write of a new key before all others": one(OpType.OK, [write, "z", UNSEEN], start=first - 2, end=first - 1),
        "a write after all others": replace(
            one(OpType.OK, [write, "x", UNSEEN], start=last + 1, end=last + 2), order=UNSEEN
        ),
        "a write that failed": one(OpType.FAIL, [write, "x", UNSEEN], start=first - 1, end=last + 1),
        "a read of a new key": one(OpType.OK, ["r", "z", None], start=last + 1, end=last + 2),
    }


@pytest.mark.parametrize("workload", WORKLOADS)
@pytest.mark.parametrize("first", [0, pytest.param(1, marks=pytest.mark.night)])
def test_an_operation_that_nobody_sees_makes_no_verdict_worse(workload: str, first: int) -> None:
    """Neither does it make one better: what is invalid stays invalid."""
    for seed in _seeds(first):
        operations, model, sources = drawn(seed, workload)
        operations = [_later(operation) for operation in operations]
        before = judged(operations, workload, model, sources)
        for what, more in unseen(operations, workload).items():
            both = sorted([*operations, more], key=lambda operation: operation.invoke_index)
            after = judged(both, workload, model, sources)
            is_invalid = [judgement.verdict is Verdict.INVALID for judgement in (before, after)]
            assert is_invalid[0] is is_invalid[1], (seed, model, sources, what, before.counts, after.counts)


@pytest.mark.parametrize("workload", WORKLOADS)
def test_stronger_models_have_no_better_verdicts(workload: str) -> None:
    """A history that contradicts a model contradicts each stronger one."""
    chain = ("read-uncommitted", "read-committed", "snapshot-isolation", "serializable", "strict-serializable")
    for seed in range(HISTORIES // 2):
        operations, _, sources = drawn(seed, workload)
        bad = [judged(operations, workload, model, sources).verdict is Verdict.INVALID for model in chain]
        assert bad == sorted(bad), seed


@pytest.mark.parametrize("workload", WORKLOADS)
@pytest.mark.parametrize("model", ["serializable", "strict-serializable"])
@pytest.mark.parametrize("first", [0, pytest.param(1, marks=pytest.mark.night)])
def test_a_valid_history_has_an_order_that_is_replayed(workload: str, model: str, first: int) -> None:
    """The order that all dependencies agree with gives all answers, and keeps real time for strict serializability.

    The versions of registers have the system's own order: without it, an order may not exist though no cycle is found.
    """
    is_list = workload == "list-append"
    sources = [] if is_list else ["transaction-order"]
    replayed = 0
    for seed in _seeds(first):
        draw = Random(seed)
        operations = random_history(draw, most=12, lists=True) if is_list else positioned_history(draw, most=12)
        if judged(operations, workload, model, sources).verdict is not Verdict.VALID:
            continue
        order = order_of(operations, workload, "realtime" if model == "strict-serializable" else "none")
        assert order is not None, seed
        assert len(order) == len(operations), seed
        rows = [operations[row] for row in order]
        happened = [row for row in rows if is_list or row.order is not None or row.type is not OpType.INFO]
        assert is_replayed([row for row in happened if row.type is not OpType.FAIL]), seed
        if model == "strict-serializable":
            latest = -1
            for row in rows:
                assert row.type is OpType.FAIL or row.complete_index is None or row.complete_index > latest, seed
                latest = max(latest, row.invoke_index)
        replayed += 1
    assert replayed > HISTORIES / 10


def order_of(operations: Sequence[Operation], workload: str, extra: str) -> list[int] | None:
    """Returns an order of the rows that all dependencies agree with; None if there is none."""
    columns = of_operations(operations)
    number = {
        order: index
        for index, order in enumerate(
            sorted(operation.order for operation in operations if operation.order is not None)
        )
    }
    is_list = workload == "list-append"
    findings = transactions(
        workload,
        kind=columns.type,
        process=columns.process,
        start=columns.start,
        end=columns.end,
        request=columns.value.first,
        answer=columns.result.first,
        texts=list(columns.texts),
        extra=extra,
        want_order=True,
        sources=[] if is_list else ["transaction-order"],
        position=None
        if is_list
        else np.array(
            [number[operation.order] if operation.order is not None else -1 for operation in operations], np.int64
        ),
    )
    assert isinstance(findings, TransactionFindings)
    return findings.order
