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
    is_read_committed,
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
# What holds of the versions of registers in each execution of a model.
SOURCES: Final[dict[str, tuple[str, ...]]] = {
    "serializable": ("writes-follow-reads",),
    "strong-session-serializable": ("writes-follow-reads", "sequential-keys"),
    "strict-serializable": ("writes-follow-reads", "sequential-keys", "linearizable-keys"),
    "snapshot-isolation": ("writes-follow-reads",),
    "strong-session-snapshot-isolation": ("writes-follow-reads", "sequential-keys"),
    "strong-snapshot-isolation": ("writes-follow-reads", "sequential-keys", "linearizable-keys"),
}
HISTORIES: Final = 300
IN_A_NIGHT: Final = 10_000


def judged(operations: Sequence[Operation], model: str) -> Judgement:
    """Returns the judgement of a history of lists."""
    return judge(of_operations(operations), workload="list-append", model=model)


@pytest.mark.parametrize("model", DEFINED)
@pytest.mark.parametrize("first", [0, pytest.param(1, marks=pytest.mark.night)])
def test_lists_are_decided_as_by_every_order(model: str, first: int) -> None:
    """A history has an anomaly that the model prohibits exactly if no order of its transactions explains the answers."""
    decide, before = DEFINED[model]
    verdicts = {True: 0, False: 0}
    for seed in _seeds(first):
        operations = random_history(Random(seed), most=5 if decide is is_serial else 4, lists=True)
        legal = decide(operations, before)
        found = judged(operations, model)
        assert (found.verdict is not Verdict.INVALID) is legal, (seed, found.reason, found.counts)
        verdicts[legal] += 1
    assert min(verdicts.values()) > sum(verdicts.values()) / 20, "both verdicts occur often"


@pytest.mark.parametrize("first", [0, pytest.param(1, marks=pytest.mark.night)])
def test_read_committed_is_decided_as_by_every_order(first: int) -> None:
    """The same for states that differ from key to key; a history with an internal contradiction is left out."""
    verdicts = {True: 0, False: 0}
    for seed in _seeds(first):
        operations = random_history(Random(seed), most=5, lists=True)
        found = judged(operations, "read-committed")
        if "internal" in found.figures.get("allowed-anomaly-types", ()):
            continue
        legal = is_read_committed(operations, any_order)
        assert (found.verdict is not Verdict.INVALID) is legal, (seed, found.reason, found.counts)
        verdicts[legal] += 1
    assert min(verdicts.values()) > sum(verdicts.values()) / 20, "both verdicts occur often"


@pytest.mark.parametrize("model", DEFINED)
@pytest.mark.parametrize("first", [0, pytest.param(1, marks=pytest.mark.night)])
def test_registers_raise_no_false_alarm(model: str, first: int) -> None:
    """An invalid history of registers has no legal order, with what each legal order implies for versions and without it."""
    decide, before = DEFINED[model]
    found_with, found_without, illegal = 0, 0, 0
    for seed in _seeds(first)[:: 1 if first else 3]:
        operations = random_history(Random(seed), most=5 if decide is is_serial else 4, lists=False)
        columns = of_operations(operations)
        without, with_sources = (
            judge(columns, workload="rw-register", model=model, sources=sources).verdict is Verdict.INVALID
            for sources in ((), SOURCES[model])
        )
        legal = decide(operations, before)
        assert not (legal and (without or with_sources)), seed
        assert with_sources or not without, (seed, "more is known of the versions, and less is found")
        illegal, found_with, found_without = illegal + (not legal), found_with + with_sources, found_without + without
    assert found_without > illegal / 3
    assert found_with > illegal / 2


def _seeds(first: int) -> range:
    """Returns seeds; the first ones, or many others for a night."""
    return range(first * HISTORIES, HISTORIES if not first else HISTORIES + IN_A_NIGHT)


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
