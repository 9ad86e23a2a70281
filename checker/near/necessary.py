"""Finds operations that violate a necessary condition of every linearization, before any search, in little more than one pass.

Operations of one class differ only in their time. A model defines which values a class needs, takes and makes (`Model.flow`);
for built-in models, the kernel's opcodes define it. There are three conditions:

- *phantom*: an operation returned, and no operation can have made a value that it needs.
- *future*: it returned before the value can have been made. The earliest moment of a value is the minimum over the operations
  that make it. For each of them, it is the later one of two moments: its own start, and the earliest moment of all that it
  needs. So this is a shortest path in which each node waits for all its predecessors (Knuth, *A generalization of Dijkstra's
  algorithm*, Information Processing Letters 6(1), 1977). Values that only need each other are never present.
- *duplicate*: at some return, operations have certainly taken more copies of a value than operations that make it have begun.

A user's model may also declare that no state allows an operation (`Model.impossible`): *impossible*.

A counter has two more conditions. A read lies between the minimum and the maximum sum that real time allows (*too-low*,
*too-high*). And it is the sum of all increments that ended before it, plus some of those that overlap with it. The sums of all
subsets are the bits of one number (Bellman's dynamic programming for subset sums), if they are small.

Each violation is a proof, whatever else happened. If there is none, this proves nothing.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush
from itertools import accumulate
from math import gcd
from typing import TYPE_CHECKING, Final

from checker.errors import ModelError
from checker.identity import identity, revived
from checker.models.blaming import place_of
from checker.models.opcodes import (
    ADD,
    APPEND,
    CAS,
    CAS_FAIL,
    CONTAINS,
    DEQUEUE,
    ENQUEUE,
    FETCH_ADD,
    INCREMENT,
    INFINITE,
    PUT,
    READ,
    READ_COUNT,
    READ_LIST,
    READ_SET,
    TXN,
    WRITE,
)
from harness.console.plain import name as plain_name
from harness.console.plain import one_line

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping, Sequence
    from typing import TypeAlias

    from checker.models import Code, Model
    from checker.search.encode import Encoded, Events
    from harness.op import Value

    Token: TypeAlias = Hashable

ANALYZER: Final = "flow"
PHANTOM: Final = "phantom"
FUTURE: Final = "future"
DUPLICATE: Final = "duplicate"
IMPOSSIBLE: Final = "impossible"
SEARCH: Final = "search"  # the kernel's name for a contradiction without a kind of its own
TOO_LOW: Final = "too-low"
TOO_HIGH: Final = "too-high"
_TOKENS: Final = frozenset(
    {"register", "set", "grow-set", "fifo-queue", "unordered-queue", "sequence", "multi-register"}
)
_READ_MICRO: Final = 0
_WRITE_MICRO: Final = 1
_SUBSET_BITS: Final = 1 << 20  # the maximum sum of increments that is examined
_SUBSET_WORK: Final = 1 << 34  # the maximum number of shifted bits for all answers: some two seconds
_SUBSET_LEAST: Final = 1 << 12
_NAMED: Final = 12  # the maximum number of operations in a contradiction


@dataclass(frozen=True, slots=True, kw_only=True)
class Lack:
    """A violated condition: an operation that returned an impossible answer.

    Attributes:
        kind: `phantom`, `future`, `duplicate`, `impossible`, `too-low` or `too-high`.
        op: The position of the operation whose return makes the violation certain.
        core: The positions of the operations that show it, with `op`.
        value: The missing value; None for a counter. For `impossible`, the reason.
    """

    kind: str
    op: int
    core: tuple[int, ...]
    value: Value = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Needs:
    """The flow of a class, as tokens; `anything` if it may make any value."""

    needs: frozenset[Token] = frozenset()
    takes: frozenset[Token] = frozenset()
    makes: frozenset[Token] = frozenset()
    anything: bool = False

    @property
    def all_needs(self) -> frozenset[Token]:
        return self.needs | self.takes


def lack(model: Model, encoded: Encoded) -> Lack | None:
    """Returns the first operation that violates a necessary condition; None if there is none.

    Args:
        model: The model of the object.
        encoded: The history.

    Raises:
        ModelError: A value of the model's `flow` cannot be compared.
    """
    if encoded.coder.step is None:
        return lack_of(encoded.events)
    candidates = [
        candidate for candidate in (_impossible(model, encoded), _flow_lack(model, encoded)) if candidate is not None
    ]
    return min(candidates, key=lambda candidate: encoded.ends[candidate.op], default=None)


def _impossible(model: Model, encoded: Encoded) -> Lack | None:
    """Returns the first operation to return that the model declares impossible."""
    if not model.has_impossible:
        return None
    returned = sorted((end, i) for i, end in enumerate(encoded.ends) if end != INFINITE)
    reasons: dict[int, str | None] = {}
    for _, i in returned:
        code = encoded.codes[i]
        if id(code) not in reasons:
            reasons[id(code)] = model.impossible(encoded.coder.call(code))
        why = reasons[id(code)]
        if why is not None:
            return Lack(kind=IMPOSSIBLE, op=i, core=(i,), value=why)
    return None


def _flow_lack(model: Model, encoded: Encoded) -> Lack | None:
    if not model.has_flow:
        return None
    events = encoded.events
    flows = [_of_model(model, encoded, code) for code in encoded.classes]
    lacking = _Flows(events, flows, [identity(value) for value in model.initial_values]).lack()
    return None if lacking is None else replace(lacking, value=revived(lacking.value))


def lack_of(events: Events) -> Lack | None:
    """Returns the first violation of a built-in model, whose values are the numbers in the codes.

    Args:
        events: The history.
    """
    if events.family == "counter":
        return _count(events)
    if events.family not in _TOKENS:
        return None
    initial: Iterable[Token] = events.initial[1:] if events.family == "unordered-queue" else events.initial
    if events.family == "multi-register":
        initial = enumerate(events.initial)
    return _Flows(events, [_of_code(code) for code in events.classes], list(initial)).lack()


def unseen(events: Events) -> frozenset[int]:
    """Returns the classes that only make values which no operation needs; their crashed operations do not affect the verdict.

    Args:
        events: A history of any model; empty for a user's own model.
    """
    if events.family not in _TOKENS - {"multi-register"} or any(code.f == CAS_FAIL for code in events.classes):
        return frozenset()
    flows = [_of_code(code) for code in events.classes]
    wanted = {token for flow in flows for token in flow.all_needs}
    return frozenset(index for index, flow in enumerate(flows) if flow.makes and not flow.makes & wanted)


def _of_model(model: Model, encoded: Encoded, code: Code) -> _Needs:
    call = encoded.coder.call(code)
    flow = model.flow(call)
    if flow is None:
        return _Needs(anything=True)
    try:
        needs, takes, makes = (frozenset(map(identity, values)) for values in flow)
    except (TypeError, ValueError) as error:
        shown = plain_name(one_line(repr(flow)))
        raise ModelError(
            f"model {plain_name(model.name)}: {place_of(model.flow)}: expected a Flow or None, found {shown}; correct the model"
        ) from error
    return _Needs(needs=needs, takes=takes, makes=makes)


def _of_code(code: Code) -> _Needs:  # noqa: PLR0911 - one for each opcode
    f = code.f
    if f in {WRITE, ENQUEUE, ADD}:
        return _Needs(makes=frozenset({code.a}))
    if f == CAS:
        return _Needs(needs=frozenset({code.a}), makes=frozenset({code.b}))
    if f == READ or (f == CONTAINS and code.b):
        return _Needs(needs=frozenset({code.a}))
    if f == DEQUEUE:
        return _Needs(takes=frozenset({code.a}))
    if f in {APPEND, PUT}:
        return _Needs(makes=frozenset(code.items))
    if f in {READ_SET, READ_LIST}:
        return _Needs(needs=frozenset(code.items))
    return _of_transaction(code.items) if f == TXN else _Needs()


def _of_transaction(items: Sequence[int]) -> _Needs:
    needs: set[Token] = set()
    written: dict[int, int] = {}
    for kind, register, value in zip(items[::3], items[1::3], items[2::3], strict=True):
        if kind == _WRITE_MICRO:
            written[register] = value
        elif kind == _READ_MICRO and register not in written:
            needs.add((register, value))
    return _Needs(needs=frozenset(needs), makes=frozenset(written.items()))


class _Moments:
    """The earliest moment at which each class can take effect, and each value can be present.

    Attributes:
        moments: By class; `INFINITE` for never.
        there: By value: the moment, and the class that makes it first; -1 for the initial values.
        anything: The earliest moment at which any value can be present.
    """

    def __init__(self, flows: Sequence[_Needs], starts: Sequence[int]) -> None:
        self._flows = flows
        self._starts = starts
        self.moments = [INFINITE] * len(flows)
        self.there: dict[Token, tuple[int, int]] = {}
        self.anything = min((starts[index] for index, flow in enumerate(flows) if flow.anything), default=INFINITE)
        self._waiting: dict[Token, list[int]] = {}
        self._missing = [len(flow.all_needs) for flow in flows]
        self._heap = [(starts[index], index) for index, missing in enumerate(self._missing) if not missing]
        heapify(self._heap)
        for index, flow in enumerate(flows):
            for token in flow.all_needs:
                self._waiting.setdefault(token, []).append(index)

    def appear(self, tokens: Iterable[Token], moment: int, by: int) -> None:
        """Adds values that can be present from a moment on."""
        for token in tokens:
            if token in self.there:
                continue
            self.there[token] = (moment, by)
            for index in self._waiting.get(token, ()):
                self._missing[index] -= 1
                if not self._missing[index]:
                    heappush(self._heap, (max(moment, self._starts[index]), index))

    def run(self) -> None:
        """Computes the moments of the classes, the earliest first."""
        while self._heap and self._heap[0][0] <= self.anything:
            moment, index = heappop(self._heap)
            self.moments[index] = moment
            self.appear(self._flows[index].makes, moment, index)


class _Flows:
    """The classes of one history, with the first start and the first end of each."""

    def __init__(self, events: Events, flows: Sequence[_Needs], initial: Sequence[Token]) -> None:
        self._events = events
        self._flows = flows
        self._initial = initial
        self._members = events.members
        self._starts = [INFINITE] * len(flows)
        self._ends = [INFINITE] * len(flows)
        for index, start, end in zip(self._members, events.starts, events.ends, strict=True):
            self._starts[index] = min(self._starts[index], start)
            self._ends[index] = min(self._ends[index], end)

    def lack(self) -> Lack | None:
        """See the function `lack`."""
        moments, appeared = self._moments()
        late = [
            (self._ends[index], index)
            for index, moment in enumerate(moments)
            if self._ends[index] != INFINITE and self._ends[index] < moment
        ]
        candidates = [self._late(min(late)[1], appeared)] if late else []
        taken = self._taken_twice()
        if taken is not None:
            candidates.append(taken)
        ends = self._events.ends
        return min(candidates, key=lambda candidate: (ends[candidate.op], candidate.kind == DUPLICATE), default=None)

    def _moments(self) -> tuple[list[int], dict[Token, tuple[int, int]]]:
        """Returns the earliest moment of each class; and of each value, with the class that makes it first."""
        work = _Moments(self._flows, self._starts)
        work.appear(self._initial, -1, -1)
        work.run()
        anything = work.anything
        # From then on, any value can be present.
        moments = [min(moment, max(anything, start)) for moment, start in zip(work.moments, self._starts, strict=True)]
        return moments, work.there

    def _late(self, index: int, appeared: Mapping[Token, tuple[int, int]]) -> Lack:
        """Returns the missing value of the first operation of a class to end."""
        end = self._ends[index]
        op = self._position(index, end=end)
        needs = sorted(self._flows[index].all_needs, key=lambda token: appeared.get(token, (INFINITE, -1))[0])
        token = needs[-1]
        _, by = appeared.get(token, (INFINITE, -1))
        if by < 0:
            return Lack(kind=PHANTOM, op=op, core=(op,), value=token)
        maker = self._position(by, start=self._starts[by])
        if self._starts[by] < end:  # the operation that makes it had begun, but cannot have taken effect by then
            return Lack(kind=PHANTOM, op=op, core=(op,), value=token)
        return Lack(kind=FUTURE, op=op, core=(maker, op), value=token)

    def _taken_twice(self) -> Lack | None:
        """Returns the first operation at whose return more copies of a value are taken than can have been made."""
        tokens = {token for flow in self._flows for token in flow.takes}
        if not tokens or any(flow.anything for flow in self._flows):
            return None
        makers: dict[Token, list[tuple[int, int]]] = {token: [] for token in tokens}
        takers: dict[Token, list[tuple[int, int]]] = {token: [] for token in tokens}
        for i, (index, start, end) in enumerate(
            zip(self._members, self._events.starts, self._events.ends, strict=True)
        ):
            flow = self._flows[index]
            for token in flow.makes & tokens:
                makers[token].append((start, i))
            for token in flow.takes if end != INFINITE else ():
                takers[token].append((end, i))
        initial = Counter(self._initial)
        candidates = [
            self._one_too_many(token, initial[token], sorted(makers[token]), sorted(takers[token])) for token in tokens
        ]
        ends = self._events.ends
        return min(
            (candidate for candidate in candidates if candidate is not None),
            key=lambda candidate: ends[candidate.op],
            default=None,
        )

    def _one_too_many(
        self, token: Token, initial: int, made: Sequence[tuple[int, int]], taken: Sequence[tuple[int, int]]
    ) -> Lack | None:
        """Returns the first return at which more copies of one value are taken than can have been made, for sorted makers."""
        for count, (end, i) in enumerate(taken):
            source = count - initial
            if source >= 0 and (source >= len(made) or made[source][0] > end):
                core = [at for _, at in (*made[:source], *taken[: count + 1])]
                return Lack(kind=DUPLICATE, op=i, core=tuple(core[-_NAMED:]), value=token)
        return None

    def _position(self, index: int, *, start: int | None = None, end: int | None = None) -> int:
        times, wanted = (self._events.starts, start) if end is None else (self._events.ends, end)
        return next(i for i, at in enumerate(self._members) if at == index and times[i] == wanted)


def _count(events: Events) -> Lack | None:
    """Returns the first answer of a counter that is not a possible sum."""
    codes = [events.classes[member] for member in events.members]
    rises: list[tuple[int, int, int]] = []
    falls: list[tuple[int, int, int]] = []
    for code, start, end in zip(codes, events.starts, events.ends, strict=True):
        if code.f in {INCREMENT, FETCH_ADD} and code.a:
            (rises if code.a > 0 else falls).append((start, end, code.a))
    begun_rises, ended_rises = _sums(rises, 0), _sums(rises, 1)
    begun_falls, ended_falls = _sums(falls, 0), _sums(falls, 1)
    failures: list[tuple[int, Lack]] = []
    [initial] = events.initial
    subsets = _Subsets([*rises, *falls])
    answers = [i for i, code in enumerate(codes) if code.f in {READ_COUNT, FETCH_ADD} and events.ends[i] != INFINITE]
    for i in sorted(answers, key=events.starts.__getitem__):
        code, start, end = codes[i], events.starts[i], events.ends[i]
        value, own = (code.a, 0) if code.f == READ_COUNT else (code.b, code.a)
        before = ended_rises.before(start) + ended_falls.before(start)
        least = initial + ended_rises.before(start) + begun_falls.until(end) - min(own, 0)
        most = initial + begun_rises.until(end) + ended_falls.before(start) - max(own, 0)
        if value < least or value > most:
            kind = TOO_LOW if value < least else TOO_HIGH
            failures.append((end, Lack(kind=kind, op=i, core=(i,))))
        elif not subsets.reach(value - initial - before, start, end, own):
            failures.append((end, Lack(kind=SEARCH, op=i, core=(i,))))
    return min(failures, key=lambda failure: failure[0])[1] if failures else None


class _Subsets:
    """Decides whether some increments that overlap with an answer add up to a sum; answers come sorted by start."""

    def __init__(self, changes: Sequence[tuple[int, int, int]]) -> None:
        """Prepares for increments, given by (start, end, amount)."""
        self._changes = sorted(changes)
        self._unit = gcd(*(amount for *_, amount in changes)) or 1
        self._begun = 0
        self._open: list[tuple[int, int, int]] = []
        self._room = _SUBSET_WORK

    def reach(self, wanted: int, start: int, end: int, own: int) -> bool:
        """Returns whether a sum is possible; also true if computing it takes too long.

        Args:
            wanted: The sum.
            start: The start of the answer.
            end: Its end.
            own: The amount that the answer itself adds afterwards; 0 for a read.
        """
        changes = self._changes
        while self._begun < len(changes) and changes[self._begun][0] <= start:
            self._open.append(changes[self._begun])
            self._begun += 1
        self._open = [change for change in self._open if change[1] >= start]
        amounts = [amount for *_, amount in self._open]
        index = self._begun
        while index < len(changes) and changes[index][0] <= end:
            amounts.append(changes[index][2])
            index += 1
        if own:
            amounts.remove(own)
        # Leaving out a negative amount equals adding its absolute value to the sum of all negative amounts.
        wanted -= sum(amount for amount in amounts if amount < 0)
        if wanted % self._unit:
            return False
        parts = [abs(amount) // self._unit for amount in amounts]
        size = sum(parts)
        self._room -= len(parts) * (size + _SUBSET_LEAST)
        if size > _SUBSET_BITS or self._room < 0:
            return True
        sums = 1  # one bit for each possible sum
        for part in parts:
            sums |= sums << part
        return bool(sums >> (wanted // self._unit) & 1)


@dataclass(frozen=True, slots=True)
class _Sums:
    """Running sums of amounts, by time."""

    times: Sequence[int]
    sums: Sequence[int]

    def before(self, moment: int) -> int:
        """Returns the sum of the amounts before a moment."""
        return self.sums[bisect_left(self.times, moment)]

    def until(self, moment: int) -> int:
        """Returns the sum of the amounts up to and including a moment."""
        return self.sums[bisect_right(self.times, moment)]


def _sums(changes: Iterable[tuple[int, int, int]], by: int) -> _Sums:
    ordered = sorted((change[by], change[2]) for change in changes)
    return _Sums([time for time, _ in ordered], list(accumulate((amount for _, amount in ordered), initial=0)))
