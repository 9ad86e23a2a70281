"""Finds the simplest contradictions in the operations of one register, in one pass over sorted operations.

The patterns, where D is an operation that observed the value v:

- *phantom*: no operation that may have happened wrote v;
- *future*: every operation that wrote v began after D ended;
- *stale*: all writes of v were complete before X began, X ended before D began, and X wrote or observed another value. X is a
  write, a compare-and-set, or a read. A write of v is complete when it ends. If only one operation wrote v, it is also complete
  when the first operation that observed v ends.
- *lost-update*: two compare-and-sets took effect on v, and v was written only once.

Each pattern is a proof by itself, whatever else happened, so it is a reason for the verdict. For the reader, the pattern gets a
context: the operations that wrote the values that its operations observed.

The search for X uses operations sorted by their start. For each place, it keeps the minimum end of all later ones, and the
minimum end among those with another value. So each D needs only a few lookups of logarithmic cost.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from heapq import nsmallest
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from checker.models.opcodes import CAS, CAS_FAIL, INFINITE, READ, WRITE
from harness.op import OpType

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from checker.models import Code
    from checker.search.encode import Encoded
    from harness.op import Operation

PHANTOM: Final = "phantom"
FUTURE: Final = "future"
STALE: Final = "stale"
LOST_UPDATE: Final = "lost-update"

_REGISTER: Final = frozenset({READ, WRITE, CAS, CAS_FAIL})
_CONSIDERED: Final = 64
_LARGEST: Final = 64
_NEVER: Final = (INFINITE, -1, -1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pattern:
    """A contradiction of a few operations on a register.

    Attributes:
        kind: `phantom`, `future`, `stale` or `lost-update`.
        saw: The operation that observed the impossible value.
        source: The operation that wrote that value; None if none did, or for the initial value.
        known: stale: the operation whose end shows that the value was written: `source`, or the first to observe it. None for
            the initial value.
        against: The contradiction: the overwrite, the read of another value, the other compare-and-set.
        operations: All of these and their context, in the order of their starts.
    """

    kind: str
    saw: Operation
    source: Operation | None = None
    known: Operation | None = None
    against: Operation | None = None
    operations: tuple[Operation, ...] = ()


def patterns(encoded: Encoded) -> list[Pattern]:
    """Returns the simplest patterns of a register: those with the fewest operations first, then the earliest.

    Args:
        encoded: The operations. If they are not of one register, there are no patterns.
    """
    if not encoded.codes or any(code.f not in _REGISTER for code in encoded.codes):
        return []
    return _Register(encoded).patterns()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """A pattern by positions; `base` is the number of its operations without the context."""

    kind: str
    base: int
    end: int
    saw: int
    source: int | None = None
    known: int | None = None
    against: int | None = None

    @property
    def rank(self) -> tuple[int, int]:
        return self.base, self.end

    @property
    def core(self) -> set[int]:
        return {i for i in (self.saw, self.source, self.known, self.against) if i is not None}


class _Later:
    """For any moment, the first to end among the operations that start later, also among those with another value."""

    def __init__(self, rows: Iterable[tuple[int, int, int, int]]) -> None:
        """Prepares for operations, given by (start, end, value, position)."""
        ordered = sorted(rows)
        self._starts = [start for start, _, _, _ in ordered]
        best, other = _NEVER, _NEVER
        self._best: list[tuple[tuple[int, int, int], tuple[int, int, int]]] = []
        for _, end, value, position in reversed(ordered):
            row = (end, value, position)
            if row < best:
                other = best if best[1] != value else other
                best = row
            elif value != best[1] and row < other:
                other = row
            self._best.append((best, other))
        self._best.reverse()

    def first(self, after: int, before: int, but: int) -> int | None:
        """Returns the position of an operation between two moments whose value is not `but`; None if there is none."""
        index = bisect_right(self._starts, after)
        if index == len(self._starts):
            return None
        best, other = self._best[index]
        end, _, position = other if best[1] == but else best
        return position if end < before else None


class _Register:
    """The operations of one register, sorted for the lookups."""

    def __init__(self, encoded: Encoded) -> None:
        self._operations = encoded.operations
        self._codes = encoded.codes
        [self._initial] = encoded.initial
        self._s = [op.invoke_index for op in encoded.operations]
        self._e = [
            INFINITE if op.type is OpType.INFO or op.complete_index is None else op.complete_index
            for op in encoded.operations
        ]
        self._makers: dict[int, list[int]] = {}
        self._seers: dict[int, list[int]] = {}
        for i in sorted(range(len(self._codes)), key=self._s.__getitem__):
            code = self._codes[i]
            made, seen = _made(code), _seen(code)
            if made is not None:
                self._makers.setdefault(made, []).append(i)
            if seen is not None and self._e[i] != INFINITE:
                self._seers.setdefault(seen, []).append(i)
        self._writes = self._later(WRITE)
        self._reads = self._later(READ)
        self._swaps = self._later(CAS)
        self._swaps_of = {
            value: _Later(self._row(i) for i in seers if self._codes[i].f == CAS)
            for value, seers in self._seers.items()
        }

    def _row(self, i: int) -> tuple[int, int, int, int]:
        code = self._codes[i]
        return self._s[i], self._e[i], code.b if code.f == CAS else code.a, i

    def _later(self, f: int) -> _Later:
        return _Later(self._row(i) for i, code in enumerate(self._codes) if code.f == f and self._e[i] != INFINITE)

    def patterns(self) -> list[Pattern]:
        """See `patterns`."""
        few = nsmallest(_CONSIDERED, self._found(), key=lambda candidate: candidate.rank)
        whole = [(candidate, kept) for candidate in few if (kept := self._context(candidate)) is not None]
        whole.sort(key=lambda pair: (len(pair[1]), pair[0].end))
        return [self._pattern(candidate, kept) for candidate, kept in whole]

    def _found(self) -> Iterator[_Found]:
        for value, seers in self._seers.items():
            makers = self._makers.get(value, [])
            yield from self._lost_update(value, makers, seers)
            done = _Done(self, value, makers, seers)
            for saw in seers:
                if self._codes[saw].f == CAS and self._codes[saw].b == value:
                    continue
                yield from self._of(saw, value, makers, done)

    def _of(self, saw: int, value: int, makers: list[int], done: _Done) -> Iterator[_Found]:
        start, end = self._s[saw], self._e[saw]
        if value != self._initial and (not makers or self._s[makers[0]] > end):
            if not makers:
                yield _Found(kind=PHANTOM, base=1, end=end, saw=saw)
            else:
                yield _Found(kind=FUTURE, base=2, end=self._s[makers[0]], saw=saw, against=makers[0])
            return
        for at, source, known in done.before(end):
            base = 1 + len({source, known} - {None})
            candidates: list[tuple[int, int | None]] = [
                (1, self._writes.first(at, start, value)),
                (1, self._swaps_of[value].first(at, start, value)),
                (2, self._reads.first(at, start, value)),
                (2, self._swaps.first(at, start, value)),
            ]
            for more, against in candidates:
                if against is not None:
                    yield _Found(
                        kind=STALE, base=base + more, end=end, saw=saw, source=source, known=known, against=against
                    )

    def _lost_update(self, value: int, makers: list[int], seers: list[int]) -> Iterator[_Found]:
        """Yields the two compare-and-sets of a value that was written once."""
        if len(makers) != (value != self._initial):
            return
        swaps = [i for i in seers if self._codes[i].f == CAS and self._codes[i].b != value]
        for first, second in pairwise(swaps):
            source = makers[0] if makers else None
            end = max(self._e[first], self._e[second])
            early, late = sorted((first, second), key=self._e.__getitem__)
            base = 2 + (source is not None)
            yield _Found(kind=LOST_UPDATE, base=base, end=end, saw=late, source=source, against=early)

    def _context(self, candidate: _Found) -> list[int] | None:
        """Returns a pattern with the operations that wrote its observed values; None if these are many, or missing."""
        kept = candidate.core
        made = {_made(self._codes[i]) for i in kept} | {self._initial}
        # The source of a later write does not matter, and the source of the observed value is `source`.
        work = [] if candidate.kind == FUTURE else [i for i in kept if i != candidate.saw]
        while work:
            i = work.pop()
            value = _seen(self._codes[i])
            if value is None or value in made:
                continue
            maker = self._maker(value, i)
            if maker is None or len(kept) >= _LARGEST:
                return None
            kept.add(maker)
            made.add(value)
            work.append(maker)
        return sorted(kept, key=self._s.__getitem__)

    def _maker(self, value: int, seer: int) -> int | None:
        """Returns the most likely source of a value: the last to end before its reader began, else the first to begin."""
        able = [i for i in self._makers.get(value, []) if self._s[i] < self._e[seer] and i != seer]
        ended = [i for i in able if self._e[i] < self._s[seer]]
        if ended:
            return max(ended, key=self._e.__getitem__)
        return min(able, key=self._s.__getitem__, default=None)

    def _pattern(self, candidate: _Found, kept: Sequence[int]) -> Pattern:
        def operation(i: int | None) -> Operation | None:
            return None if i is None else self._operations[i]

        return Pattern(
            kind=candidate.kind,
            saw=self._operations[candidate.saw],
            source=operation(candidate.source),
            known=operation(candidate.known),
            against=operation(candidate.against),
            operations=tuple(self._operations[i] for i in kept),
        )

    def interval(self, i: int) -> tuple[int, int]:
        """Returns the start and the end of an operation."""
        return self._s[i], self._e[i]

    def is_initial(self, value: int) -> bool:
        """Returns whether a value is the initial one."""
        return value == self._initial


class _Done:
    """The moments at which all writes of a value were complete."""

    def __init__(self, register: _Register, value: int, makers: Sequence[int], seers: Sequence[int]) -> None:
        self._starts: list[int] = []
        self._ends: list[tuple[int, int]] = []  # the maximum end so far, and the operation with it
        self._from_the_start = register.is_initial(value)
        last = (-1, -1)
        for i in makers:
            start, end = register.interval(i)
            last = max(last, (end, i))
            self._starts.append(start)
            self._ends.append(last)
        self._seen: tuple[int, int, int] | None = None
        if len(makers) == 1 and not self._from_the_start:
            known = min(seers, key=lambda j: register.interval(j)[1])
            self._seen = (register.interval(known)[1], makers[0], known)

    def before(self, end: int) -> Iterator[tuple[int, int | None, int | None]]:
        """Yields the moments at which all writes of the value before a moment were complete, with the operations that show it.

        Args:
            end: The moment.

        Yields:
            The moment, the last write, and the operation whose end shows that it is complete.
        """
        index = bisect_right(self._starts, end)
        if not index:
            if self._from_the_start:
                yield -1, None, None
            return
        at, source = self._ends[index - 1]
        if at != INFINITE:
            yield at, source, source
        if self._seen is not None:
            yield self._seen


def _made(code: Code) -> int | None:
    return {WRITE: code.a, CAS: code.b}.get(code.f)


def _seen(code: Code) -> int | None:
    return code.a if code.f in {READ, CAS} else None
