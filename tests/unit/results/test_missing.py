"""The first sentence names the last acknowledged operation that is lost, for every model and for transactions, and no other."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from checker.linearizable import MISSING, linearizability
from checker.models import Call, Inconsistent, Model
from harness.op import OpType
from harness.verdict import Verdict
from results.circumstances.losses import first_sentence
from tests.unit.results.synthetic import record
from tests.unit.results.test_losses import POWER, by_judge, op, placed
from workloads.transactions.workload import (
    ListAppendOptions,
    ListAppendWorkload,
    RwRegisterOptions,
    RwRegisterWorkload,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.op import Operation


class Stack(Model):
    """A stack of a user: only `step`."""

    name = "stack"
    initial = ()

    def step(self, state: tuple[Any, ...], op: Call) -> tuple[Any, ...] | Inconsistent:
        """See `Model`."""
        if op.f == "push":
            return (*state, op.argument)
        top = state[-1] if state else None
        return state[:-1] if op.result == top else Inconsistent(f"found {op.result}, but {top} is on top")


class Latch(Model):
    """An operation without a value, and an answer of false."""

    name = "latch"
    initial = False

    def step(self, state: bool, op: Call) -> bool | Inconsistent:
        """See `Model`."""
        if op.f == "set":
            return True
        return state if op.result is state else Inconsistent(f"read {op.result}, but the latch is {state}")


def gave(at_s: float, f: str, result: Any, value: Any = None, **more: Any) -> Operation:
    """Returns an operation with an answer of its own."""
    return replace(op(at_s, f, value, **more), result=result)


def said(model: Any, operations: Sequence[Operation]) -> str:
    """Returns the first sentence of a run with this model, and holds it against the one from its stored details."""
    operations = placed(operations, POWER)
    part = linearizability(model, operations, [POWER])[0]
    assert part.verdict is Verdict.INVALID, part
    run = replace(record(seed=1, operations=10), operations=operations, faults=[POWER], parts=[part])
    stored = replace(part, details=json.loads(json.dumps(part.details)), counterexamples=())
    assert first_sentence(replace(run, parts=[stored])) == first_sentence(run)
    return first_sentence(run)


def puts(f: str, *values: Any) -> list[Operation]:
    """Returns acknowledged operations, the one with the place n from n s to n + 0.5 s."""
    return [replace(op(index, f, value), result=value) for index, value in enumerate(values, 1)]


NO = False
LOSSES: dict[str, tuple[Any, list[Operation], str]] = {
    "fifo-queue, empty": (
        "fifo-queue",
        [*puts("enqueue", 1, 2, 3), gave(10, "dequeue", 1), gave(12, "dequeue", None)],
        (
            "A client found the queue empty, and it was not after all nodes lost power. "
            "The last acknowledged enqueue that is missing is process 3's enqueue of 3 on key x, acknowledged at 3.500 s."
        ),
    ),
    "fifo-queue, its turn": (
        "fifo-queue",
        [*puts("enqueue", 1, 2, 3), op(9, "enqueue", 9), op(9.6, "enqueue", 10), gave(12, "dequeue", 9)],
        (
            "An acknowledged element did not come out of the queue in its turn after all nodes lost power. "
            "The last acknowledged enqueue that is missing is process 3's enqueue of 3 on key x, acknowledged at 3.500 s."
        ),
    ),
    "unordered-queue": (
        "unordered-queue",
        [*puts("enqueue", 1, 2), gave(12, "dequeue", None)],
        (
            "A client found the queue empty, and it was not after all nodes lost power. "
            "The last acknowledged enqueue that is missing is process 2's enqueue of 2 on key x, acknowledged at 2.500 s."
        ),
    ),
    "set": (
        "set",
        [*puts("add", 1, 2, 3), gave(10, "read", [1]), gave(11, "read", [1])],
        (
            "A read missed an acknowledged element after all nodes lost power. "
            "The last acknowledged add that is missing is process 3's add of 3 on key x, acknowledged at 3.500 s."
        ),
    ),
    "set, contains": (
        "set",
        [*puts("add", 1, 2, 3), gave(10, "contains", NO, 2)],
        (
            "A read missed an acknowledged element after all nodes lost power. "
            "The last acknowledged add that is missing is process 2's add of 2 on key x, acknowledged at 2.500 s."
        ),
    ),
    "counter": (
        "counter",
        [*puts("add", 1, 2, 3), gave(10, "read", 1)],
        (
            "A read of the counter lacks an acknowledged add after all nodes lost power. "
            "The last acknowledged add before is process 3's add of 3 on key x, acknowledged at 3.500 s."
        ),
    ),
    "list": (
        "list",
        [*puts("append", 1, 2, 3), gave(10, "read", [1])],
        (
            "A read missed an acknowledged element after all nodes lost power. "
            "The last acknowledged append that is missing is process 3's append of 3 on key x, acknowledged at 3.500 s."
        ),
    ),
    "a user's stack": (
        Stack(),
        [*puts("push", 1, 2, 3), gave(10, "pop", 2), gave(12, "pop", 1), gave(14, "pop", None)],
        (
            "An answer lacks an acknowledged operation after all nodes lost power. "
            "The last acknowledged push that is missing is process 3's push of 3 on key x, acknowledged at 3.500 s."
        ),
    ),
    "a user's latch": (
        Latch(),
        [gave(1, "set", None), gave(10, "get", NO), gave(12, "get", NO)],
        (
            "An answer lacks an acknowledged operation after all nodes lost power. "
            "The last acknowledged set that is missing is process 1's set on key x, acknowledged at 1.500 s."
        ),
    ),
}
NO_LOSSES: dict[str, tuple[Any, list[Operation]]] = {
    "wrong order": ("fifo-queue", [*puts("enqueue", 1, 2), gave(10, "dequeue", 2), gave(12, "dequeue", 1)]),
    "came later": ("fifo-queue", [*puts("enqueue", 1), gave(10, "dequeue", None), gave(12, "dequeue", 1)]),
    "came twice": ("unordered-queue", [*puts("enqueue", 1), gave(10, "dequeue", 1), gave(12, "dequeue", 1)]),
    "late read": ("set", [*puts("add", 1, 2), gave(10, "read", [1]), gave(12, "read", [1, 2])]),
    "from nowhere": ("set", [*puts("add", 1, 2), gave(10, "read", [1, 2, 7])]),
    "perhaps removed": (
        "set",
        [
            *puts("add", 1, 2),
            gave(4, "read", [1, 2]),
            replace(op(20, "remove", 2), type=OpType.INFO),
            gave(10, "read", [1]),
        ],
    ),
    "too high": ("counter", [*puts("add", 2, 2, 2), gave(10, "read", 7)]),
    "lock": ("mutex", [gave(1, "acquire", None), gave(10, "acquire", None, process=4)]),
    "a user's stack, twice": (Stack(), [*puts("push", 1), gave(10, "pop", 1), gave(12, "pop", 1)]),
    "a user's stack, late": (
        Stack(),
        [*puts("push", 1, 2), gave(10, "pop", 1), gave(12, "pop", 2)],
    ),
}


@pytest.mark.parametrize("case", LOSSES)
def test_a_lost_operation_of_a_model_is_named(case: str) -> None:
    """Also for kinds without words of their own, and for a model of which only `step` is known."""
    model, operations, expected = LOSSES[case]
    assert said(model, operations) == expected


@pytest.mark.parametrize("case", NO_LOSSES)
def test_what_is_no_loss_names_none(case: str) -> None:
    """A wrong order, a late answer, a value from nowhere or one that came twice: nothing acknowledged is gone."""
    model, operations = NO_LOSSES[case]
    assert "acknowledged at" not in said(model, operations)


def test_a_large_counterexample_is_not_tried() -> None:
    """The trials take time that grows fast with the number of operations, so there is a bound; the verdict stays."""
    operations = placed([*puts("push", *range(30)), *(gave(40 + index, "pop", 28 - index) for index in range(20))])
    part = linearizability(Stack(), operations)[0]
    assert part.verdict is Verdict.INVALID
    shown = part.details["counterexample"]["operations"]
    assert (MISSING in part.details) == (len(shown) <= 12)


# -- transactions --------------------------------------------------------------------------------------------------------------


def txn(at_s: float, request: list[Any], result: list[Any] | None = None, **more: Any) -> Operation:
    """Returns an acknowledged transaction."""
    return replace(op(at_s, "txn", request, key=None, **more), result=request if result is None else result)


def append(at_s: float, value: int) -> Operation:
    """Returns a transaction that appends to the key x."""
    return txn(at_s, [["append", "x", value]])


def read(at_s: float, seen: Any) -> Operation:
    """Returns a transaction that reads the key x."""
    return txn(at_s, [["r", "x", None]], [["r", "x", seen]])


def write(at_s: float, value: int) -> Operation:
    """Returns a transaction that writes the key x."""
    return txn(at_s, [["w", "x", value]])


def update(at_s: float, seen: int, value: int) -> Operation:
    """Returns a transaction that reads the key x, and writes it."""
    return txn(at_s, [["r", "x", None], ["w", "x", value]], [["r", "x", seen], ["w", "x", value]])


LISTS = ListAppendWorkload(ListAppendOptions())
REGISTERS = RwRegisterWorkload(RwRegisterOptions())
REALTIME = RwRegisterWorkload(RwRegisterOptions(linearizable_keys=True))
LOST_IN_TRANSACTIONS = {
    "stale list": (LISTS, [append(1, 1), append(2, 2), append(3, 3), read(10, [1])], "append of 3@3.500"),
    "two lists": (
        LISTS,
        [append(1, 1), append(2, 2), read(2.6, [1, 2]), append(3, 3), append(12, 4), read(13, [1, 4])],
        "append of 3@3.500",
    ),
    "lost update": (REGISTERS, [write(1, 1), update(2, 1, 2), update(10, 1, 5)], "write of 2@2.500"),
    "stale register": (
        REALTIME,
        [write(1, 1), write(2, 2), write(3, 3), read(10, 1)],
        "write of 3@3.500",
    ),
}
NO_LOSS_IN_TRANSACTIONS = {
    "late list": (LISTS, [append(1, 1), append(2, 2), read(10, [1]), read(12, [1, 2])]),
    "late register": (REALTIME, [write(1, 1), write(2, 2), read(10, 1), read(12, 2)]),
    "at the same time": (REGISTERS, [write(1, 1), update(2, 1, 2), update(2.1, 1, 5)]),
    "aborted read": (
        LISTS,
        [append(1, 1), replace(append(2, 2), type=OpType.FAIL, result=None), append(3, 3), read(10, [1, 2])],
    ),
}


def of_transactions(workload: Any, operations: Sequence[Operation]) -> str:
    """Returns the first sentence of a run of transactions."""
    part, numbered = by_judge(workload, operations)
    assert part.verdict is Verdict.INVALID, part
    return first_sentence(replace(record(seed=1, operations=10), operations=numbered, faults=[POWER], parts=[part]))


@pytest.mark.parametrize("case", LOST_IN_TRANSACTIONS)
def test_a_lost_write_of_transactions_is_named(case: str) -> None:
    """The last acknowledged one of the key that the anomaly is about, after the words for the anomaly."""
    workload, operations, expected = LOST_IN_TRANSACTIONS[case]
    sentence = of_transactions(workload, operations)
    assert sentence.startswith("Transactions are not isolated: ")
    what, at_s = expected.split("@")
    assert sentence.endswith(f"{what} on key x, acknowledged at {at_s} s.")
    assert " that is missing is process " in sentence


@pytest.mark.parametrize("case", NO_LOSS_IN_TRANSACTIONS)
def test_an_anomaly_without_a_loss_names_no_write(case: str) -> None:
    """A late read, an aborted read, and updates at the same time."""
    workload, operations = NO_LOSS_IN_TRANSACTIONS[case]
    assert "acknowledged at" not in of_transactions(workload, operations)
