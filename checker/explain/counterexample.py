"""Finds a small part of a history that is not linearizable by itself, as an explanation for people.

The search may leave out an operation only if each linearization of the whole history stays one without it. This holds for

- an observer;
- a write, append or add, if no kept operation observes its value;
- a write, if another write comes between it and all operations that observe its value;
- an element of a queue, with all its operations.

An operation without a return by the end of the part may have happened later, or never. So the part is always a reason for the
verdict, and never an artefact of leaving operations out.

The search starts with the simplest reasons on a register (`checker.near.patterns`). If there is none, delta debugging
(Zeller and Hildebrandt, 2002) makes the history small. The brute force confirms both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from checker.errors import Disagreement, ModelError
from checker.explain.faithful import faithful, there
from checker.models.opcodes import (
    ACQUIRE,
    ADD,
    APPEND,
    CAS,
    CAS_FAIL,
    CONTAINS,
    DEQUEUE,
    ENQUEUE,
    INFINITE,
    OBSERVERS,
    PUT,
    READ,
    READ_LIST,
    READ_SET,
    RELEASE,
    TXN,
    WRITE,
)
from checker.near.necessary import ANALYZER as FLOW
from checker.near.necessary import IMPOSSIBLE, SEARCH
from checker.near.patterns import patterns
from checker.search.allowance import Allowance
from checker.search.brute import linearizable
from checker.search.reach import Refusals, known, reach, reasons_of
from checker.search.relaxing import smallest, whatever_else
from checker.search.solving import solve
from harness.op import OpType

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from checker._kernel import Outcome
    from checker.models import Code, Model
    from checker.near.patterns import Pattern
    from checker.search.encode import Encoded
    from checker.search.reach import Reach
    from harness.op import Operation

SHRINK_S: Final = 2.0  # of processor time, for a small part
_TEST_S: Final = 0.5  # likewise, for one search
_REACH_SHARE: Final = 0.25  # of the time, for the final states of the whole history
_FAITHFUL_SHARE: Final = 0.6  # of the rest, for a part that leads only to such states
_FEW: Final = 4  # the maximum number of operations of such a part for which no other part is tried
_MOST_TAKERS: Final = (
    4  # the maximum number of operations that took one value; with more, another reason may be simpler
)
_BRUTE_STEPS: Final = 200_000
_BRUTE_OPERATIONS: Final = 24
_READS_ONLY: Final = frozenset({0, 2})
_MAKERS: Final = frozenset({WRITE, CAS, ADD, APPEND, PUT})


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """A small part of a history that is not linearizable, and the kind of contradiction in it.

    Attributes:
        operations: The part, in the order of the invokes.
        culprit: The operation that is impossible, given the others.
        kind: The kind of contradiction, by the kernel's name; None if the kernel gives none.
        core: The operations that the kernel names, in its order.
        pattern: The pattern that they form; None if they form none.
        refusals: Of a user's own model, its reasons to refuse the culprit; None if they are unknown.
    """

    operations: tuple[Operation, ...]
    culprit: Operation
    kind: str | None
    core: tuple[Operation, ...] = ()
    pattern: Pattern | None = None
    refusals: Refusals | None = None


def reason(model: Model, encoded: Encoded, outcome: Outcome, allowance: Allowance) -> Reason:
    """Returns why a history is invalid, in as few operations as possible.

    Args:
        model: The model of the object.
        encoded: The history.
        outcome: The kernel's outcome for it.
        allowance: The budget to make a part smaller.

    Raises:
        Disagreement: The brute force finds a legal order of the part.
    """
    if encoded.coder.step is not None and outcome.op is not None:
        return _of_own_model(model, encoded, outcome, outcome.op, allowance)
    pattern = next(iter(patterns(encoded)), None)
    if pattern is not None:
        _confirm_by_brute_force(model, f"{pattern.kind} pattern", pattern.operations)
        return Reason(operations=pattern.operations, culprit=pattern.saw, kind=pattern.kind, pattern=pattern)
    part = _Part(model, encoded, outcome, allowance)
    kept = part.shrunk(outcome.core)
    small = tuple(encoded.operations[i] for i in kept)
    _confirm_by_brute_force(model, outcome.analyzer, small)
    [again] = solve([encoded.part(kept, part.end)], Allowance.of(_TEST_S).limits())
    core = tuple(small[i] for i in again.core)
    # The part is minimal, so it contradicts itself only from its last return on.
    return Reason(operations=small, culprit=max(small, key=_returned), kind=again.kind, core=core)


def _of_own_model(model: Model, encoded: Encoded, outcome: Outcome, op: int, allowance: Allowance) -> Reason:
    """Returns why a history of a user's own model is invalid, with the reasons of the model."""
    culprit = encoded.operations[op]
    if outcome.analyzer == FLOW:
        core = outcome.core
        simpler = None if len(core) <= _MOST_TAKERS else smallest(encoded, op, allowance)
        if simpler is None or len(simpler) >= len(core):
            small = tuple(encoded.operations[i] for i in core)
            _confirm_by_step(model, culprit, small, "impossible" if outcome.kind == IMPOSSIBLE else "flow")
            return Reason(operations=small, culprit=culprit, kind=outcome.kind, core=small)
    whole = reach(encoded, there(encoded, op), op, allowance.part(_REACH_SHARE)) or known(encoded, outcome)
    kept: list[int] | None = None if whole is None else faithful(encoded, op, whole, allowance.part(_FAITHFUL_SHARE))
    other = None
    if kept is None or len(kept) > _FEW:
        within = None if whole is None else whole.states
        other = whatever_else(encoded, op, within, allowance if within is None else allowance.part(0.5))
        if other is None and within is not None:
            other = whatever_else(encoded, op, None, allowance)
        if other is not None and (kept is None or 2 * len(other) < len(kept)):
            kept = other
    if kept is None:
        kept = _Part(model, encoded, outcome, allowance).shrunk([])
    small = tuple(encoded.operations[i] for i in kept)
    _confirm_by_brute_force(model, outcome.analyzer, small)
    return Reason(operations=small, culprit=culprit, kind=SEARCH, refusals=_refusals(encoded, op, kept, whole, other))


