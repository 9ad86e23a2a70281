"""Small histories of workloads, written by hand or random."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.op import Operation, OpType

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Sequence

    from harness.op import Value

    Call = tuple[str, Value]
    Answer = tuple[OpType, Value]

MS = 1_000_000


def done(  # noqa: PLR0917 - a table of operations is read line by line
    start: int,
    end: int | None,
    process: int,
    f: str,
    value: Value = None,
    result: Value = None,
    *,
    kind: OpType = OpType.OK,
    key: str | None = None,
    phase: str | None = None,
) -> Operation:
    """Returns an operation between two events; the index is the time in milliseconds. Without an end it is an info."""
    kind = OpType.INFO if end is None else kind
    return Operation(
        process=process, f=f, value=value, result=result if kind is OpType.OK else None, type=kind, start_ns=start * MS,
        end_ns=None if end is None else end * MS, invoke_index=start,
        complete_index=None if kind is OpType.INFO else end, key=key, phase=phase,
    )  # fmt: skip


def chance(
    draws: random.Random,
    count: int,
    call: Callable[[int], Call],
    answer: Callable[[int, Call], Answer],
    *,
    processes: int = 3,
) -> Sequence[Operation]:
    """Returns operations of sequential processes, with random starts and ends.

    Args:
        draws: The random numbers.
        count: The number of operations.
        call: Returns the next request of a process.
        answer: Returns the outcome, at the end; after an info, another process takes the process' place.
        processes: The number of concurrent processes.
    """
    operations = []
    idle = list(range(processes))
    flying: list[tuple[int, int, Call]] = []
    event, following = 0, processes
    while count or flying:
        if count and idle and (not flying or draws.random() < 0.5):
            process = idle.pop(draws.randrange(len(idle)))
            flying.append((event, process, call(process)))
            count -= 1
        else:
            start, process, (f, value) = flying.pop(draws.randrange(len(flying)))
            kind, result = answer(process, (f, value))
            end = None if kind is OpType.INFO else event
            operations.append(done(start, end, process, f, value, result, kind=kind))
            if end is None:
                process, following = following, following + 1
            idle.append(process)
        event += 1
    return sorted(operations, key=lambda operation: operation.invoke_index)
