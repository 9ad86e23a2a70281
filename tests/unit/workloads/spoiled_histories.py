"""Small random histories of one object, correct or with a few wrong results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harness.op import Operation, OpType

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

MS = 1_000_000


def operation(  # noqa: PLR0917 - as one says it: when, what, with which answer
    begin: int,
    end: int | None,
    f: str,
    value: Any = None,
    result: Any = None,
    kind: OpType = OpType.OK,
    process: int = 0,
) -> Operation:
    """Returns an operation from event `begin` to event `end`; the index of an event is its time in milliseconds."""
    return Operation(
        process=process, f=f, value=value, result=result if kind is OpType.OK else None, type=kind,
        start_ns=begin * MS, end_ns=None if end is None else end * MS, invoke_index=begin,
        complete_index=None if kind is OpType.INFO else end,
    )  # fmt: skip


def random_history(
    random: Random,
    *,
    size: int,
    call: Callable[[int], tuple[str, Any]],
    apply: Callable[[str, Any], Any],
    spoil: Callable[[str, Any], Any],
) -> list[Operation]:
    """Returns the operations of a few processes, in the order of their invokes.

    Args:
        random: The random numbers.
        size: The number of operations.
        call: Returns the function and the argument of the n-th operation.
        apply: Applies an operation and returns its result.
        spoil: Returns the recorded result, which can be wrong.
    """
    idle = list(range(3))
    running: dict[int, list[Any]] = {}
    made: list[Operation] = []
    event = begun = 0
    while begun < size or running:
        if begun < size and idle and (not running or random.random() < 0.4):
            process = idle.pop(random.randrange(len(idle)))
            running[process] = [event, *call(begun), None, False]
            begun += 1
            event += 1
            continue
        process = random.choice(list(running))
        begin, f, value, result, done = running[process]
        if not done and random.random() < 0.7:
            running[process][3:] = [apply(f, value), True]
            continue
        chance = random.random()
        if not done:  # a fail or an info; it can still take effect, which is a bug for a fail
            kind = OpType.FAIL if chance < 0.5 else OpType.INFO
            if random.random() < 0.1:
                apply(f, value)
        else:
            kind = OpType.OK if chance < 0.85 else OpType.INFO
        del running[process]
        idle.append(process if kind is not OpType.INFO else process + 3)
        made.append(operation(begin, event, f, value, spoil(f, result), kind, process))
        event += 1
    return sorted(made, key=lambda each: each.invoke_index)
