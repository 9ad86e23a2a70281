"""Decides FIFO queues by a walk through pairs of an enqueue and a dequeue.

Elements may repeat, the queue may begin with elements, and dequeues may find it empty while others crash.

With repeated elements the question is NP-complete (Gibbons, Bruno and Phillips, *Black-box correctness tests for basic parallel
data structures*, Theory of Computing Systems 35, 2002). A search over the states of the queue is exponential in the length of
the history, because it has to guess the order of enqueues long before a dequeue shows it. This search visits pairs instead. In
a linearization, the i-th dequeue takes the element of the i-th enqueue. So a linearization is a sequence of pairs of an enqueue
and a dequeue of one value, with empty answers between pairs, and then the enqueues whose element nobody took. A state is the
set of operations in the sequence so far. By real time, this set is a position plus some of the operations that are open there.
So the number of states is linear in the length, and exponential only in the concurrency. For a fixed number of processes the
time is polynomial.

*When a sequence is a linearization.* Let `p` be the maximum start of the enqueues so far, and `q` that of all operations so
far. The i-th enqueue takes effect at `p`, its dequeue at `q`. This is possible exactly if no remaining enqueue ends before `p`,
and no other remaining operation ends before `q`. An empty answer takes effect at `q`, and sets `p` to `q`. So

- an enqueue may come next if no remaining operation ends before it starts;
- a dequeue may come next if no remaining dequeue or empty answer ends before it starts;
- an empty answer may come next if no remaining operation ends before it starts, and no remaining enqueue ends before `q`.

A crashed dequeue has no end, and may take any value or none. A crashed enqueue has no end either.

*Which choices have no alternative.* Let S be a continuation that leads to a linearization.

1. *Empty answers first.* An empty answer that may come next comes next. If it moves to the front of S, the later `p` and `q`
   change at most to values that the rule for it has checked.
2. *First end first.* Of enqueues of one value that may come next, the one that ends first comes first: if two are exchanged in
   S, each stays within its interval. The same holds for dequeues, if the exchange does not raise `q` before an empty answer. If
   it may, the dequeue that starts earlier is tried too.
3. *Forced pairs.* Let the enqueue `e` and the dequeue `d` of a value be allowed next, and let each end first among all
   remaining operations of its kind and among those of its value. Then this pair comes next. By (2), S may be taken to begin
   that value with `e` and `d`. If they move to the front, they raise `p` and `q` at most to the ends of remaining operations.
   If S has a crashed dequeue in the place of `d`, that one can take the element of `d`, since it has no end. As in (2), this
   requires that `q` does not rise before an empty answer.

With unique values (3) always applies, so there is nothing to try twice. Otherwise the values that may come next are tried in
turn. Sets of operations that led to a dead end are remembered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from checker.models.opcodes import DEQUEUE, DEQUEUE_ANY, DEQUEUE_EMPTY, ENQUEUE, INFINITE
from checker.near.walking import BEFORE, LAST, Budget, Done, Kind, Walked, nothing, walk

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from checker.search.encode import Events

_ANY: Final = -(1 << 62)  # not the number of any value


class _State(NamedTuple):
    """The operations in the sequence so far, and their maximum start."""

    puts: Done
    takes: Done
    empties: Done
    level: int

    @property
    def due(self) -> int:
        return min(self.takes.least, self.empties.least)

    @property
    def key(self) -> tuple[object, ...]:
        return (
            self.puts.begun, self.puts.left, self.takes.begun, self.takes.left, self.empties.begun, self.empties.left,
        )  # fmt: skip


class _Step(NamedTuple):
    """The next step: the numbers of an enqueue and a dequeue, or of an empty answer; -1 for none."""

    put: int
    take: int
    empty: int = -1


class Queue:
    """The search in one history of a queue."""

    def __init__(self, events: Events, kept: Iterable[int], until: tuple[int, int] = LAST) -> None:
        """Prepares the search.

        Args:
            events: The history.
            kept: The positions of the operations to examine.
            until: The end and the position of the last return; operations that returned later are open. Of two returns at one
                moment, the one with the higher position is later.
        """
        puts = [(BEFORE + 1 + index, BEFORE + 1 + index, value, -1) for index, value in enumerate(events.initial)]
        takes: list[tuple[int, int, int, int]] = []
        empties: list[tuple[int, int, int, int]] = []
        classes, members, starts, ends = events.classes, events.members, events.starts, events.ends
        for i in kept:
            start, end = starts[i], ends[i]
            if start > until[0]:
                continue
            end = INFINITE if (end, i) > until else end
            code = classes[members[i]]
            if code.f == ENQUEUE:
                puts.append((start, end, code.a, i))
            elif code.f == DEQUEUE:
                takes.append((start, end, code.a, i))
            elif code.f == DEQUEUE_ANY:
                takes.append((start, INFINITE, _ANY, i))
            elif code.f == DEQUEUE_EMPTY and end != INFINITE:
                empties.append((start, end, 0, i))
        self._puts, self._takes, self._empties = Kind(puts), Kind(takes), Kind(empties)

    def search(self, budget: Budget, *, want_order: bool = False) -> Walked:
        """Looks for a linearization.

        Args:
            budget: The budget of the search.
            want_order: Whether to return the order.
        """
        puts, takes, empties = map(nothing, (self._puts, self._takes, self._empties))
        first = self._opened(_State(puts, takes, empties, BEFORE))
        return walk(first, self._next, self._after, budget, self._order if want_order else None)

    def _opened(self, state: _State) -> _State:
        """Returns a state whose `left` has all operations that may come next by real time."""
        until = state.due
        before = min(until, state.puts.least)
        return _State(
            puts=state.puts.opened(self._puts, before),
            takes=state.takes.opened(self._takes, until),
            empties=state.empties.opened(self._empties, before),
            level=state.level,
        )

    def _after(self, state: _State, step: _Step) -> _State:
        puts, takes, empties, level = state
        if step.empty >= 0:
            level = max(level, self._empties.starts[step.empty])
            empties = empties.without(self._empties, step.empty)
        else:
            level = max(level, self._puts.starts[step.put], self._takes.starts[step.take])
            puts = puts.without(self._puts, step.put)
            takes = takes.without(self._takes, step.take)
        return self._opened(_State(puts, takes, empties, level))

    def _next(self, state: _State) -> list[_Step]:
        """Returns the possible next steps, the most promising last; a single step has no alternative."""
        if state.empties.left and state.level <= state.puts.least:
            return [_Step(-1, -1, state.empties.left[0])]
        puts, takes = self._puts, self._takes
        until = state.due
        before = min(until, state.puts.least)
        first_put: dict[int, int] = {}
        for number in state.puts.left:
            value = puts.values[number]
            known = first_put.get(value)
            if known is None or puts.ends[number] < puts.ends[known]:
                first_put[value] = number
        of_value: dict[int, list[int]] = {}
        for number in state.takes.left:
            of_value.setdefault(takes.values[number], []).append(number)
        crashed = of_value.get(_ANY, [None])[0]
        options: list[tuple[int, int, _Step]] = []
        for value, put in first_put.items():
            calm = False
            for index, take in enumerate(self._fronts(of_value.get(value, ()))):
                step = _Step(put, take)
                end = takes.ends[take]
                calm = self._calm(state, step)
                ends_first = index == 0 and puts.inner[put] <= before and takes.inner[take] <= until
                if calm and end != INFINITE and ends_first:
                    return [step]
                options.append((end == INFINITE, min(puts.ends[put], end), step))
                if calm:
                    break
            if crashed is not None and not calm:
                options.append((2, puts.ends[put], _Step(put, crashed)))
        options.sort(reverse=True)
        return [step for _, _, step in options]

    def _fronts(self, numbers: Sequence[int]) -> list[int]:
        """Returns dequeues of one value, sorted by end, without those that start after one that ends earlier."""
        starts, ends = self._takes.starts, self._takes.ends
        fronts: list[int] = []
        for number in sorted(numbers, key=ends.__getitem__):
            if not fronts or starts[number] < starts[fronts[-1]]:
                fronts.append(number)
        return fronts

    def _calm(self, state: _State, step: _Step) -> bool:
        """Returns whether a dequeue cannot come too early for a remaining empty answer."""
        empties = state.empties
        start = self._takes.starts[step.take]
        if start <= state.level or not (empties.left or empties.begun < len(self._empties)):
            return True
        earliest = self._empties.starts[empties.left[0] if empties.left else empties.begun]
        if self._takes.ends[step.take] < earliest:
            return True
        return start <= state.puts.without(self._puts, step.put).least

    def _order(self, path: Sequence[_Step]) -> list[int]:
        """Returns the positions in the order of a linearization, by the moments at which operations take effect."""
        puts, takes, empties = self._puts, self._takes, self._empties
        moments: list[tuple[int, int, int, int]] = []
        put_at = level = BEFORE
        done: set[int] = set()
        for index, step in enumerate(path):
            if step.empty >= 0:
                put_at = level = max(level, empties.starts[step.empty])
                moments.append((level, index, 0, empties.positions[step.empty]))
                continue
            done.add(step.put)
            put_at = max(put_at, puts.starts[step.put])
            level = max(level, put_at, takes.starts[step.take])
            moments.append((put_at, index, 0, puts.positions[step.put]))
            moments.append((level, index, 1, takes.positions[step.take]))
        for number, start in enumerate(puts.starts):
            if number not in done and puts.ends[number] != INFINITE:
                put_at = max(put_at, start)
                moments.append((put_at, len(path) + number, 0, puts.positions[number]))
        return [position for *_, position in sorted(moments) if position >= 0]
