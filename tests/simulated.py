"""Histories of an honest object under processes that run at the same time, for tests of whoever decides histories."""

from __future__ import annotations

import heapq
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from checker.models import Inconsistent
from harness.op import Operation, OpType

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from random import Random

    from checker.models import Model


def simulated(
    model: Model,
    random: Random,
    draw: Callable[[Random], tuple[str, Any]],
    answer: Callable[[Any, str, Any, Random], Any],
    *,
    count: int,
    processes: int,
    crashes: int = 0,
) -> list[Operation]:
    """Returns a history that is linearizable: each operation takes effect at a moment between its events.

    Args:
        model: The object.
        random: Draws everything.
        draw: Draws a function and its argument.
        answer: Returns what the object in a state answers.
        count: How many operations there are.
        processes: How many run at the same time.
        crashes: How many operations never return, at most; one in two of them takes effect.
    """
    heap = [(random.random(), process, "begin", -1) for process in range(processes)]
    heapq.heapify(heap)
    state, index = model.initial, 0
    operations: list[Operation] = []
    while heap:
        now, process, event, number = heapq.heappop(heap)
        if event == "begin" and len(operations) < count:
            f, argument = draw(random)
            heapq.heappush(heap, (now + random.expovariate(1), process, "effect", len(operations)))
            operations.append(
                Operation(
                    process=process, f=f, value=argument, result=None, type=OpType.INFO, start_ns=index, end_ns=None,
                    invoke_index=index, complete_index=None,
                )
            )  # fmt: skip
            index += 1
        elif event == "effect":
            op = operations[number]
            crashed = crashes > 0 and random.random() < 0.05
            if not crashed or random.random() < 0.5:
                result = answer(state, op.f, op.value, random)
                after = model.step(state, model.call(replace(op, type=OpType.OK, result=result)))
                assert not isinstance(after, Inconsistent)
                state = after
                operations[number] = replace(op, result=result)
            if crashed:
                crashes -= 1
                operations[number] = replace(op, result=None)
                heapq.heappush(heap, (now, process + processes, "begin", -1))
            else:
                heapq.heappush(heap, (now + random.expovariate(1), process, "end", number))
        elif event == "end":
            op = operations[number]
            operations[number] = replace(op, type=OpType.OK, end_ns=index, complete_index=index)
            index += 1
            heapq.heappush(heap, (now + random.random() / 10, process, "begin", -1))
    return operations


def spoiled(operations: Sequence[Operation], at: float, wrong: Callable[[Operation], Any]) -> list[Operation]:
    """Returns the history with one wrong answer.

    Args:
        operations: The history.
        at: Where, from 0 for the start to 1 for the end.
        wrong: Returns a wrong answer; None for an operation that is left as it is.
    """
    out = list(operations)
    for number in range(int(at * (len(out) - 1)), len(out)):
        answer = wrong(out[number]) if out[number].type is OpType.OK else None
        if answer is not None:
            out[number] = replace(out[number], result=answer)
            return out
    raise AssertionError("expected an operation with an answer")
