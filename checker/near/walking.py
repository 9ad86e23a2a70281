"""The common part of rules that walk through a history: the operations in the order so far, and those that may come next.

A walk adds operations to an order, one by one. An operation may come next if no other remaining operation ended before it
began. So the operations that may come next are open at one moment, the minimum end of the remaining ones. The operations in the
order so far are all that began before this moment, but for a few. That makes a state small, for a history of any length. If
several operations may come next, they are tried in turn.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeVar

from checker.models.opcodes import INFINITE
from checker.search.allowance import UNLIMITED, Allowance

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Sequence

BEFORE: Final = -(2**63) + 1  # earlier than all events of a history
LAST: Final = (INFINITE, 0)  # later than all returns
MOST_STATES: Final = 500_000  # some 500 bytes each
_CLOCK_EVERY: Final = 256


class Kind:
    """The operations of one kind, by start.

    Attributes:
        starts: By number, the start.
        ends: By number, the end.
        values: By number, the value.
        positions: By number, the position in the history; -1 for an initial element.
        by_end: The numbers, sorted by end.
        inner: By number, the maximum start of the operations of its value that lie within its interval; `BEFORE` for none.
    """

    def __init__(self, items: Iterable[tuple[int, int, int, int]]) -> None:
        """Prepares for operations, given by (start, end, value, position)."""
        ordered = sorted(items)
        self.starts = [item[0] for item in ordered]
        self.ends = [item[1] for item in ordered]
        self.values = [item[2] for item in ordered]
        self.positions = [item[3] for item in ordered]
        self.by_end = sorted(range(len(ordered)), key=self.ends.__getitem__)
        self.inner = [BEFORE] * len(ordered)
        of_value: defaultdict[int, list[int]] = defaultdict(list)
        for number, value in enumerate(self.values):
            of_value[value].append(number)
        for numbers in of_value.values():
            least = [self.ends[number] for number in numbers]
            for index in range(len(numbers) - 2, -1, -1):
                least[index] = min(least[index], least[index + 1])
            for index, number in enumerate(numbers):
                inside = bisect_left(least, self.ends[number]) - 1
                if inside > index:
                    self.inner[number] = self.starts[numbers[inside]]

    def __len__(self) -> int:
        return len(self.starts)


class Done(NamedTuple):
    """The operations of a kind that are in the order so far.

    Attributes:
        begun: All operations before this number may come next, or are in the order.
        left: Those of them that are not in the order.
        ended: The place in `by_end` before which all are in the order.
        least: The minimum end of those that are not in the order.
    """

    begun: int
    left: tuple[int, ...]
    ended: int
    least: int

    def opened(self, kind: Kind, until: int) -> Done:
        """Returns a copy whose `left` also has the operations that begin until a moment."""
        begun, starts = self.begun, kind.starts
        if begun == len(starts) or starts[begun] > until:
            return self
        left = list(self.left)
        while begun < len(starts) and starts[begun] <= until:
            left.append(begun)
            begun += 1
        return Done(begun, tuple(left), self.ended, self.least)

    def without(self, kind: Kind, number: int) -> Done:
        """Returns a copy with one more operation of `left` in the order."""
        left = tuple(other for other in self.left if other != number)
        ended, by_end = self.ended, kind.by_end
        while ended < len(by_end) and by_end[ended] < self.begun and by_end[ended] not in left:
            ended += 1
        least = kind.ends[by_end[ended]] if ended < len(by_end) else INFINITE
        return Done(self.begun, left, ended, least)


def nothing(kind: Kind) -> Done:
    """Returns the empty order."""
    return Done(0, (), 0, kind.ends[kind.by_end[0]] if len(kind) else INFINITE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Walked:
    """The result of a walk.

    Attributes:
        valid: Whether there is a linearization; None if the budget ended before that.
        order: The positions of the operations in the order of a linearization, on request.
        steps: The number of steps.
        stuck: Invalid: the latest return at which the walk was stuck; a guess of the first return without a linearization.
    """

    valid: bool | None
    order: list[int] | None = None
    steps: int = 0
    stuck: int = INFINITE


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """The limits of a walk.

    Attributes:
        allowance: The time.
        most_states: The maximum number of remembered states.
    """

    allowance: Allowance = UNLIMITED
    most_states: int = MOST_STATES


class _State(Protocol):
    """A state of a walk.

    Attributes:
        key: Equal for states with the same continuations.
        due: The minimum end of the operations that must still come; `INFINITE` if there are none.
    """

    @property
    def key(self) -> Hashable: ...

    @property
    def due(self) -> int: ...


State = TypeVar("State", bound=_State)
Step = TypeVar("Step")


def walk(
    state: State,
    following: Callable[[State], list[Step]],
    after: Callable[[State, Step], State],
    budget: Budget,
    order_of: Callable[[Sequence[Step]], list[int]] | None = None,
) -> Walked:
    """Searches for steps to a state in which nothing is due: depth first, with a memory of dead ends.

    Args:
        state: The first state.
        following: Returns the possible next steps, the most promising last; a single step has no alternative.
        after: Returns the state after a step.
        budget: The limits of the walk.
        order_of: Returns the positions of the operations in the order of the steps; None if no order is wanted.
    """
    path: list[Step] = []
    choices: list[tuple[State, int, list[Step]]] = []
    seen: set[Hashable] = set()
    steps = 0
    stuck = -1
    while state.due != INFINITE:
        options = following(state)
        if len(options) == 1:
            step = options[0]
        else:
            if not options:
                stuck = max(stuck, state.due)
            elif state.key not in seen:
                if len(seen) == budget.most_states:
                    return Walked(valid=None, steps=steps)
                seen.add(state.key)
                choices.append((state, len(path), options))
            while choices and not choices[-1][2]:
                choices.pop()
            if not choices:
                return Walked(valid=False, steps=steps, stuck=stuck)
            state, length, options = choices[-1]
            del path[length:]
            step = options.pop()
        steps += 1
        if not steps % _CLOCK_EVERY and budget.allowance.is_over():
            return Walked(valid=None, steps=steps)
        path.append(step)
        state = after(state, step)
    return Walked(valid=True, order=None if order_of is None else order_of(path), steps=steps)