def _refusals(
    encoded: Encoded, op: int, kept: list[int], whole: Reach | None, other: list[int] | None
) -> Refusals | None:
    """Returns the reasons for which the model refuses `op` after the whole history, or else after the shown part of it."""
    alone = reach(encoded, kept, op, Allowance.of(_TEST_S))
    of_part = () if alone is None else _reasons(encoded, alone, op)
    if whole is not None:
        return Refusals.of(of_part, _reasons(encoded, whole, op), complete=whole.complete)
    return Refusals(shown=of_part, others=None) if of_part and kept is other else None


def _reasons(encoded: Encoded, reached: Reach, op: int) -> tuple[str, ...]:
    return reasons_of(encoded.table, reached.states, encoded.codes[op].a)


def _confirm_by_step(model: Model, op: Operation, small: tuple[Operation, ...], method: str) -> None:
    """Raises an error if a method of a model excludes a legal order that its `step` allows."""
    if len(small) <= _BRUTE_OPERATIONS and linearizable(model, small, bound=_BRUTE_STEPS):
        raise ModelError(
            f"model {model.name}: by its `{method}` the operation of event {op.invoke_index} cannot return what it did, but "
            f"by its `step` it can; correct `{method}`, or leave it out"
        )


def _confirm_by_brute_force(model: Model, who: str, small: tuple[Operation, ...]) -> None:
    if len(small) <= _BRUTE_OPERATIONS and linearizable(model, small, bound=_BRUTE_STEPS):
        raise Disagreement(
            f"model {model.name}: {who} finds invalid because of {len(small)} operations that a brute force finds "
            "linearizable",
            small,
        )


