"""Weak models of transactions over lists agree with their definitions, by every order, visible set and cycle."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any, Final

import pytest

from checker.consistency import ON_DEMAND, searched
from checker.formats.columns import of_operations
from checker.transactions.judge import judge
from harness.op import OpType
from harness.verdict import Verdict
from tests.unit.checker.transaction_definitions import weak_history
from tests.unit.checker.transaction_orders import random_history, transaction
from tests.unit.checker.transaction_rules import EXACT, LEFT_OUT, WEAK, contradicts, demanded

if TYPE_CHECKING:
    from collections.abc import Sequence

    from checker.judging import Judgement
    from harness.op import Operation

HISTORIES: Final = 200
IN_A_NIGHT: Final = 10_000


def drawn(seed: int, *, most: int) -> list[Operation]:
    """Returns a history of a store that is strong or weak."""
    return random_history(Random(seed), most=most, lists=True) if seed % 2 else weak_history(Random(seed), most=most)


def judged(operations: Sequence[Operation], model: str) -> Judgement:
    """Returns the judgement of a history of lists."""
    return judge(of_operations(operations), workload="list-append", model=model)


@pytest.mark.parametrize("model", WEAK)
@pytest.mark.parametrize("first", [0, pytest.param(1, marks=pytest.mark.night)])
def test_weak_models_are_decided_by_definition(model: str, first: int) -> None:
    """A history is invalid exactly if no execution by the definition of the model explains its answers."""
    verdicts = {True: 0, False: 0}
    for seed in range(first * HISTORIES, HISTORIES + first * IN_A_NIGHT):
        operations = drawn(seed, most=4)
        judgement = judged(operations, model)
        demand = demanded(operations, judgement, model)
        if demand == LEFT_OUT:
            continue
        legal = WEAK[model](operations)
        assert not contradicts(judgement, legal=legal, demand=demand), (seed, judgement.reason, judgement.counts)
        verdicts[legal] += demand == EXACT
    assert min(verdicts.values()) > 1, "both verdicts occur"


def _history(*several: list[list[Any]]) -> list[Operation]:
    return [transaction(number, OpType.OK, mops, start=number, end=99) for number, mops in enumerate(several)]


BOTH: Final = [["append", "x", 1], ["append", "y", 1]]
EXAMPLES: Final[dict[str, tuple[list[list[Any]], ...]]] = {
    "observed-transaction-vanishes": (BOTH, [["r", "x", [1]], ["r", "y", []]]),
    "fractured-read": (BOTH, [["r", "y", []], ["r", "x", [1]]]),
    "G-causal": (
        [["append", "y", 1]],
        [["r", "y", [1]], ["append", "x", 1]],
        [["r", "x", [1]], ["r", "y", []]],
    ),
    # A long fork: two readers see the two writers in another order.
    "G-prefix": (
        [["append", "x", 1]],
        [["append", "y", 1]],
        [["r", "x", [1]], ["r", "y", []]],
        [["r", "x", []], ["r", "y", [1]]],
    ),
    "G-monotonic": (
        [["append", "y", 1]],
        [["r", "y", [1]], ["append", "x", 1]],
        [["r", "x", [1]], ["r", "y", []]],
    ),
    # A long fork whose readers both read the newer version first.
    "G-MSR": (
        [["append", "x", 1]],
        [["append", "y", 1]],
        [["r", "x", [1]], ["r", "y", []]],
        [["r", "y", [1]], ["r", "x", []]],
    ),
    "G-update": (
        [["r", "x", []], ["append", "y", 1]],
        [["r", "y", []], ["append", "x", 1]],
    ),
    # Either order of the appends to z makes a cycle with one anti-dependency.
    "G-forced": (
        [["r", "y", []], ["append", "x", 1], ["append", "z", 1]],
        [["r", "x", []], ["append", "y", 1], ["append", "z", 2]],
    ),
    # Each misses the other one, but the first one misses what the second one appends after another append to x.
    "forced-update": (
        [["r", "y", []], ["append", "x", 2], ["append", "z", 1]],
        [["append", "x", 1]],
        [["r", "x", []], ["append", "y", 1], ["append", "z", 2]],
        [["r", "x", [1, 2]]],
    ),
    # The second one appends after the first one to x, and does not see it in y.
    "missed-update": (
        BOTH,
        [["r", "y", []], ["append", "x", 2]],
        [["r", "x", [1, 2]]],
    ),
}
# The model that an anomaly contradicts, and the models that its smallest example does not contradict.
WEAKEST: Final = {
    "observed-transaction-vanishes": ("monotonic-atomic-view", ("read-committed",)),
    "fractured-read": ("read-atomic", ("monotonic-atomic-view", "monotonic-snapshot-read")),
    "G-causal": ("causal-cerone", ("read-atomic", "update-atomic")),
    "G-prefix": ("prefix", ("causal-cerone", "consistent-view", "monotonic-snapshot-read")),
    "G-monotonic": ("monotonic-view", ("monotonic-atomic-view", "cursor-stability")),
    "G-MSR": ("monotonic-snapshot-read", ("monotonic-view", "causal-cerone")),
    "G-update": ("update-serializable", ("consistent-view", "snapshot-isolation")),
    "missed-update": ("update-atomic", ("causal-cerone", "cursor-stability")),
    "G-forced": ("parallel-snapshot-isolation", ("causal-cerone", "cursor-stability", "monotonic-view")),
    "forced-update": ("update-atomic", ("causal-cerone", "cursor-stability")),
}
LENGTH: Final = {
    "observed-transaction-vanishes": 2,
    "fractured-read": 2,
    "G-prefix": 4,
    "G-MSR": 4,
    "G-update": 2,
    "missed-update": 2,
    "G-forced": 2,
    "forced-update": 2,
}


@pytest.mark.parametrize("kind", ON_DEMAND)
def test_each_weak_model_has_its_anomaly(kind: str) -> None:
    """The smallest example of an anomaly contradicts its model, and no weaker one."""
    operations = _history(*EXAMPLES[kind])
    model, weaker = WEAKEST[kind]
    for name in weaker:
        assert judged(operations, name).verdict is Verdict.VALID, name
    judgement = judged(operations, model)
    (anomaly,) = judgement.anomalies
    assert judgement.counts == {"transactions": len(operations), kind: 1}
    assert anomaly.kind == kind
    assert len(anomaly.edges) == len(anomaly.rows) == LENGTH.get(kind, 3)
    assert all(
        one[1] == other[0] for one, other in zip(anomaly.edges, [*anomaly.edges[1:], anomaly.edges[0]], strict=True)
    )
    assert "A transaction cannot precede itself" in anomaly.explanation


def test_a_reader_with_writers_is_an_update_cycle() -> None:
    """Three transactions that write and one that only reads have a cycle together; two readers need both."""
    long_fork = _history(*EXAMPLES["G-prefix"])
    assert judged(long_fork, "update-serializable").verdict is Verdict.VALID
    judgement = judged(
        _history([["r", "z", []], ["append", "x", 1]], [["append", "z", 1]], [["r", "z", [1]], ["r", "x", []]]),
        "update-serializable",
    )
    assert judgement.counts == {"transactions": 3, "G-update": 1}
    assert len(judgement.anomalies[0].edges) == 3


def test_a_cycle_of_any_length_is_found_among_many() -> None:
    """A missed cause behind hundreds of transactions is found; those that read in order contradict nothing."""
    count = 300
    several = [[["append", 0, 0]]]
    several += [[["r", number - 1, [number - 1]], ["append", number, number]] for number in range(1, count)]
    fine = [*several, [["r", count - 1, [count - 1]], ["r", 0, [0]]]]
    missed = [*several, [["r", count - 1, [count - 1]], ["r", 0, []]]]
    assert judged(_history(*fine), "causal-cerone").verdict is Verdict.VALID
    assert judged(_history(*missed), "read-atomic").verdict is Verdict.VALID
    judgement = judged(_history(*missed), "causal-cerone")
    assert judgement.counts["G-causal"] == 1
    assert f"a cycle of {count + 1} transactions" in judgement.anomalies[0].explanation


def test_only_what_a_model_needs_is_searched() -> None:
    """A model that prohibits a type that is always found needs no other type that shows it."""
    assert searched("strict-serializable") == searched("snapshot-isolation") == searched("read-committed") == ()
    assert searched("prefix") == ("G-prefix",)
    assert searched("causal-cerone") == ("G-causal",)
    assert searched("read-atomic") == ("fractured-read",)
    assert searched("update-atomic") == ("fractured-read", "missed-update", "forced-update")
    assert searched("read-committed", ("fractured-read",)) == ("fractured-read",)
    assert searched("monotonic-view") == ("G-monotonic",)
    assert searched("monotonic-snapshot-read") == ("G-MSR",)
    assert searched("update-serializable") == ("G-update", "G-forced")
    assert searched("consistent-view") == searched("parallel-snapshot-isolation")[-1:] == ("G-forced",)
