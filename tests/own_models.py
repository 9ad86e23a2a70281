"""Models as a user writes them, and random histories of them, for tests of whoever decides and explains own models."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from checker.models import Call, Flow, Inconsistent, Model
from harness.op import Operation, OpType
from tests.clients import Clients

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

VALUES = 3


class MaxRegister(Model):
    """`max` of a value raises it, `read` returns it."""

    name = "max-register"

    def __init__(self, initial: int = 0) -> None:
        self.initial = initial
        self.initial_values = (initial,)

    def step(self, state: int, op: Call) -> int | Inconsistent:
        """See `Model`."""
        if op.f == "max":
            return max(state, int(op.argument))
        return state if not op.ok or op.result == state else Inconsistent(f"the maximum is {state}")

    def observes(self, op: Call) -> bool:
        """See `Model`."""
        return op.f == "read"

    def flow(self, op: Call) -> Flow:
        """See `Model`."""
        if op.f == "max":
            return Flow(makes=[op.argument])
        return Flow(needs=[op.result] if op.ok else [])


class SilentMaxRegister(MaxRegister):
    """The same, but it says nothing about its values."""

    name = "silent-max-register"
    flow = Model.flow  # type: ignore[assignment]  # as a model without one


class BoundedStack(Model):
    """`push` of a value fails to be legal when three are there; `pop` returns the last one, nil if there is none."""

    name = "bounded-stack"
    initial = ()

    def step(self, state: tuple[int, ...], op: Call) -> tuple[int, ...] | Inconsistent:
        """See `Model`."""
        if op.f == "push":
            return (*state, op.argument) if len(state) < VALUES else Inconsistent("the stack is full")
        top = state[-1] if state else None
        if op.ok and op.result != top:
            return Inconsistent(f"{top} is on top")
        return state[:-1]

    def flow(self, op: Call) -> Flow:
        """See `Model`."""
        if op.f == "push":
            return Flow(makes=[op.argument])
        return Flow(takes=[op.result] if op.ok and op.result is not None else [])


class Stack(Model):
    """`push` of a value, without a limit; `pop` returns the last one."""

    name = "stack"
    initial = ()

    def step(self, state: tuple[int, ...], op: Call) -> tuple[int, ...] | Inconsistent:
        """See `Model`."""
        if op.f == "push":
            return (*state, op.argument)
        if not state:
            return Inconsistent("the stack is empty")
        if op.ok and op.result != state[-1]:
            return Inconsistent(f"the top is {state[-1]}")
        return state[:-1]


class Line(Model):
    """`join` of a value puts it at the end, `leave` returns the first one. Its state is a list, which is not hashable."""

    name = "line"
    initial: Sequence[int] = []

    def step(self, state: Sequence[int], op: Call) -> Sequence[int] | Inconsistent:
        """See `Model`."""
        if op.f == "join":
            return [*state, op.argument]
        if op.ok and op.result != (state[0] if state else None):
            return Inconsistent(f"{state[0]} is first" if state else "nobody is there")
        return list(state[1:])


class Bank(Model):
    """`transfer` of [from, to, amount] is refused below zero; `balances` returns all of them."""

    name = "bank"
    initial = (2, 0)

    def step(self, state: tuple[int, ...], op: Call) -> tuple[int, ...] | Inconsistent:
        """See `Model`."""
        if op.f == "balances":
            return state if not op.ok or tuple(op.result) == state else Inconsistent(f"the balances are {list(state)}")
        source, target, amount = op.argument
        if state[source] < amount:
            return Inconsistent(f"account {source} has {state[source]}")
        after = list(state)
        after[source] -= amount
        after[target] += amount
        return tuple(after)

    def observes(self, op: Call) -> bool:
        """See `Model`."""
        return op.f == "balances"


class Laconic(Stack):
    """A stack that gives no reasons."""

    name = "laconic"

    def step(self, state: tuple[int, ...], op: Call) -> tuple[int, ...] | Inconsistent:
        """See `Model`."""
        after = super().step(state, op)
        return Inconsistent("") if isinstance(after, Inconsistent) else after


class LeaseLock(Model):
    """`acquire` returns a token that is greater than all before; `release` of a token ends the lease."""

    name = "lease-lock"
    initial = (0, False)

    def step(self, state: tuple[int, bool], op: Call) -> tuple[int, bool] | Inconsistent:
        """See `Model`."""
        token, held = state
        if op.f == "release":
            return (token, False) if held and op.argument == token else Inconsistent(f"{op.argument} is no lease")
        if held:
            return Inconsistent(f"it is leased with token {token}")
        if op.ok and op.result != token + 1:
            return Inconsistent(f"the next token is {token + 1}")
        return token + 1, True


def waiting(kind: type[Model], seconds: float) -> Model:
    """Returns a model that waits at each step, as each step does on a machine that is busy with other work."""

    class Waiting(kind):  # type: ignore[misc, valid-type]
        """See the function."""

        def step(self, state: Any, op: Call) -> Any:
            """See `Model`."""
            time.sleep(seconds)
            return super().step(state, op)

    return Waiting()


class Broken(Model):
    """A model with a mistake."""

    name = "broken"
    initial = 0

    def step(self, state: int, op: Call) -> int:
        """See `Model`."""
        return state // (0 if op.f == "read" else 1)


class WithoutStep(Model):
    """A model that says nothing."""

    name = "without-step"


class Demanding(Model):
    """A model that cannot be made without being told something."""

    name = "demanding"

    def __init__(self, size: int) -> None:
        self.initial = size

    def step(self, state: int, op: Call) -> int:
        """See `Model`."""
        return state


class Liar(MaxRegister):
    """A model whose `flow` is wrong: a read needs what nobody makes."""

    name = "liar"

    def flow(self, op: Call) -> Flow:
        """See `Model`."""
        return Flow(needs=["what nobody makes"] if op.f == "read" else [])


def _call(model: Model, random: Random) -> tuple[str, Any]:
    if isinstance(model, MaxRegister):
        return random.choice([("read", None), ("max", random.randrange(VALUES))])
    if isinstance(model, Line):
        return random.choice([("leave", None), ("join", random.randrange(VALUES))])
    if isinstance(model, Bank):
        return random.choice([("balances", None), ("transfer", [random.randrange(2), random.randrange(2), 1])])
    if isinstance(model, (BoundedStack, Stack)):
        return random.choice([("pop", None), ("push", random.randrange(VALUES))])
    return random.choice([("acquire", None), ("release", random.randint(1, VALUES))])


def _answer(state: Any, f: str) -> Any:
    if f == "pop":
        return state[-1] if state else None
    if f == "leave":
        return state[0] if state else None
    if f == "balances":
        return list(state)
    return {"read": state, "acquire": state[0] + 1 if f == "acquire" else None}.get(f)


def draw(model: Model, random: Random, *, longest: int = 7) -> list[Operation]:
    """Returns a history: mostly honest, with crashed operations, some impossible answers and some impossible calls."""
    state = model.initial
    clients = Clients(random)
    operations: list[Operation] = []
    for number in range(random.randrange(longest + 1)):
        drawn = clients.next(number)
        if drawn is None:
            break
        process, start, end = drawn
        f, argument = _call(model, random)
        kind = random.choices([OpType.OK, OpType.INFO], [85, 15])[0]
        result = _answer(state, f)
        if result is not None and random.random() < 0.15:
            wrong = random.randrange(VALUES + 1)
            result = [wrong, *result[1:]] if isinstance(result, list) else wrong
        operation = Operation(
            process=process, f=f, value=argument, result=result if kind is OpType.OK else None, type=kind,
            start_ns=start, end_ns=end, invoke_index=start, complete_index=end,
        )  # fmt: skip
        after = model.step(state, model.call(replace(operation, type=OpType.OK, result=result)))
        if isinstance(after, Inconsistent):
            if kind is OpType.OK and random.random() < 0.7:
                continue
        elif kind is OpType.OK or random.random() < 0.5:
            state = after
        operations.append(operation)
        clients.done(process, end, crashed=kind is OpType.INFO)
    return operations


def max_history(random: Random, count: int, *, processes: int = 20, greatest: int = 60, wrong: int) -> list[Operation]:
    """Returns the history of the issue: a max-register by many processes, and one read of 0 that is the `wrong`-th to end."""
    state = ended = 0
    free = list(range(processes))
    open_: dict[int, tuple[str, Any, int, Any]] = {}
    operations: list[Operation] = []
    for index in range(2 * count):
        if free and len(operations) + len(open_) < count and (not open_ or random.random() < 0.6):
            f, value = random.choice([("max", random.randrange(1, greatest)), ("read", None)])
            state = max(state, value or 0)
            open_[free.pop(random.randrange(len(free)))] = (f, value, index, state)
            continue
        process = random.choice(list(open_))
        f, value, start, seen = open_.pop(process)
        ended += 1
        result = value if f == "max" else seen
        if f == "read" and ended >= wrong:
            result, wrong = 0, 2 * count
        operations.append(operation(process, f, value, start, index, result))
        free.append(process)
    return operations


def operation(process: int, f: str, value: Any, start: int, end: int | None, result: Any = None) -> Operation:  # noqa: PLR0917
    """Returns an operation whose times are milliseconds; it never returned if it has no end."""
    return Operation(
        process=process, f=f, value=value, result=result, type=OpType.INFO if end is None else OpType.OK,
        start_ns=start * 1_000_000, end_ns=None if end is None else end * 1_000_000, invoke_index=start,
        complete_index=end,
    )  # fmt: skip


def lines(operations: Sequence[Operation]) -> list[dict[str, Any]]:
    """Returns the history as the lines of a history.jsonl."""
    from harness.pairing import events_of  # noqa: PLC0415 - for files alone

    events = [
        {"index": e.index, "time": e.time_ns, "type": str(e.type), "process": e.process, "f": e.f, "value": e.value}
        for e in events_of(operations)
    ]
    return [{"format": "labrys-history", "version": 1}, *events]
