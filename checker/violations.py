"""Ranks the invalid keys of a run: those that may tell something about its faults first, the simplest of them before others.

A violation belongs to the time of its decisive operation, from request to answer. It is *during* a fault if some fault was on
in that time, *after* one if a fault had been on before, and *before* any otherwise. A violation before the first fault says
nothing about faults. Only faults whose effect was seen count.
"""

from __future__ import annotations

import enum
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from checker.result import operation_json
from harness.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from checker.independent import KeyedAnalysis
    from checker.result import Analysis
    from harness.faults import FaultRecord
    from harness.op import Operation, Value

_UNEXPLAINED: Final = 1 << 30  # counts as larger than any counterexample


class When(enum.StrEnum):
    """When a violation happened, seen from the faults of its run."""

    DURING = "during"
    AFTER = "after"
    BEFORE = "before"


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """An invalid key.

    Attributes:
        key: The key; None where the history has only one object.
        analysis: What the checker found.
        decisive: The operation that could not have happened, given the others; None if the checker names none.
        when: Its time, seen from the faults.
        faults: The ids of the faults that were on in that time.
    """

    key: str | None
    analysis: Analysis
    decisive: Operation | None
    when: When
    faults: tuple[int, ...]

    def to_json(self) -> dict[str, Value]:
        """Returns the violation as JSON-like data, as the details of a part hold it."""
        return {
            "key": self.key,
            "explanation": self.analysis.explanation,
            "when": str(self.when),
            "faults": list(self.faults),
            "op": operation_json(self.decisive),
            "operations": [operation_json(operation) for operation in self.analysis.counterexample],
        }


def violations(found: KeyedAnalysis, faults: Sequence[FaultRecord]) -> list[Violation]:
    """Returns the invalid keys of a run: during or after a fault first, then by simplicity, then by time.

    Args:
        found: What the checker found; keys that it explained have counterexamples.
        faults: What became of the run's faults.
    """
    seen = [fault for fault in faults if fault.proof is not None and fault.proof.effective]
    ranked = [
        _violation(key, analysis, seen) for key, analysis in found.keys.items() if analysis.valid is Verdict.INVALID
    ]
    return sorted(ranked, key=_rank)


def count(ranked: Sequence[Violation]) -> dict[str, int]:
    """Returns how many violations there are in all, and how many at which time."""
    at = Counter(violation.when for violation in ranked)
    return {"total": len(ranked), **{f"{when}_faults": at[when] for when in When}}


def _violation(key: str | None, analysis: Analysis, faults: Sequence[FaultRecord]) -> Violation:
    decisive = analysis.culprit or analysis.op
    when = When.BEFORE
    ids: tuple[int, ...] = ()
    if decisive is not None:
        start_ns = decisive.start_ns
        end_ns = start_ns if decisive.end_ns is None else decisive.end_ns
        on = tuple(fault.planned.id for fault in faults if fault.start_ns <= end_ns and start_ns < fault.end_ns)
        if on:
            when, ids = When.DURING, on
        elif any(fault.end_ns <= start_ns for fault in faults):
            when = When.AFTER
    return Violation(key=key, analysis=analysis, decisive=decisive, when=when, faults=ids)


def _rank(violation: Violation) -> tuple[bool, int, bool, int]:
    decisive = violation.decisive
    return (
        violation.when is When.BEFORE,
        len(violation.analysis.counterexample) or _UNEXPLAINED,
        violation.when is When.AFTER,
        _UNEXPLAINED if decisive is None or decisive.complete_index is None else decisive.complete_index,
    )
