"""Searches for a linearization that follows a given order of some operations: a chain of steps. Other operations are free.

The operations of a step may come in any order, but all of them come before those of the next step. A free operation may come
anywhere. An operation comes next only if no remaining operation that returned ended before it began. So every order that is
found agrees with real time, and `Model.step` accepts every answer in it: it is a linearization.

The search goes depth first through configurations: the position in the chain, the set of free operations in the order so far,
and the state. It enters each configuration once. At each one, in this order:

- *Observers at once.* An operation that only observes, and fits the state, comes next. This excludes no order: an observation
  may come as early as real time and its step allow, because it changes nothing for the others.
- *Then alternatives.* The operations of the current step are tried, then free ones that returned. Those that did not return
  come last, since they need not happen at all: first those after which an operation that returned becomes possible. Of equal
  ones, the one that began first is tried, because they have no end.

The number of operations in a row that did not return is bounded. The bound grows from round to round, and the last round has
none (iterative deepening; Korf, *Depth-first iterative-deepening*, Artificial Intelligence 27(1), 1985). Few are needed at a
time, and the budget that one round wastes is missing later.

This is the just-in-time search of Lowe (*Testing for linearizability*, Concurrency and Computation 29(4), 2017) with the chain
as an additional order. Operations that returned are sorted by their ends. Those that may come next all run at the moment of the
minimum end. So there are at most as many as processes, and the set of operations beyond that end is small.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from checker._kernel import REFUSED, Transitions
from checker.models.opcodes import INFINITE
from harness.op import OpType

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Sequence

    from checker.models.base import Model
    from checker.search.allowance import Allowance
    from checker.search.encode import Encoded

CONFIGURATIONS: Final = 200_000
CONFIGURATIONS_PER_OPERATION: Final = 20
IN_A_ROW: Final = (1, 2, 4, 2**63)  # the bound of each round

Path: TypeAlias = "tuple[int, Path] | None"


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """The result of a search.

    Attributes:
        order: The operations that take effect, in their order, by position; None if no order was found.
        exhausted: Whether everything was tried.
        refused: Without an order: the position of the operation that ended the furthest attempt.
        message: Why the model refuses it there.
        done: The number of operations before it.
    """

    order: Sequence[int] | None = None
    exhausted: bool = True
    refused: int | None = None
    message: str = ""
    done: int = 0


class _At(NamedTuple):
    """A configuration.

    Attributes:
        chain: The first place of the chain that is not in the order.
        beyond: Which later places are, as bits; the lowest bit is the first place.
        other: The first of the free operations that returned, by end, that is not in the order.
        others: Which later ones are, likewise.
        crashed: Which operations that did not return are in the order, as bits.
        state: The number of the state.
        row: The number of those since the last operation that returned.
    """

    chain: int
    beyond: int
    other: int
    others: int
    crashed: int
    state: int
    row: int


class _Line:
    """Operations in the order of their ends, step by step.

    Attributes:
        operations: By place, the position of the operation.
        until: By place, the first place of the next step.
        min_end: By place, the minimum end from there on, in all steps; one more entry for the end.
        candidates: By place, the places of its step that may come next while this is the first one not in the order.
    """

    def __init__(self, steps: Sequence[Sequence[int]], starts: array[int], ends: array[int]) -> None:
        self.operations: list[int] = []
        self.until: list[int] = []
        self.candidates: list[Sequence[int]] = []
        for step in steps:
            first = len(self.operations)
            by_end = sorted(step, key=ends.__getitem__)
            self.operations += by_end
            self.until += [first + len(by_end)] * len(by_end)
            self.candidates += _running(by_end, first, starts, ends)
        self.min_end = array("q", [INFINITE]) * (len(self.operations) + 1)
        for index in range(len(self.operations) - 1, -1, -1):
            self.min_end[index] = min(ends[self.operations[index]], self.min_end[index + 1])


def _running(by_end: Sequence[int], first: int, starts: array[int], ends: array[int]) -> Iterator[Sequence[int]]:
    """Yields for each operation the places of those that end no earlier, and that began before it ends."""
    if len(by_end) == 1:
        yield (first,)
        return
    by_start = sorted(range(len(by_end)), key=lambda index: starts[by_end[index]])
    begun = 0
    running: dict[int, None] = {}
    for index, operation in enumerate(by_end):
        while begun < len(by_start) and starts[by_end[by_start[begun]]] <= ends[operation]:
            if by_start[begun] >= index:
                running[first + by_start[begun]] = None
            begun += 1
        yield tuple(running)
        running.pop(first + index, None)


class _Search:
    """A search and its state."""

    def __init__(self, model: Model, encoded: Encoded, chain: Sequence[Sequence[int]], allowance: Allowance) -> None:
        self._allowance = allowance
        self._starts = array("q", [op.invoke_index for op in encoded.operations])
        self._ends = array("q", [end_of(encoded, i) for i in range(len(encoded.operations))])
        in_chain = {position for step in chain for position in step}
        others = [i for i in range(len(encoded.operations)) if i not in in_chain]
        self._chain = _Line(chain, self._starts, self._ends)
        self._others = _Line([[i for i in others if self._ends[i] != INFINITE]], self._starts, self._ends)
        self._kind, self._table = _kinds(model, encoded)
        self._step = self._table.step
        self._observes = [bool(model.observes(call)) for call in self._table.calls]
        self._crashed = self._by_kind([i for i in others if self._ends[i] == INFINITE])
        self._most = CONFIGURATIONS + CONFIGURATIONS_PER_OPERATION * len(encoded.operations)
        self._left = 0
        self._of_round = allowance
        self._in_a_row = 0
        self._cut = False
        self._furthest: tuple[int, int] = (-1, 0)
        self._stuck: _At | None = None

    def _by_kind(self, positions: Sequence[int]) -> list[list[tuple[int, int]]]:
        """Returns operations that did not return, in groups of equal ones, sorted by start, each with its bit."""
        kinds: dict[int, list[tuple[int, int]]] = {}
        for bit, i in enumerate(sorted(positions, key=self._starts.__getitem__)):
            if not self._observes[self._kind[i]]:
                kinds.setdefault(self._kind[i], []).append((i, 1 << bit))
        return list(kinds.values())

    def run(self) -> Placed:
        """Searches in rounds that share the budget; each but the last takes half of the remaining time."""
        placed = Placed()
        for done, self._in_a_row in enumerate(IN_A_ROW):
            self._left = self._most // len(IN_A_ROW)
            self._of_round = self._allowance.part(0.5 if done + 1 < len(IN_A_ROW) else 1.0)
            self._cut = False
            placed = self._round()
            if placed.order is not None or (placed.exhausted and not self._cut):
                break
        return placed

    def _round(self) -> Placed:
        path: Path = None
        at, path = self._absorbed(_At(0, 0, 0, 0, 0, 0, 0), path)
        seen = {at}
        stack = [(at, path, self._next(at))]
        while stack:
            at, path, attempts = stack[-1]
            if self._finished(at):
                return Placed(order=_unlinked(path))
            if self._left < 0 or self._of_round.is_over():
                return self._failed(exhausted=False)
            for operation, after in attempts:
                entered, its_path = self._absorbed(after, (operation, path))
                if entered not in seen:
                    self._left -= 1
                    seen.add(entered)
                    stack.append((entered, its_path, self._next(entered)))
                    break
            else:
                self._note(at)
                stack.pop()
        return self._failed(exhausted=True)

    def _finished(self, at: _At) -> bool:
        return at.chain == len(self._chain.operations) and at.other == len(self._others.operations)

    def _limit(self, at: _At) -> int:
        """Returns the minimum end of the remaining operations; an operation that begins later cannot come next."""
        limit = self._others.min_end[at.other]
        if at.chain < len(self._chain.operations):
            limit = min(
                limit,
                self._ends[self._chain.operations[at.chain]],
                self._chain.min_end[self._chain.until[at.chain]],
            )
        return limit

    def _absorbed(self, at: _At, path: Path) -> tuple[_At, Path]:
        """Adds the operations that only observe and fit the state."""
        while True:
            for operation, position, chained in self._returned(at, self._limit(at)):
                kind = self._kind[operation]
                if self._observes[kind] and self._step(at.state, kind) == at.state:
                    at, path = _done(at, position, at.state, chained=chained), (operation, path)
                    break
            else:
                return at, path

    def _returned(self, at: _At, limit: int) -> Iterator[tuple[int, int, bool]]:
        """Yields the possible next operations that returned: operation, place, and whether it is in the chain."""
        starts = self._starts
        for line, first, done, chained in (
            (self._chain, at.chain, at.beyond, True),
            (self._others, at.other, at.others, False),
        ):
            if first < len(line.operations):
                for position in line.candidates[first]:
                    operation = line.operations[position]
                    if not done >> (position - first) & 1 and starts[operation] <= limit:
                        yield operation, position, chained

    def _next(self, at: _At) -> Iterator[tuple[int, _At]]:
        """Yields the possible next operations, with the configurations after them."""
        limit = self._limit(at)
        for operation, position, chained in self._returned(at, limit):
            state = self._step(at.state, self._kind[operation])
            if state != REFUSED:
                yield operation, _done(at, position, state, chained=chained)
        possible = list(self._crashed_next(at, limit))
        if possible and at.row >= self._in_a_row:
            self._cut = True
            return
        rest = []
        for step in possible:
            if self._helps(step[1]):
                yield step
            else:
                rest.append(step)
        yield from rest

    def _crashed_next(self, at: _At, limit: int) -> Iterator[tuple[int, _At]]:
        """Yields operations that did not return and would change the state, the first of equal ones, likewise."""
        for alike in self._crashed:
            left = next((step for step in alike if not at.crashed & step[1]), None)
            if left is None or self._starts[left[0]] > limit:
                continue
            state = self._step(at.state, self._kind[left[0]])
            if state not in {REFUSED, at.state}:
                yield left[0], at._replace(crashed=at.crashed | left[1], state=state, row=at.row + 1)

    def _helps(self, at: _At) -> bool:
        """Returns whether an operation that returned is possible."""
        return any(
            self._step(at.state, self._kind[operation]) != REFUSED
            for operation, *_ in self._returned(at, self._limit(at))
        )

    def _note(self, at: _At) -> None:
        """Stores a dead end if it is the furthest one."""
        far = (at.chain + at.beyond.bit_count(), at.other + at.others.bit_count())
        if far > self._furthest:
            self._furthest, self._stuck = far, at

    def _failed(self, *, exhausted: bool) -> Placed:
        at = self._stuck
        if at is None:
            return Placed(exhausted=exhausted)
        limit = self._limit(at)
        for operation, *_ in self._returned(at, limit):
            message = self._table.refusal(at.state, self._kind[operation])
            if message is not None:
                done = sum(self._furthest) + at.crashed.bit_count()
                return Placed(exhausted=exhausted, refused=operation, message=message, done=done)
        return Placed(exhausted=exhausted)


def place(model: Model, encoded: Encoded, chain: Sequence[Sequence[int]], allowance: Allowance) -> Placed:
    """Looks for a linearization that follows a chain of steps.

    Args:
        model: The model of the object.
        encoded: The history.
        chain: The steps, as positions in the history. No operation of a step ended before one of an earlier step began.
        allowance: The budget.

    Raises:
        ModelError: The model has states that are not hashable.
    """
    return _Search(model, encoded, chain, allowance).run()


def end_of(encoded: Encoded, position: int) -> int:
    """Returns the index of an operation's return; `INFINITE` if it did not return."""
    operation = encoded.operations[position]
    end = operation.complete_index
    return INFINITE if operation.type is OpType.INFO or end is None else end


