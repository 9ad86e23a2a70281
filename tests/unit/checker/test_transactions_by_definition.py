"""Verdicts on transactions agree with those by definition: with every order of a few transactions, without a graph."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING, Any, Final

import pytest

from checker.columns import of_operations
from checker.transactions.judge import judge
from harness.op import Operation, OpType
from harness.verdict import Verdict
from tests.unit.checker.transaction_orders import (
    any_order,
    is_serial,
    is_snapshot_isolated,
    random_history,
    real_time,
    session_order,
    transaction,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from checker.judging import Judgement

    Before = Callable[[Operation, Operation], bool]

DEFINED: Final[dict[str, tuple[Callable[[Sequence[Operation], Before], bool], Before]]] = {
    "serializable": (is_serial, any_order),
    "strong-session-serializable": (is_serial, session_order),
    "strict-serializable": (is_serial, real_time),
    "snapshot-isolation": (is_snapshot_isolated, any_order),
    "strong-session-snapshot-isolation": (is_snapshot_isolated, session_order),
    "strong-snapshot-isolation": (is_snapshot_isolated, real_time),
}
HISTORIES: Final = 300


def judged(operations: Sequence[Operation], model: str) -> Judgement:
    """Returns the judgement of a history of lists."""
    return judge(of_operations(operations), workload="list-append", model=model)


@pytest.mark.parametrize("model", DEFINED)
def test_lists_are_decided_as_by_every_order(model: str) -> None:
    """A history has an anomaly that the model prohibits exactly if no order of its transactions explains the answers."""
    decide, before = DEFINED[model]
    verdicts = {True: 0, False: 0}
    for seed in range(HISTORIES):
        operations = random_history(Random(seed), most=5 if decide is is_serial else 4, lists=True)
        legal = decide(operations, before)
        found = judged(operations, model)
        assert (found.verdict is not Verdict.INVALID) is legal, (seed, found.reason, found.counts)
        verdicts[legal] += 1
    assert min(verdicts.values()) > HISTORIES / 20, "both verdicts occur often"


def test_registers_raise_no_false_alarm() -> None:
    """Without assumptions about versions, an invalid history of registers has no legal order."""
    invalid = 0
    for seed in range(2 * HISTORIES):
        operations = random_history(Random(seed), most=5, lists=False)
        found = judge(of_operations(operations), workload="rw-register", model="strict-serializable")
        if found.verdict is Verdict.INVALID:
            invalid += 1
            assert not is_serial(operations, real_time), (seed, found.reason)
    assert invalid > HISTORIES / 20


def _types(found: Judgement) -> tuple[Verdict, dict[str, int]]:
    return found.verdict, dict(found.counts)


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


def test_names_change_nothing() -> None:
    """Other names of keys, elements and processes give the same verdict and the same numbers of each type."""
    keys = {"x": [1, {"a": "]"}], "y": "x"}
    for seed in range(HISTORIES // 2):
        operations = random_history(Random(seed), most=6, lists=True)
        renamed = [_mapped(each, keys, lambda process: 40 - process) for each in operations]
        assert _types(judged(operations, "strict-serializable")) == _types(judged(renamed, "strict-serializable")), seed


def test_an_append_that_nobody_sees_makes_no_verdict_worse() -> None:
    """A transaction without an answer that appends to a new key, or after all others, contradicts nothing."""
    for seed in range(HISTORIES // 2):
        operations = random_history(Random(seed), most=6, lists=True)
        last = max(each.complete_index or each.invoke_index for each in operations)
        for mop in (["append", "z", 1], ["append", "x", 1000]):
            more = transaction(90, OpType.INFO, [mop], start=last + 1, end=None)
            before = judged(operations, "strict-serializable").verdict
            after = judged([*operations, more], "strict-serializable").verdict
            assert (before is Verdict.INVALID) is (after is Verdict.INVALID), seed


def test_stronger_models_have_no_better_verdicts() -> None:
    """A history that contradicts a model contradicts each stronger one."""
    chain = ("read-uncommitted", "read-committed", "snapshot-isolation", "serializable", "strict-serializable")
    for seed in range(HISTORIES // 2):
        operations = random_history(Random(seed), most=6, lists=True)
        bad = [judged(operations, model).verdict is Verdict.INVALID for model in chain]
        assert bad == sorted(bad), seed
