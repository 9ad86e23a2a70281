"""The operations of a search: what clients have asked, and what they were told.

A client invokes an operation at the moment when the request arrives at a node, and has the answer at the moment when the node
sends it. A real operation takes longer. It overlaps more operations, and so its history allows more. So these shortest
operations hide no violation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from harness.op import Fail, Ok, Operation, OpType

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.op import Invocation

_TICK_NS: Final = 1_000_000


class Seen(NamedTuple):
    """An operation that was invoked.

    Attributes:
        after: The operations that had ended before, as a bit mask of their numbers.
        node: The node that got the request.
        outcome: Its outcome; None if there is none, or if the answer leaves open whether it happened.
    """

    after: int
    node: str
    outcome: Ok | Fail | None


History = tuple["Seen | None", ...]
"""What is known of each operation, by number; None: not invoked."""


@dataclass(frozen=True, slots=True)
class Asked:
    """An operation that a search may invoke.

    Attributes:
        invocation: The operation.
        equals: An earlier operation that is equal, which must be invoked before; None if there is none.
    """

    invocation: Invocation
    equals: int | None


def asked(invocations: Sequence[Invocation]) -> list[Asked]:
    """Returns the operations. Of equal ones, each refers to the one before."""
    found: list[Asked] = []
    for number, invocation in enumerate(invocations):
        before = [place for place in range(number) if invocations[place] == invocation]
        found.append(Asked(invocation, before[-1] if before else None))
    return found


def operations(history: History, asked_for: Sequence[Asked]) -> list[Operation]:
    """Returns the operations with times that have the order of the history: who ended before whom was invoked."""
    present = {number: seen for number, seen in enumerate(history) if seen is not None}
    levels = sorted({seen.after for seen in present.values()}, key=int.bit_count)
    events: list[tuple[float, int, int]] = []  # time, operation, 0 for its beginning and 1 for its end
    for number, seen in present.items():
        events.append((levels.index(seen.after), number, 0))
        if seen.outcome is not None:
            later = [place for place, mask in enumerate(levels) if mask >> number & 1]
            events.append((min(later, default=len(levels)) - 0.5, number, 1))
    places = {(number, end): place for place, (_, number, end) in enumerate(sorted(events))}
    return [_operation(number, seen, asked_for[number], places) for number, seen in present.items()]


def _operation(number: int, seen: Seen, wanted: Asked, places: dict[tuple[int, int], int]) -> Operation:
    invocation, outcome = wanted.invocation, seen.outcome
    begin, end = places[number, 0], places.get((number, 1))
    kind = OpType.OK if isinstance(outcome, Ok) else OpType.FAIL if isinstance(outcome, Fail) else OpType.INFO
    return Operation(
        process=number,
        f=invocation.f,
        value=invocation.value,
        result=outcome.value if isinstance(outcome, Ok) else None,
        type=kind,
        start_ns=begin * _TICK_NS,
        end_ns=None if end is None else end * _TICK_NS,
        invoke_index=begin,
        complete_index=end,
        key=invocation.key,
        node=seen.node,
        error=outcome.error if isinstance(outcome, Fail) else None,
        order=outcome.order if isinstance(outcome, Ok) else None,
    )
