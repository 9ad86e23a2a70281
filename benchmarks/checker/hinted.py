"""Objects and histories that a search finds hard, where the system tells the order: of each a valid history with its numbers.

Users of other checkers report such histories: 3,000 requests of etcd, half of them failed without an answer, which is not
decided in minutes (porcupine, issue 20), and a bank of five accounts with 400 transfers (issue 6). These have the same shape
and are drawn from a seed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random
from typing import TYPE_CHECKING, Any

from checker.models import Call, Inconsistent, Model
from harness.op import Operation, OpType

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

ACCOUNTS = 5
BALANCE = 100
STORE_KEYS = 4
STORE_VALUES = 5


class MaxRegister(Model):
    """A register that keeps the greatest value: `max` of a value, `read`."""

    name = "max-register"
    initial = 0

    def step(self, state: int, op: Call) -> int | Inconsistent:
        """See `Model`."""
        if op.f == "max":
            return max(state, int(op.argument))
        return state if op.result == state else Inconsistent(f"read {op.result}, but the greatest value is {state}")

    def observes(self, op: Call) -> bool:
        """See `Model`."""
        return op.f == "read"


class Bank(Model):
    """Accounts: `transfer` of `[from, to, amount]`, refused where the account does not hold it; `read` of one or of all."""

    name = "bank"
    initial = (BALANCE,) * ACCOUNTS

    def step(self, state: tuple[int, ...], op: Call) -> tuple[int, ...] | Inconsistent:
        """See `Model`."""
        if op.f == "read":
            held = list(state) if op.argument is None else state[op.argument]
            return state if op.result == held else Inconsistent(f"read {op.result}, but the accounts hold {held}")
        source, target, amount = op.argument
        enough = state[source] >= amount
        if op.ok and op.result is not enough:
            return Inconsistent(
                f"a transfer of {amount} from {source} answers {op.result}, but it holds {state[source]}"
            )
        if not enough:
            return state
        after = list(state)
        after[source] -= amount
        after[target] += amount
        return tuple(after)

    def observes(self, op: Call) -> bool:
        """See `Model`."""
        return op.f == "read" or (op.ok and op.result is False)


class Store(Model):
    """Keys of a store as one object: `put` of `[key, value]`, `get` of a key, and `cas` of `[key, expected, new]`."""

    name = "store"
    initial = (0,) * STORE_KEYS

    def step(self, state: tuple[int, ...], op: Call) -> tuple[int, ...] | Inconsistent:
        """See `Model`."""
        if op.f == "get":
            held = state[op.argument]
            return state if op.result == held else Inconsistent(f"got {op.result} of {op.argument}, which holds {held}")
        key, *expected, new = op.argument
        matches = op.f == "put" or state[key] == expected[0]
        if op.f == "cas" and op.ok and op.result is not matches:
            return Inconsistent(f"cas from {expected[0]} answers {op.result}, but {key} holds {state[key]}")
        return (*state[:key], new, *state[key + 1 :]) if matches else state

    def observes(self, op: Call) -> bool:
        """See `Model`."""
        return op.f == "get" or (op.ok and op.result is False)


@dataclass(slots=True)
class _Open:
    start: int
    f: str
    argument: Any
    result: Any = None
    order: int | None = None
    crashes: bool = False


def simulate(
    model: Model,
    draw: Callable[[Random], tuple[str, Any]],
    answer: Callable[[Any, str, Any], Any],
    *,
    count: int,
    processes: int,
    crashed: float,
    seed: str,
) -> list[Operation]:
    """Returns a linearizable history of an object that numbers its changes, as etcd does with its revision.

    Args:
        model: The object.
        draw: Gives the function and the argument of the next operation.
        answer: Gives the answer in a state.
        count: How many operations.
        processes: How many at a time.
        crashed: The share of operations that never return; half of those take effect.
        seed: Names the history.
    """
    random = Random(seed)
    idle = list(range(processes))
    running: dict[int, _Open] = {}
    operations: list[Operation] = []
    state = model.initial
    event = number = fresh = revision = 0
    fresh = processes
    while number < count or running:
        if idle and number < count and (not running or random.random() < 0.5):
            f, argument = draw(random)
            running[idle.pop(random.randrange(len(idle)))] = _Open(
                event, f, argument, crashes=random.random() < crashed
            )
            number += 1
            event += 1
            continue
        process = random.choice(list(running))
        op = running[process]
        if op.order is None:
            op.result = answer(state, op.f, op.argument)
            if not op.crashes or random.random() < 0.5:
                before, state = state, model.step(state, Call(op.f, op.result, op.argument, op.result, ok=True))
                revision += before != state
            op.order = revision
            continue
        del running[process]
        operations.append(
            Operation(
                process=process,
                f=op.f,
                value=op.argument,
                result=None if op.crashes else op.result,
                type=OpType.INFO if op.crashes else OpType.OK,
                start_ns=op.start,
                end_ns=None if op.crashes else event,
                invoke_index=op.start,
                complete_index=None if op.crashes else event,
                order=None if op.crashes else op.order,
            )
        )
        idle.append(fresh if op.crashes else process)
        fresh += op.crashes
        event += 1
    return sorted(operations, key=lambda op: op.invoke_index)


def without_hints(operations: Sequence[Operation]) -> list[Operation]:
    """Returns a history of which the system tells no order."""
    return [replace(op, order=None) for op in operations]


def max_register(count: int = 20_000, processes: int = 20, values: int = 60) -> tuple[Model, list[Operation]]:
    """Returns a register that keeps the greatest value, half of its operations reads."""

    def draw(random: Random) -> tuple[str, Any]:
        return ("read", None) if random.random() < 0.5 else ("max", random.randrange(values))

    model = MaxRegister()
    return model, simulate(
        model, draw, lambda state, f, _: state if f == "read" else None,
        count=count, processes=processes, crashed=0.0, seed="max register",
    )  # fmt: skip


def bank(count: int = 500, processes: int = 20, crashed: float = 0.0) -> tuple[Model, list[Operation]]:
    """Returns a bank of which four of five operations are transfers: 400 of 500."""

    def draw(random: Random) -> tuple[str, Any]:
        if random.random() < 0.2:
            return "read", random.choice([None, *range(ACCOUNTS)])
        source, target = random.sample(range(ACCOUNTS), 2)
        return "transfer", [source, target, random.randint(1, 50)]

    def answer(state: Any, f: str, argument: Any) -> Any:
        if f == "read":
            return list(state) if argument is None else state[argument]
        return state[argument[0]] >= argument[2]

    model = Bank()
    return model, simulate(model, draw, answer, count=count, processes=processes, crashed=crashed, seed="bank")


def failing_store(count: int = 3_000, processes: int = 20, crashed: float = 0.5) -> tuple[Model, list[Operation]]:
    """Returns a store half of whose requests fail without an answer."""

    def draw(random: Random) -> tuple[str, Any]:
        key = random.randrange(STORE_KEYS)
        f = random.choice(["get", "put", "cas"])
        some, other = random.randrange(STORE_VALUES), random.randrange(STORE_VALUES)
        return f, key if f == "get" else [key, some] if f == "put" else [key, some, other]

    def answer(state: Any, f: str, argument: Any) -> Any:
        if f == "get":
            return state[argument]
        return None if f == "put" else state[argument[0]] == argument[1]

    model = Store()
    return model, simulate(model, draw, answer, count=count, processes=processes, crashed=crashed, seed="failing store")
