"""What the rules share that walk through a history: which operations are done, and which may come next by real time.

A walk puts operations in an order one by one. An operation may come next if no other one that remains has ended before it
begins. So what may come next is open at one moment, the least end of what remains, and what is done is all that began before
but a few. That makes a state small, however long the history is. Where more than one may come next they are tried in turn.
"""

from __future__ import annotations

import math
import time
from bisect import bisect_left
from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeVar

from checker.models.opcodes import INFINITE

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Sequence

    from checker._kernel import Cancellation

BEFORE: Final = -(2**63) + 1  # earlier than all that a history has
LAST: Final = (INFINITE, 0)  # later than all returns
MOST_STATES: Final = 500_000  # some 500 bytes each
_CLOCK_EVERY: Final = 256


class Kind:
    """The operations of one kind, by start.

    Attributes:
        starts: By number: when it began.
        ends: By number: when it ended.
        values: By number: its value.
        positions: By number: its position in the history; -1 for an element that is there at the beginning.
        by_end: The numbers in the order of the ends.
        inner: By number: the latest start of those of its value that lie within it.
    """

    def __init__(self, items: Iterable[tuple[int, int, int, int]]) -> None:
        """Takes (start, end, value, position) of each."""
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
            for place in range(len(numbers) - 2, -1, -1):
                least[place] = min(least[place], least[place + 1])
            for place, number in enumerate(numbers):
                inside = bisect_left(least, self.ends[number]) - 1
                if inside > place:
                    self.inner[number] = self.starts[numbers[inside]]

    def __len__(self) -> int:
        return len(self.starts)


class Done(NamedTuple):
    """Which operations of a kind are done.

    Attributes:
        begun: All before this number may come next, or are done.
        left: Those of them that are not done.
        ended: The place in the order of the ends before which all are done.
        least: The least end of those that are not done.
    """

    begun: int
    left: tuple[int, ...]
    ended: int
    least: int

    def opened(self, kind: Kind, until: int) -> Done:
        """Returns the same with what begins until a moment among `left`."""
        begun, starts = self.begun, kind.starts
        if begun == len(starts) or starts[begun] > until:
            return self
        left = list(self.left)
        while begun < len(starts) and starts[begun] <= until:
            left.append(begun)
            begun += 1
        return Done(begun, tuple(left), self.ended, self.least)

    def without(self, kind: Kind, number: int) -> Done:
        """Returns the same with one more that is done, of those in `left`."""
        left = tuple(each for each in self.left if each != number)
        ended, by_end = self.ended, kind.by_end
        while ended < len(by_end) and by_end[ended] < self.begun and by_end[ended] not in left:
            ended += 1
        least = kind.ends[by_end[ended]] if ended < len(by_end) else INFINITE
        return Done(self.begun, left, ended, least)


def nothing(kind: Kind) -> Done:
    """Returns what is done at the beginning."""
    return Done(0, (), 0, kind.ends[kind.by_end[0]] if len(kind) else INFINITE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Walked:
    """What a walk found.

    Attributes:
        valid: Whether there is a linearization; None if the budget ended before.
        order: The positions of the operations in the order of a linearization, if it was asked for.
        steps: How many steps were tried.
        stuck: Invalid: the latest return before which the search was stuck; a guess for the first that cannot be.
    """

    valid: bool | None
    order: list[int] | None = None
    steps: int = 0
    stuck: int = INFINITE


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What a walk may take.

    Attributes:
        deadline_s: Until when, by `time.monotonic`.
        most_states: How many states are remembered at most.
        cancellation: Ends the walk from another thread.
    """

    deadline_s: float = math.inf
    most_states: int = MOST_STATES
    cancellation: Cancellation | None = None

    def is_over(self) -> bool:
        """Says whether the time is over, or nobody wants the answer any more."""
        return time.monotonic() > self.deadline_s or (
            self.cancellation is not None and self.cancellation.is_cancelled()
        )

    def until(self, deadline_s: float) -> Budget:
        """Returns the same that ends at a moment, if it does not end before."""
        return replace(self, deadline_s=min(self.deadline_s, deadline_s))


class _State(Protocol):
    """A state of a walk.

    Attributes:
        key: The same for states that lead to the same.
        due: The least end of what has to come yet; `INFINITE` if all of that is done.
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
    """Looks for steps that lead to a state in which nothing is due: depth first, with a memory of states that led nowhere.

    Args:
        state: Where the walk begins.
        following: Returns what may come next, the most promising last; one step alone has no alternative.
        after: Returns the state after a step.
        budget: What the walk may take.
        order_of: Returns the positions of the operations in the order of the steps; None if nobody asks for an order.
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
        if not steps % _CLOCK_EVERY and budget.is_over():
            return Walked(valid=None, steps=steps)
        path.append(step)
        state = after(state, step)
    return Walked(valid=True, order=None if order_of is None else order_of(path), steps=steps)
