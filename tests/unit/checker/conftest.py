"""Random histories of every model as operations, and `labrys check` in this process."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from checker.models import Inconsistent, model
from commands.check.command import check
from harness.op import Operation, OpType
from tests.clients import Clients

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from checker.models import Model

DOMAIN = 3


class Ran(NamedTuple):
    """The result of a command."""

    code: int
    out: str
    err: str


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    """Runs `labrys check` with arguments. Errors are raised."""

    def go(*arguments: object, **context: Any) -> Ran:
        code = check.main([*map(str, arguments)], standalone_mode=False, **context)
        out, err = capsys.readouterr()
        return Ran(code, out, err)

    return go


def _draw_call(name: str, random: Random, number: int, *, unique: bool) -> tuple[str, Any]:  # noqa: PLR0911 - one a model
    """Returns a function and its argument."""
    fresh = number if unique else random.randrange(DOMAIN)
    some = random.randrange(number + 1 if unique else DOMAIN)
    if name == "register":
        return random.choice([("read", None), ("write", fresh)])
    if name == "cas-register":
        return random.choice([("read", None), ("write", fresh), ("cas", [some, fresh])])
    if name in {"mutex", "owner-mutex"}:
        calls: list[tuple[str, Any]] = [("acquire", None), ("release", None)]
        return random.choice([*calls, ("write", some)] if name == "owner-mutex" else calls)
    if name == "multi-register":
        micros = [
            random.choice([["read", r, None], ["write", r, some]]) for r in random.sample("xy", random.randint(1, 2))
        ]
        return "txn", micros
    if name in {"set", "grow-set"}:
        calls = [("add", fresh), ("contains", some), ("read", None)]
        return random.choice([*calls, ("remove", some)] if name == "set" else calls)
    if name == "counter":
        return random.choice([("add", 1 if unique else random.randint(1, 2)), ("read", None), ("fetch-add", 1)])
    if name in {"fifo-queue", "unordered-queue"}:
        return random.choice([("enqueue", fresh), ("dequeue", None)])
    if name == "list":
        return random.choice([("append", fresh), ("read", None)])
    if name == "kv":
        return random.choice([("append", f"<{fresh}>"), ("put", f"<{fresh}>"), ("get", None), ("get", None)])
    return "anything", some


def _answer(name: str, state: Any, f: str, argument: Any, random: Random) -> Any:  # noqa: PLR0911 - one a function
    """Returns an honest object's answer, or one close to it."""
    if f in {"read", "get"} and name in {"register", "cas-register", "counter", "kv"}:
        return state
    if f == "fetch-add":
        return state
    if f == "read":
        return [element if name == "list" else _revive(element) for element in state]
    if f == "contains":
        return argument in {_revive(element) for element in state}
    if f == "dequeue":
        elements = state[0] if name == "unordered-queue" else state
        return (
            random.choice(elements) if elements and name == "unordered-queue" else (elements[0] if elements else None)
        )
    if f == "txn":
        values = dict(state)
        out = []
        for kind, register, value in argument:
            if kind == "write":
                values[register] = value
            out.append([kind, register, values.get(register)])
        return out
    return argument


def _revive(element: Any) -> Any:
    return element[-1] if isinstance(element, tuple) else element


def _spoil(answer: Any, random: Random) -> Any:
    if isinstance(answer, bool):
        return not answer
    if isinstance(answer, int) or answer is None:
        return random.randrange(DOMAIN + 2)
    if isinstance(answer, str):
        return answer[: len(answer) // 2]
    if answer and isinstance(answer[0], list):
        return [
            [kind, register, random.randrange(DOMAIN) if kind == "read" else value] for kind, register, value in answer
        ]
    return answer[1:]


def draw_history(
    name: str,
    random: Random,
    *,
    longest: int = 7,
    unique: bool = False,
    ties: bool = False,
    options: dict[str, Any] | None = None,
) -> tuple[Model, list[Operation]]:
    """Returns a model and a history of it: mostly honest, with crashed and failed operations, and with ties on request."""
    object_ = model(name, **(options or {}))
    state = object_.initial
    clients = Clients(random, ties=ties)
    operations: list[Operation] = []
    for number in range(random.randrange(longest + 1)):
        drawn = clients.next(number)
        if drawn is None:
            break
        process, start, end = drawn
        f, argument = _draw_call(name, random, number + 1, unique=unique)
        kind = random.choices([OpType.OK, OpType.INFO, OpType.FAIL], [75, 18, 7])[0]
        answer = _answer(name, state, f, argument, random)
        if kind is OpType.OK and random.random() < 0.12 and f not in {"write", "add", "append", "put", "enqueue"}:
            answer = _spoil(answer, random) if f not in {"cas", "acquire", "release"} else answer
        operation = Operation(
            process=process,
            f=f,
            value=argument,
            result=answer if kind is OpType.OK and f not in {"acquire", "release"} else None,
            type=kind,
            start_ns=start,
            end_ns=end,
            invoke_index=start,
            complete_index=end,
        )
        operations.append(operation)
        clients.done(process, end, crashed=kind is OpType.INFO)
        if kind is OpType.OK or (kind is OpType.INFO and random.random() < 0.5):
            after = object_.step(state, object_.call(replace(operation, type=OpType.OK, result=answer)))
            if not isinstance(after, Inconsistent):
                state = after
    return object_, operations


@pytest.fixture
def draw() -> Callable[..., tuple[Model, list[Operation]]]:
    """Returns the function that draws histories."""
    return draw_history


def make_operation(  # noqa: PLR0917 - a row of a table
    process: int,
    f: str,
    value: Any,
    start: int,
    end: int | None,
    result: Any = None,
    *,
    key: str | None = None,
    kind: OpType | None = None,
) -> Operation:
    """Returns an operation. It is `info` if it has no end, and its times are its indexes in milliseconds."""
    if kind is None:
        kind = OpType.INFO if end is None else OpType.OK
    return Operation(
        process=process,
        f=f,
        value=value,
        result=result if kind is OpType.OK else None,
        type=kind,
        start_ns=start * 1_000_000,
        end_ns=None if end is None else end * 1_000_000,
        invoke_index=start,
        complete_index=end,
        key=key,
    )


@pytest.fixture
def operation() -> Callable[..., Operation]:
    """Returns the function that makes an operation."""
    return make_operation
