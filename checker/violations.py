"""Ranks the violations of a run: first those that its faults may have caused, among these the simplest, and late reads last.

The time of a violation is that of its decisive operation, from request to answer. It is *during* a fault if a fault was active
in that time, *after* a fault if one was active before, and *before* all faults otherwise. Faults do not cause a violation
before the first fault. Only faults with a proven effect count.
"""

from __future__ import annotations

import enum
from collections import Counter
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from checker.result import operation_json
from harness.counterexample import counterexample_of
from harness.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from checker.keyed import KeyedAnalysis
    from harness.counterexample import Counterexample, Edge
    from harness.faults import FaultRecord
    from harness.op import Operation, Value

MAX_MEMBERS: Final = 200
MAX_TEXT: Final = 1000  # characters of one text
MAX_CHARACTERS: Final = 50_000  # of one value
STALE: Final = "stale"  # a read was only late; each judge calls it so
_FEW: Final = 8  # characters of a word, or of a number that is no integer, as far as that matters
_UNEXPLAINED: Final = 1 << 30  # counts as larger than any counterexample


class When(enum.StrEnum):
    """The time of a violation, relative to the faults of its run."""

    DURING = "during"
    AFTER = "after"
    BEFORE = "before"


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """A key that is not linearizable, or an anomaly that a judge found.

    Attributes:
        key: The key; None if the history has only one object.
        kind: The kind of violation, e.g. `stale-read` or `lost`; None if the checker gives none.
        subject: The element, offset or token that it is about; None if it is about the whole key.
        explanation: The sentence that shows it.
        operations: The few operations that it is about.
        decisive: The operation that could not have happened, given the others; None if the checker names none.
        when: Its time, relative to the faults.
        faults: The ids of the faults that were active in that time.
        edges: See `harness.counterexample.Counterexample`.
    """

    key: str | None
    kind: str | None
    explanation: str
    operations: Sequence[Operation]
    decisive: Operation | None
    subject: Value = None
    when: When = When.BEFORE
    faults: tuple[int, ...] = ()
    edges: tuple[Edge, ...] = ()

    def to_json(self) -> dict[str, Value]:
        """Returns the violation as JSON values, for the details of a part."""
        return {
            "key": self.key,
            "kind": self.kind,
            "subject": _Beginning().of(self.subject),
            "explanation": self.explanation,
            "when": str(self.when),
            "faults": list(self.faults),
            "op": _short(operation_json(self.decisive)),
            "operations": [_short(operation_json(operation)) for operation in self.operations],
            **({"edges": [list(edge) for edge in self.edges]} if self.edges else {}),
        }


def _short(operation: dict[str, Any] | None) -> dict[str, Any] | None:
    """Returns an operation with the beginnings of its values; `members` is the full number if some of a list are left out.

    A read of a whole set may return a hundred thousand elements, and an answer a text of megabytes; the history has it.
    """
    if operation is None:
        return None
    short: dict[str, Any] = {
        name: _Beginning().of(operation[name]) for name in ("value", "argument") if name in operation
    }
    value = operation["value"]
    if isinstance(value, list) and len(value) > len(short["value"]):
        short["members"] = len(value)
    return {**operation, **short}


class _Beginning:
    """Takes the beginning of one value: of each list, object and text, and about `MAX_CHARACTERS` of JSON in all."""

    def __init__(self) -> None:
        self._left = MAX_CHARACTERS

    def of(self, value: Value) -> Value:
        """Returns the beginning of a value. What is left out of a text stands behind it in words."""
        if isinstance(value, list | tuple):
            return [self.of(member) for member in islice(value, MAX_MEMBERS) if self._has_room()]
        if isinstance(value, dict):
            first = islice(value.items(), MAX_MEMBERS)
            return {self._text(str(key)): self.of(member) for key, member in first if self._has_room()}
        if isinstance(value, str):
            return self._text(value)
        self._left -= _FEW if value is None or not isinstance(value, int) else value.bit_length() // 3
        return value

    def _has_room(self) -> bool:
        self._left -= 1
        return self._left > 0

    def _text(self, text: str) -> str:
        short = text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}... ({len(text)} characters)"
        self._left -= len(short)
        return short


def counterexamples(violations: Iterable[Violation]) -> list[Counterexample]:
    """Returns the violations that have operations as counterexamples."""
    examples = (
        counterexample_of(
            violation.operations,
            explanation=violation.explanation,
            culprit=violation.decisive,
            subject=violation.subject,
            edges=violation.edges,
        )
        for violation in violations
    )
    return [example for example in examples if example is not None]


def of_keys(keyed: KeyedAnalysis) -> list[Violation]:
    """Returns the invalid keys of a run as violations; keys that the checker explained have counterexamples."""
    return [
        Violation(
            key=key,
            kind=analysis.kind,
            explanation=analysis.explanation,
            operations=analysis.counterexample,
            decisive=analysis.culprit or analysis.op,
        )
        for key, analysis in keyed.keys.items()
        if analysis.valid is Verdict.INVALID
    ]


def ranked(violations: Iterable[Violation], faults: Sequence[FaultRecord]) -> list[Violation]:
    """Gives violations their time, and sorts them: first those during or after a fault, then the simplest, then the earliest.

    Stale elements come last of those with the same relation to faults: a read was only late, and nothing is gone.

    Args:
        violations: The violations.
        faults: The records of the run's faults.
    """
    seen = [fault for fault in faults if fault.proof is not None and fault.proof.effective]
    return sorted((_timed(violation, seen) for violation in violations), key=_rank)


def count(violations: Sequence[Violation]) -> dict[str, int]:
    """Returns the number of violations, in total and by time."""
    at = Counter(violation.when for violation in violations)
    return {"total": len(violations), **{f"{when}_faults": at[when] for when in When}}


def _timed(violation: Violation, faults: Sequence[FaultRecord]) -> Violation:
    decisive = violation.decisive
    if decisive is None:
        return violation
    start_ns = decisive.start_ns
    end_ns = start_ns if decisive.end_ns is None else decisive.end_ns
    on = tuple(fault.planned.id for fault in faults if fault.start_ns <= end_ns and start_ns < fault.end_ns)
    if on:
        return replace(violation, when=When.DURING, faults=on)
    if any(fault.end_ns <= start_ns for fault in faults):
        return replace(violation, when=When.AFTER)
    return violation


def _rank(violation: Violation) -> tuple[bool, bool, int, bool, int]:
    decisive = violation.decisive
    return (
        violation.when is When.BEFORE,
        violation.kind == STALE,
        len(violation.operations) or _UNEXPLAINED,
        violation.when is When.AFTER,
        _UNEXPLAINED if decisive is None or decisive.complete_index is None else decisive.complete_index,
    )
