"""The states in which a history can leave an object right before one of its operations returns.

A history fails at the first return after which no linearization is left. The state of an order of all operations until then,
without the failing one, is a *final state*. The model refuses the failing operation in each of them: an order that ended in
another state could continue with it. So the reasons of these refusals are the reason for the verdict, and they are facts about
the whole history.

The breadth-first search of the kernel uses no reduction that loses a state, but it lets operations take effect only when they
have to. So the open operations take effect here: in any order, each once or never.
"""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from checker._kernel import REFUSED
from checker.search.solving import solve
from checker.words import value_text
from harness.console.plain import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from checker._kernel import Outcome, Transitions
    from checker.search.allowance import Allowance
    from checker.search.encode import Encoded

_MOST_STEPS: Final = 20_000
_MOST_PATHS: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """Final states of a history, or of a part of it.

    Attributes:
        states: Their numbers in the table of the model; never empty.
        complete: Whether these are all.
        paths: To a few of the states, the operations of a way there, by positions; each stands for all operations like it.
    """

    states: frozenset[int]
    complete: bool
    paths: tuple[tuple[int, ...], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusals:
    """The reasons for which a model refuses an operation in final states.

    Attributes:
        shown: The reasons after the shown operations.
        others: More reasons, after other orders of the whole history; None if it is only known that no other operation makes
            the refused one possible.
        complete: Whether there are no others.
    """

    shown: tuple[str, ...]
    others: tuple[str, ...] | None
    complete: bool = False

    @classmethod
    def of(cls, part: Sequence[str], whole: Sequence[str], *, complete: bool) -> Refusals:
        """Returns the reasons after the whole history; first those of a part, if they are among them."""
        if not part or not set(part) <= set(whole):
            return cls(shown=tuple(whole), others=(), complete=complete)
        return cls(shown=tuple(part), others=tuple(reason for reason in whole if reason not in part), complete=complete)


def reasons_of(table: Transitions, states: Iterable[int], cls: int) -> tuple[str, ...]:
    """Returns the different reasons for which a model refuses operations in some states, in alphabetical order.

    Args:
        table: The table of the model.
        states: The numbers of the states.
        cls: The number of the operations.
    """
    texts = set()
    for state in states:
        message = table.refusal(state, cls)
        texts.add(one_line(str(message or "")).rstrip(".") or f"the state is {value_text(table.state(state))}")
    return tuple(sorted(texts))


def known(encoded: Encoded, outcome: Outcome) -> Reach | None:
    """Returns the final states that the search for the verdict has reached; None if it reports none."""
    states = frozenset(encoded.after(config.path) for config in outcome.configs)
    if not states or REFUSED in states:
        return None
    return Reach(states=states, complete=False, paths=_shortest(config.path for config in outcome.configs))


def _shortest(paths: Iterable[Sequence[int]]) -> tuple[tuple[int, ...], ...]:
    return tuple(sorted(set(map(tuple, paths)), key=len)[:_MOST_PATHS])


def reach(encoded: Encoded, kept: Sequence[int], op: int, allowance: Allowance) -> Reach | None:
    """Returns the final states of some operations, right before one of them returns.

    Args:
        encoded: The history, with a table of the model.
        kept: The positions of the operations, with `op`.
        op: The position of the operation.
        allowance: The budget of the search.

    Returns:
        None if the operations have an order with `op`, fail at an earlier return, or are too many for the time.
    """
    [outcome] = solve([encoded.part(kept, encoded.operations[op].complete_index)], allowance.limits("linear"))
    failed = outcome.op
    if outcome.verdict != "invalid" or failed is None or kept[failed] != op:
        return None
    spread = _Spread(encoded, op)
    complete = outcome.has_all_configs
    paths = []
    for config in outcome.configs:
        paths.append([kept[index] for index in config.path])
        state = encoded.after(paths[-1])
        complete = spread.over(state, [kept[index] for index in config.pending]) and complete
    return Reach(states=frozenset(spread.states), complete=complete, paths=_shortest(paths)) if paths else None


class _Spread:
    """The states that open operations lead to."""

    def __init__(self, encoded: Encoded, op: int) -> None:
        self._table = encoded.table
        self._codes = encoded.codes
        self._op = op
        self._observes = encoded.coder.observers() or b""
        self._seen: set[tuple[int, tuple[tuple[int, int], ...]]] = set()
        self._steps = 0
        self.states: set[int] = set()

    def over(self, state: int, pending: Sequence[int]) -> bool:
        """Adds a state, and those that open operations lead to; returns whether these are certainly all."""
        classes = Counter(self._codes[i].a for i in pending if i != self._op)
        for cls in [cls for cls in classes if self._observes[cls]]:
            del classes[cls]
        first = (state, tuple(sorted(classes.items())))
        self.states.add(state)
        if first in self._seen:
            return True
        self._seen.add(first)
        work = deque([first])
        while work:
            if self._steps >= _MOST_STEPS:
                # If each could take effect many times, there would be no other state either.
                return self._closed(state, classes)
            before, left = work.popleft()
            for index, (cls, count) in enumerate(left):
                self._steps += 1
                after = self._table.step(before, cls)
                if after == REFUSED:
                    continue
                rest = (*left[:index], *(((cls, count - 1),) if count > 1 else ()), *left[index + 1 :])
                if after == before or (after, rest) in self._seen:
                    continue
                self._seen.add((after, rest))
                self.states.add(after)
                work.append((after, rest))
        return True

    def _closed(self, state: int, classes: Iterable[int]) -> bool:
        """Returns whether operations of these classes, however often, lead to known states only."""
        reached = {state}
        work = [state]
        while work:
            before = work.pop()
            for cls in classes:
                after = self._table.step(before, cls)
                if after != REFUSED and after not in reached:
                    if after not in self.states:
                        return False
                    reached.add(after)
                    work.append(after)
        return True
