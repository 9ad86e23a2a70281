"""Finds a small reason for an invalid history of a user's own model, however long the search for the verdict took.

A reason is a part of the history: a moment `begin`, and some operations that are *kept*. The others are relaxed:

- an operation that ended before `begin` may have taken effect before `begin`, any number of times, or never;
- any other operation may take effect at any time, any number of times, or never;
- a kept operation that began before `begin` may take effect once, or never.

The first attempts begin with the history itself. Then the kept operations contradict each other whatever the others do, and
whenever; such a reason is easiest to understand. Only after that, parts with a later `begin` are tried.

*Soundness.* Every linearization of the whole history is one of the relaxed part: each of its steps is a step of the part. So if
the relaxed part has none, the whole history has none, for any model. The kept operations alone have none either, with one
exception: a search provided the states at `begin` (see below), and the initial state is not among them. Then they depend on
what came before.

The kernel searches the relaxed part. Its states are sets of the model's states: all possible states of the object, given that
the relaxed operations are free. They are computed on demand. If a model has too many states to know all possible ones at
`begin`, the configurations of the search at that moment provide them, if these are few enough to be complete.

The part grows from the impossible operation: first by operations that ended before it began, the nearest first, then also by
those that were open beside it. `checker.search.delta` makes the result smaller. Each attempt has a small limit of its own.
"""

from __future__ import annotations

from array import array
from collections import Counter
from typing import TYPE_CHECKING, Final

from checker._kernel import REFUSED, Problem
from checker.models.opcodes import CUSTOM, INFINITE
from checker.search.delta import smaller
from checker.search.solving import AUTO, solve
from harness.op import OpType

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from checker._kernel import Outcome
    from checker.search.allowance import Allowance
    from checker.search.encode import Encoded

ANALYZER: Final = "relaxed"
_ATTEMPT: Final = 0.15  # the share of the time for one attempt
_MOST_STATES: Final = 2000
_MOST_STEPS: Final = 50_000  # steps of the model to compute all possible states
_STATES_S: Final = 0.3  # the processor time for that
_MOST_CONFIGS: Final = 10  # with more, a part would have too many states at its beginning
_WIDEST: Final = 512
_FIRST: Final = -1  # the moment before the history


class _TooMany(Exception):  # noqa: N818 - not an error: the attempt ends
    """The object has more possible states than the limit."""


def smallest(encoded: Encoded, op: int, allowance: Allowance) -> list[int] | None:
    """Returns a small part of an invalid history without a linearization, by positions; None if there is none in time.

    Args:
        encoded: The history, of a user's own model.
        op: The operation at whose return no linearization is left.
        allowance: The budget of the search for the part.
    """
    return _Reasons(encoded, op, allowance).smallest()


def whatever_else(encoded: Encoded, op: int, within: frozenset[int] | None, allowance: Allowance) -> list[int] | None:
    """Returns a few operations that contradict each other whatever the others do, and whenever; None if there are none in time.

    Args:
        encoded: The history, of a user's own model.
        op: As in `smallest`.
        within: If given, the relaxed part must not lead to other states than these before `op` returns.
        allowance: As in `smallest`.
    """
    return _Reasons(encoded, op, allowance, within).smallest(late=False)


