"""Small random histories of one object, honest or nearly so."""

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
    """Returns an operation from event `begin` to event `end`; an event happens at as many milliseconds as its index says."""
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
        random: Where chance comes from.
        size: How many operations.
        call: Returns the function and the argument of the n-th operation.
        apply: Lets an operation take effect and returns its result.
        spoil: Returns the result that is recorded, perhaps a wrong one.
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
        if (
            not done
        ):  # it fails, or nothing is known of it; it may take effect for all that, which is a bug if it failed
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
