"""Decides counters whose increments have different amounts, all of them positive or all of them negative.

Which increments a count includes is a subset sum, so the question is NP-complete. Here the subsets are those of the increments
that are open at one moment. A state is the set of operations in the order so far. The number of states is linear in the length
of the history, and exponential only in the concurrency and the crashed increments. It is faster than the search over states of
the counter, because counts only rise. So no step may exceed the minimum count that a remaining operation observes.

- *Reads at once.* A read of the present count comes next as soon as real time allows. If it moves to the front of a
  linearization, it delays no operation that must come before it.
- *Fetches at once.* A fetch-and-add that returned the present count comes next, since any other increment would pass the count.
- *First end first.* Of increments of one amount, the one that ends first goes first.
- *Reachable counts.* Increments that overlap with the operations that observed the next count must add up to it, with all
  increments that ended before. A step that makes this impossible is not tried (Bellman's dynamic programming for subset sums,
  if the amounts are small).
- *The rest.* The remaining amounts are tried in turn. Sets of operations that led to a dead end are remembered.

Increments of zero change nothing and are not observed. A fetch-and-add of zero is a read.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple

from checker.models.opcodes import FETCH_ADD, INCREMENT, INFINITE, READ_COUNT
from checker.near.walking import BEFORE, LAST, Budget, Done, Kind, Walked, nothing, walk

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from checker.search.encode import Events

_MOST_BITS: Final = 1 << 16  # the maximum sum of increments whose subsets are all examined
_ADDS, _FETCHES, _READS = range(3)


class _State(NamedTuple):
    """The operations in the order so far, by kind, and the count, `total`."""

    adds: Done
    fetches: Done
    reads: Done
    total: int

    @property
    def least(self) -> int:
        return min(self.adds.least, self.fetches.least, self.reads.least)

    @property
    def due(self) -> int:
        return min(self.reads.least, self.fetches.least)

    @property
    def key(self) -> tuple[object, ...]:
        return tuple(part for done in self[:3] for part in (done.begun, done.left))


class _Step(NamedTuple):
    """The next step: the kind and number of an operation, and the amount by which the count rises."""

    kind: int
    number: int
    amount: int = 0


def rises(events: Events) -> bool:
    """Returns whether all increments of a counter have the same sign."""
    amounts = [code.a for code in events.classes if code.f in {INCREMENT, FETCH_ADD}]
    return min(amounts, default=0) >= 0 or max(amounts, default=0) <= 0


class _Reach:
    """The increments that may come before an observed count.

    All increments that ended before the last operation that observed it began come before it. Of the others that began before
    the first of these operations ended, some must add up to the missing amount. The sums of their subsets are the bits of one
    number.
    """

    def __init__(self, until: int, needed: int, free: Sequence[int] | None) -> None:
        """Prepares with the start of the last observer, the missing amount, and the amounts of the others; None for any."""
        self._until = until
        self._needed = needed
        self._free = free
        self._any = free is None or self._comes(free, needed)

    @classmethod
    def all(cls) -> _Reach:
        """Returns an object that allows all increments."""
        return cls(0, 0, None)

    def allows(self, end: int, amount: int) -> bool:
        """Returns whether an increment with this end may be among them."""
        if self._free is None or not self._any or end < self._until:
            return self._any
        rest = list(self._free)
        rest.remove(amount)
        return self._comes(rest, self._needed - amount)

    @staticmethod
    def _comes(amounts: Sequence[int], needed: int) -> bool:
        """Returns whether some amounts add up to what is needed."""
        if needed < 0:
            return False
        sums = 1
        for amount in amounts:
            sums |= sums << amount
        return bool(sums >> needed & 1)


class Counts:
    """The walk through one history of a counter; see `rises`."""

    def __init__(self, events: Events, kept: Iterable[int], until: tuple[int, int] = LAST) -> None:
        """Prepares the walk; see `checker.near.pairing.Queue`."""
        classes, members, starts, ends = events.classes, events.members, events.starts, events.ends
        sign = -1 if any(code.a < 0 for code in classes if code.f != READ_COUNT) else 1
        items: tuple[list[tuple[int, int, int, int]], ...] = ([], [], [])
        self._amounts: dict[int, int] = {}
        self._idle: list[tuple[int, int]] = []  # the start and the position of increments of zero
        for i in kept:
            start, end = starts[i], ends[i]
            if start > until[0]:
                continue
            end = INFINITE if (end, i) > until else end
            code = classes[members[i]]
            if code.f == READ_COUNT or not code.a:
                if end != INFINITE and code.f == INCREMENT:
                    self._idle.append((start, i))
                elif end != INFINITE:
                    items[_READS].append((start, end, sign * (code.a if code.f == READ_COUNT else code.b), i))
            elif code.f == FETCH_ADD:
                items[_FETCHES].append((start, end, sign * code.b, i))
                self._amounts[i] = sign * code.a
            else:
                items[_ADDS].append((start, end, sign * code.a, i))
        self._kinds = tuple(Kind(item) for item in items)
        self._initial = sign * events.initial[0]
        reads, fetches = self._kinds[_READS], self._kinds[_FETCHES]
        self._reads_of = Counter(reads.values)
        self._fetches_of = Counter(
            value for value, end in zip(fetches.values, fetches.ends, strict=True) if end != INFINITE
        )
        self._latest = dict(zip(reads.values, reads.starts, strict=True))  # in the order of the starts
        self._crashed_fetches = len(fetches) > self._fetches_of.total()
        # By count: the start of the last operation that observed it, and the end of the first.
        self._spans: dict[int, tuple[int, int]] = {}
        for kind in (reads, fetches):
            for value, start, end in zip(kind.values, kind.starts, kind.ends, strict=True):
                if end != INFINITE:
                    latest, first = self._spans.get(value, (start, end))
                    self._spans[value] = (max(latest, start), min(first, end))
        self._seen_counts = sorted({*self._reads_of, *self._fetches_of})

    def search(self, budget: Budget, *, want_order: bool = False) -> Walked:
        """Looks for a linearization; see `checker.near.pairing.Queue.search`."""
        impossible = self._seen_counts and self._seen_counts[0] < self._initial
        if impossible or max(self._fetches_of.values(), default=0) > 1:
            return Walked(valid=False)
        adds, fetches, reads = map(nothing, self._kinds)
        first = self._opened(_State(adds, fetches, reads, self._initial))
        return walk(first, self._next, self._after, budget, self._order if want_order else None)

    def _opened(self, state: _State) -> _State:
        """Returns a state whose `left` has all operations that may come next by real time."""
        adds, fetches, reads = self._kinds
        least = state.least
        return _State(
            state.adds.opened(adds, least),
            state.fetches.opened(fetches, least),
            state.reads.opened(reads, least),
            state.total,
        )

    def _after(self, state: _State, step: _Step) -> _State:
        done = list(state[:3])
        done[step.kind] = done[step.kind].without(self._kinds[step.kind], step.number)
        return self._opened(_State(done[_ADDS], done[_FETCHES], done[_READS], state.total + step.amount))

    def _next(self, state: _State) -> list[_Step]:
        """Returns the possible next steps, the most promising last; a single step has no alternative."""
        count = state.total
        adds, fetches, reads = self._kinds
        here = [number for number in state.reads.left if reads.values[number] == count]
        if here:
            return [_Step(_READS, here[0])]
        if (
            self._latest.get(count, BEFORE) > state.least
        ):  # a read of this count may not begin yet, and every other step passes the count
            return []
        due = [number for number in state.fetches.left if fetches.values[number] == count]
        sure = [number for number in due if fetches.ends[number] != INFINITE]
        if self._fetches_of[count]:
            return [self._fetch(number) for number in sure]
        above = bisect_right(self._seen_counts, count)
        most = self._seen_counts[above] - count if above < len(self._seen_counts) else INFINITE
        reach = self._reach(state, self._seen_counts[above]) if above < len(self._seen_counts) else _Reach.all()
        first: dict[int, int] = {}
        for number in state.adds.left:
            amount = adds.values[number]
            known = first.get(amount)
            if (
                amount <= most
                and reach.allows(adds.ends[number], amount)
                and (known is None or adds.ends[number] < adds.ends[known])
            ):
                first[amount] = number
        options = [(adds.ends[number], _Step(_ADDS, number, amount)) for amount, number in first.items()]
        options += [(INFINITE, step) for step in map(self._fetch, due) if step.amount <= most]
        options.sort(reverse=True)
        return [step for _, step in options]

    def _reach(self, state: _State, target: int) -> _Reach:
        """Returns the increments that may come before the next observed count."""
        adds = self._kinds[_ADDS]
        until, end = self._spans[target]
        last = bisect_right(adds.starts, end)
        needed = target - state.total
        free: list[int] = []
        for number in (*state.adds.left, *range(state.adds.begun, last)):
            if adds.ends[number] < until:
                needed -= adds.values[number]
            else:
                free.append(adds.values[number])
        return _Reach(until, needed, free if not self._crashed_fetches and sum(free) <= _MOST_BITS else None)

    def _fetch(self, number: int) -> _Step:
        return _Step(_FETCHES, number, self._amounts[self._kinds[_FETCHES].positions[number]])

    def _order(self, path: Sequence[_Step]) -> list[int]:
        """Returns the positions in the order of a linearization, by the moments at which operations take effect."""
        moments: list[tuple[int, int]] = [(start, i) for start, i in self._idle]
        moment = BEFORE
        for step in path:
            kind = self._kinds[step.kind]
            moment = max(moment, kind.starts[step.number])
            moments.append((moment, kind.positions[step.number]))
        adds = self._kinds[_ADDS]
        done = {step.number for step in path if step.kind == _ADDS}
        for number, start in enumerate(adds.starts):
            if number not in done and adds.ends[number] != INFINITE:
                moment = max(moment, start)
                moments.append((moment, adds.positions[number]))
        return [i for _, i in sorted(moments, key=lambda entry: entry[0])]