class _Reasons:
    """Parts of one history up to the return of one operation."""

    def __init__(self, encoded: Encoded, op: int, allowance: Allowance, within: frozenset[int] | None = None) -> None:
        self._encoded = encoded
        self._op = op
        self._within = within
        self._allowance = allowance
        self._attempt_s = allowance.left_s * _ATTEMPT
        operations = encoded.operations
        last = operations[op].complete_index
        self._last = INFINITE if last is None else last
        self._start = [operation.invoke_index for operation in operations]
        self._end = [_end(operation.type, operation.complete_index, self._last) for operation in operations]
        self._class = [code.a for code in encoded.codes]
        self._closures: dict[tuple[int, ...], dict[int, frozenset[int]]] = {}  # by free classes, by state
        self._there = [i for i in range(len(operations)) if self._start[i] <= self._last]
        self._counts = Counter(self._class[i] for i in self._there)
        self._begins: dict[int, frozenset[int] | None] = {}
        # Whether the object has more possible states than the limit, from the beginning of the history.
        self._many = False

    def smallest(self, *, late: bool = True) -> list[int] | None:
        """See the function; a part may begin later than the history if `late` is set."""
        grown = self._grown(late=late)
        if grown is None:
            return None
        return sorted(self._shrunk(*grown), key=lambda i: (self._start[i], i))

    def _grown(self, *, late: bool) -> tuple[list[int], int] | None:
        """Returns the first part with a contradiction, and its `begin`."""
        began = self._start[self._op]
        before = sorted((i for i in self._there if self._end[i] < began), key=self._end.__getitem__, reverse=True)
        beside = [i for i in self._there if self._end[i] >= began and i != self._op]
        widths = [0]
        while widths[-1] < min(len(before), _WIDEST):
            widths.append(min(max(2 * widths[-1], 1), len(before)))
        for width in widths:
            kept = [self._op, *before[:width]]
            if self._many:
                break
            if self.contradicts(kept, _FIRST):
                return kept, _FIRST
        for width in widths if late else ():
            begin = min(self._start[i] for i in [self._op, *before[:width]])
            for kept in ([self._op, *before[:width]], [self._op, *before[:width], *beside]):
                if self.contradicts(kept, begin):
                    return kept, begin
        return None

    def _shrunk(self, kept: list[int], begin: int) -> list[int]:
        """Removes operations, and moves `begin` later, as long as the contradiction stays."""

        def holds(trial: list[int]) -> bool:
            nonlocal begin
            later = self._begin_of(trial, begin)
            begin = begin if later is None else later
            return later is not None

        return smaller(kept, self._op, holds, self._allowance)

    def _begin_of(self, kept: Sequence[int], begin: int) -> int | None:
        """Returns the `begin` of a part that contradicts itself; None if it does not."""
        later = begin if begin == _FIRST else max(begin, min(self._start[i] for i in kept))
        return later if self.contradicts(kept, later) else None

    def contradicts(self, kept: Sequence[int], begin: int) -> bool:
        """Returns whether a relaxed part certainly has no linearization."""
        if self._allowance.is_over():
            return False
        free = self._free(frozenset(kept), begin)
        try:
            states = self._states_at(begin)
            if states is None:
                return False
            relaxed = _Relaxed(self, states, free, self._closures.setdefault(free, {}))
            algorithm = AUTO if self._within is None else "linear"
            limits = self._allowance.most(self._attempt_s).limits(algorithm)
            [outcome] = solve([self._problem(relaxed, kept, begin)], limits)
            if self._within is not None and not self._is_within(relaxed, kept, outcome):
                return False
        except _TooMany:
            self._many = self._many or begin == _FIRST
            return False
        return outcome.verdict == "invalid"

    def _is_within(self, relaxed: _Relaxed, kept: Sequence[int], outcome: Outcome) -> bool:
        """Returns whether a relaxed part fails at `op`, and leads only to the expected states before."""
        assert self._within is not None  # noqa: S101 - the caller checked it
        failed = outcome.op
        if failed is None or kept[failed] != self._op or not outcome.has_all_configs:
            return False
        for config in outcome.configs:
            state = 0
            for index in config.path:
                state = relaxed.step(state, self._class[kept[index]])
            others = [self._class[kept[index]] for index in config.pending if kept[index] != self._op]
            if not relaxed.spread(state, others) <= self._within:
                return False
        return True

    def _free(self, kept: frozenset[int], begin: int) -> tuple[int, ...]:
        """Returns the classes of operations that are not kept and did not end before `begin`."""
        if begin == _FIRST:
            left = self._counts.copy()
            left.subtract(self._class[i] for i in kept)
            return tuple(sorted(cls for cls, count in left.items() if count))
        return tuple(sorted({self._class[i] for i in self._there if i not in kept and self._end[i] >= begin}))

    def _problem(self, relaxed: _Relaxed, kept: Sequence[int], begin: int) -> Problem:
        starts = array("q", [max(self._start[i], begin) for i in kept])
        ends = array("q", [INFINITE if self._start[i] < begin else self._end[i] for i in kept])
        classes = array("q", [self._class[i] for i in kept])
        none = array("q", bytes(8 * len(kept)))
        codes = bytes([CUSTOM]) * len(kept)
        observers = bytes(
            max(classes) + 1
        )  # no operation on sets of states is an observer: an answer excludes some states
        return Problem("custom", codes, classes, none, starts, ends, initial=[], step=relaxed.step, observers=observers)

    def _states_at(self, begin: int) -> frozenset[int] | None:
        """Returns a set that contains all possible states at a moment; None if there is none."""
        if begin not in self._begins:
            classes = sorted({self._class[i] for i in self._there if self._start[i] < begin})
            try:
                self._begins[begin] = self._by_search(begin) if self._many else self.closure([0], classes)
            except _TooMany:
                self._many = True
                self._begins[begin] = self._by_search(begin)
        return self._begins[begin]

    def _by_search(self, begin: int) -> frozenset[int] | None:
        """Returns the states of the search's configurations at a moment, if they are complete.

        Later operations are in the problem as open ones, so the kernel never merges states that they can distinguish.
        """
        limits = self._allowance.most(self._attempt_s).limits("linear")
        [outcome] = solve([self._encoded.part(self._there, begin - 1)], limits)
        if outcome.verdict != "valid" or len(outcome.configs) >= _MOST_CONFIGS:
            return None
        return frozenset(self._encoded.after(self._there[index] for index in config.path) for config in outcome.configs)

    def after(self, state: int, cls: int) -> int:
        """Returns the number of the state after an operation of a class, or -1."""
        step = self._encoded.coder.step
        return REFUSED if step is None else step(state, cls)

    def closure(self, states: Iterable[int], classes: Sequence[int]) -> frozenset[int]:
        """Returns all states that operations of these classes lead to.

        Raises:
            _TooMany: There are too many, or time is over.
        """
        reached = set(states)
        work = list(reached)
        steps = 0
        allowance = self._allowance.most(_STATES_S)
        while work:
            state = work.pop()
            steps += len(classes)
            if len(reached) > _MOST_STATES or steps > _MOST_STEPS or allowance.is_over():
                raise _TooMany
            for cls in classes:
                after = self.after(state, cls)
                if after != REFUSED and after not in reached:
                    reached.add(after)
                    work.append(after)
        return frozenset(reached)