class _Part:
    """Subsets of one history, by positions, up to the return that shows that it is invalid.

    Attributes:
        end: The index of that return; None if there is none.
    """

    def __init__(self, model: Model, encoded: Encoded, outcome: Outcome, allowance: Allowance) -> None:
        self._model = model
        self._encoded = encoded
        self._operations = encoded.operations
        self._codes = encoded.codes
        self._allowance = allowance
        op = outcome.op
        self.end = None if op is None else encoded.operations[op].complete_index

    def shrunk(self, core: Sequence[int]) -> list[int]:
        """Returns an invalid part, as small as possible in the time; the analyzer named the operations in `core`."""
        end = INFINITE if self.end is None else self.end
        kept = [
            i
            for i, op in enumerate(self._operations)
            if op.invoke_index <= end and (_end(op) <= end or not self._observes(i))
        ]
        closed = self.closure(core, kept)
        return self.minimal(closed if closed and self.invalid(closed) else kept)

    def invalid(self, kept: Sequence[int]) -> bool:
        if self._allowance.is_over():
            return False
        problem = self._encoded.part(kept, self.end)
        [outcome] = solve([problem], self._allowance.most(_TEST_S).limits())
        return outcome.verdict == "invalid"

    def minimal(self, kept: Sequence[int]) -> list[int]:
        current = list(kept)
        while not self._allowance.is_over():
            units = self._removable(current)
            smaller = self._without_some(current, units) or self._without_overwritten(current)
            if smaller is None:
                break
            current = smaller
        return current

    def _without_overwritten(self, current: list[int]) -> list[int] | None:
        """Leaves out writes that another write hides from all operations that observe the same value; None if none."""
        if any(self._codes[i].f not in {READ, WRITE, CAS} for i in current):
            return None
        removed = False
        for i in [i for i in current if self._codes[i].f == WRITE]:
            if self._allowance.is_over():
                break
            trial = [j for j in current if j != i]
            if self._made_twice(i, trial) and self._hidden(i, trial) and self.invalid(trial):
                current, removed = trial, True
        return current if removed else None

    def _made_twice(self, write: int, others: Sequence[int]) -> bool:
        """Returns whether the value of a write is not observed, or another operation writes it too.

        Without this, the part would have a value from nowhere, which explains nothing.
        """
        codes = self._codes
        value = codes[write].a
        seen = any(codes[i].f in {READ, CAS} and codes[i].a == value for i in others)
        return not seen or any(_made(codes[i]) == value for i in others)

    def _hidden(self, write: int, others: Sequence[int]) -> bool:
        """Returns whether a write begins after the end of this one, and ends before all that observe its value begin."""
        operations, codes = self._operations, self._codes
        end = _end(operations[write])
        later = [i for i in others if codes[i].f == WRITE and operations[i].invoke_index > end]
        hides = min((_end(operations[i]) for i in later), default=INFINITE)
        seen_by = [i for i in others if codes[i].f in {READ, CAS} and codes[i].a == codes[write].a]
        return hides < min((operations[i].invoke_index for i in seen_by), default=INFINITE)

    def _without_some(self, current: list[int], units: list[list[int]]) -> list[int] | None:
        """Leaves out units in ever smaller chunks; None if none could be left out."""
        size = max(len(units) // 2, 1)
        removed = False
        while units and not self._allowance.is_over():
            start = 0
            while start < len(units):
                gone = {i for unit in units[start : start + size] for i in unit}
                trial = [i for i in current if i not in gone]
                if trial and self.invalid(trial):
                    current, removed = trial, True
                    del units[start : start + size]
                else:
                    start += size
            if size == 1:
                break
            size //= 2
        return current if removed else None

    def _removable(self, current: Sequence[int]) -> list[list[int]]:
        """Returns groups of operations that may be left out, in any combination."""
        codes = self._codes
        observers = [[i] for i in current if self._observes(i)]
        present = {codes[i].f for i in current}
        if present & {ENQUEUE, DEQUEUE}:
            return observers + self._elements(current)
        if present & {ACQUIRE, RELEASE}:
            return self._holds(current)
        if CAS_FAIL in present:
            return observers
        seen: set[int] = set()
        read: list[tuple[int, ...]] = []
        for i in current:
            code = codes[i]
            if code.f in {READ, CAS} or (code.f == CONTAINS and code.b):
                seen.add(code.a)
            elif code.f in {READ_SET, READ_LIST}:
                seen.update(code.items)
                read.append(code.items)
        return observers + [[i] for i in current if codes[i].f in _MAKERS and not _is_seen(codes[i], seen, read)]

    def _observes(self, i: int) -> bool:
        code = self._codes[i]
        if code.f == TXN:
            return _READS_ONLY.issuperset(code.items[::3])
        return code.f in OBSERVERS or self._model.observes(self._model.call(self._operations[i]))

    def _elements(self, current: Iterable[int]) -> list[list[int]]:
        elements: dict[int, list[int]] = {}
        for i in current:
            if self._codes[i].f in {ENQUEUE, DEQUEUE}:
                elements.setdefault(self._codes[i].a, []).append(i)
        return list(elements.values())

    def _holds(self, current: Iterable[int]) -> list[list[int]]:
        """Pairs each acquire with the next release of the same process; empty if a process does not alternate between them."""
        by_process: dict[int, list[int]] = {}
        for i in sorted(current, key=lambda i: self._operations[i].invoke_index):
            by_process.setdefault(self._codes[i].a, []).append(i)
        holds: list[list[int]] = []
        for own in by_process.values():
            if [self._codes[i].f for i in own] != [(ACQUIRE, RELEASE)[k % 2] for k in range(len(own))]:
                return []
            holds += [own[k : k + 2] for k in range(0, len(own), 2)]
        return holds

    def closure(self, core: Sequence[int], kept: Sequence[int]) -> list[int]:
        """Returns some operations, and all operations that the values they observed come from."""
        sources: dict[int, list[int]] = {}
        always: list[int] = []
        for i in kept:
            code = self._codes[i]
            made = _made(code)
            if code.f == CAS_FAIL:
                return []
            if made is not None:
                sources.setdefault(made, []).append(i)
            elif code.f not in OBSERVERS:
                # Its effect has no value by which it could be selected.
                always.append(i)
        members = set(kept)
        closed: set[int] = set()
        work = [i for i in core if i in members] + (always if core else [])
        while work:
            i = work.pop()
            if i not in closed:
                closed.add(i)
                code = self._codes[i]
                values = {code.a, *code.items} | ({code.b} if code.f == CAS else set())
                work += (source for value in values for source in sources.get(value, ()))
        return sorted(closed)


def _returned(op: Operation) -> int:
    """Returns the end of an operation; those without an end come first."""
    return -1 if _end(op) == INFINITE else _end(op)


def _end(op: Operation) -> int:
    return INFINITE if op.type is OpType.INFO or op.complete_index is None else op.complete_index


def _made(code: Code) -> int | None:
    """Returns the value that an operation leaves in the object, or removes from it."""
    if code.f in {WRITE, ADD, ENQUEUE, DEQUEUE}:
        return code.a
    if code.f == CAS:
        return code.b
    return code.items[0] if code.f in {APPEND, PUT} and len(code.items) == 1 else None


def _is_seen(code: Code, seen: set[int], read: Sequence[tuple[int, ...]]) -> bool:
    made = _made(code)
    if made is not None:
        return made in seen
    return any(_contains(whole, code.items) for whole in read)


def _contains(whole: tuple[int, ...], piece: tuple[int, ...]) -> bool:
    width = len(piece)
    return any(whole[at : at + width] == piece for at in range(len(whole) - width + 1))