def _kinds(model: Model, encoded: Encoded) -> tuple[array[int], Transitions]:
    """Returns a number for each operation, the same for equal ones, and the transition table with these numbers."""
    if encoded.coder.table is not None:
        return array("q", [code.a for code in encoded.codes]), encoded.coder.table
    # The codes of built-in models also distinguish failed and open operations.
    numbers: dict[Hashable, int] = {}
    table = Transitions(model)
    kinds = array("q")
    for operation, code in zip(encoded.operations, encoded.codes, strict=True):
        if code not in numbers:
            numbers[code] = table.add(model.call(operation))
        kinds.append(numbers[code])
    return kinds, table


def _done(at: _At, position: int, state: int, *, chained: bool) -> _At:
    """Returns the configuration after an operation that returned."""
    if chained:
        return _At(*_without(at.chain, at.beyond, position), at.other, at.others, at.crashed, state, 0)
    return _At(at.chain, at.beyond, *_without(at.other, at.others, position), at.crashed, state, 0)


def _without(first: int, done: int, position: int) -> tuple[int, int]:
    """Returns the first place that is not in the order, and the set of later ones that are, after a place is added."""
    done |= 1 << (position - first)
    # The lowest bits that are set are consecutive places, which the first place moves past.
    row = (~done & (done + 1)).bit_length() - 1
    return first + row, done >> row


def _unlinked(path: Path) -> list[int]:
    order: list[int] = []
    while path is not None:
        operation, path = path
        order.append(operation)
    order.reverse()
    return order