class _Relaxed:
    """The model of a relaxed part: its states are numbers of sets of the model's states."""

    def __init__(
        self, reasons: _Reasons, states: frozenset[int], free: Sequence[int], closures: dict[int, frozenset[int]]
    ) -> None:
        self._reasons = reasons
        self._free = free
        self._closures = closures  # shared with other parts that have the same free classes
        first = self._closed(states)
        self._sets = [first]
        self._numbers = {first: 0}

    def step(self, state: int, cls: int) -> int:
        """Returns the number of the next set to the kernel, or -1."""
        after = self._closed(
            next_state for member in self._sets[state] if (next_state := self._reasons.after(member, cls)) != REFUSED
        )
        if not after:
            return REFUSED
        number = self._numbers.setdefault(after, len(self._sets))
        if number == len(self._sets):
            self._sets.append(after)
        return number

    def spread(self, state: int, classes: Sequence[int]) -> frozenset[int]:
        """Returns all states of the model in a set of states, and all that open operations may lead to from there."""
        return self._reasons.closure(self._sets[state], [*self._free, *classes])

    def _closed(self, states: Iterable[int]) -> frozenset[int]:
        closed: set[int] = set()
        for state in states:
            if state not in closed:
                closure = self._closures.get(state)
                if closure is None:
                    closure = self._closures[state] = self._reasons.closure([state], self._free)
                closed |= closure
        return frozenset(closed)


def _end(kind: OpType, end: int | None, last: int) -> int:
    """Returns the end of an operation, as of the last return that counts."""
    return INFINITE if kind is OpType.INFO or end is None or end > last else end
