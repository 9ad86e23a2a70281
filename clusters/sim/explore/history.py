"""The operations of a search: what clients have asked, and what they were told.

A client invokes an operation at the moment when the request arrives at a node, and has the answer at the moment when the node
sends it. A real operation takes longer. It overlaps more operations, and so its history allows more. So these shortest
operations hide no violation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from harness.op import Fail, Info, Ok, Operation, OpType

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from harness.op import Invocation, Outcome

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
    asked_for: list[Asked] = []
    for number, invocation in enumerate(invocations):
        before = [index for index in range(number) if invocations[index] == invocation]
        asked_for.append(Asked(invocation, before[-1] if before else None))
    return asked_for


class Histories:
    """All histories that a search has met, each with a number.

    Attributes:
        first: The number of the history at the beginning.
        seen: The histories by number.
        wrong: What is wrong with each of them; None if nothing is.
    """

    def __init__(
        self,
        asked_for: Sequence[Asked],
        outcome: Callable[[int, Any], Outcome],
        judge: Callable[[Sequence[Operation]], str | None],
    ) -> None:
        """Begins; see `clusters.sim.explore.search.Search`."""
        self.seen: list[History] = []
        self.wrong: list[str | None] = []
        self._asked = asked_for
        self._outcome = outcome
        self._judge = judge
        self._numbers: dict[str, int] = {}  # by their texts, since answers can be lists
        self.first = self._number((None,) * len(asked_for))

    def continued(self, history: int, node: str, asked_now: int | None, replies: Sequence[tuple[int, Any]]) -> int:
        """Returns the number of a history after a request or answers.

        Args:
            history: The number of the history before.
            node: The node.
            asked_now: The operation whose request arrives at the node; None if there is none.
            replies: The operations that the node answers, each with the answer.
        """
        seen = list(self.seen[history])
        ended = sum(
            1 << number for number, answer in enumerate(seen) if answer is not None and answer.outcome is not None
        )
        if asked_now is not None:
            seen[asked_now] = Seen(ended, node, None)
        for number, answer in replies:
            own = seen[number]
            outcome = self._outcome(number, answer)
            if own is not None and own.outcome is None and not isinstance(outcome, Info):
                seen[number] = own._replace(outcome=outcome)
        return self._number(tuple(seen))

    def _number(self, history: History) -> int:
        """Returns the number of a history, and judges a new one."""
        number = self._numbers.setdefault(repr(history), len(self.seen))
        if number == len(self.seen):
            self.seen.append(history)
            self.wrong.append(self._judge(operations(history, self._asked)))
        return number


def operations(history: History, asked_for: Sequence[Asked]) -> list[Operation]:
    """Returns the operations with times that have the order of the history: who ended before whom was invoked."""
    present = {number: seen for number, seen in enumerate(history) if seen is not None}
    levels = sorted({seen.after for seen in present.values()}, key=int.bit_count)
    events: list[tuple[float, int, int]] = []  # time, operation, 0 for its beginning and 1 for its end
    for number, seen in present.items():
        events.append((levels.index(seen.after), number, 0))
        if seen.outcome is not None:
            later = [index for index, mask in enumerate(levels) if mask >> number & 1]
            events.append((min(later, default=len(levels)) - 0.5, number, 1))
    places = {(number, end): index for index, (_, number, end) in enumerate(sorted(events))}
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
