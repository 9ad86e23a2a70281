"""The result for a history over independent keys, and how many of its violations are explained."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from checker.explain.sentences import NOTHING_TESTED
from checker.result import EMPTY
from harness.console.plain import counted, counted_of
from harness.verdict import Verdict, worst

if TYPE_CHECKING:
    from collections.abc import Mapping

    from checker.explain.effort import Effort
    from checker.result import Analysis

EXPLAINED: Final = 10  # the maximum number of invalid keys with a counterexample, if the caller names none


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyedAnalysis:
    """The result for a history over independent keys.

    Attributes:
        valid: The worst verdict of any key; without operations, unknown or the requested verdict.
        model: The model's name.
        operations: The number of operations.
        seconds: Wall time of the check.
        keys: The result of each key, in the order of the history.
        worst_key: The key that decides: the one with the earliest violation among those with the worst verdict.
        search: The effort of the slowest key, if it was requested.
    """

    valid: Verdict
    model: str
    operations: int
    seconds: float
    keys: Mapping[str | None, Analysis]
    worst_key: str | None
    search: Effort | None = None

    @property
    def worst(self) -> Analysis | None:
        """Returns the result of the key that decides; None if there are no operations."""
        return self.keys.get(self.worst_key) if self.keys else None

    @property
    def explanation(self) -> str:
        """Returns the verdict in one or two sentences."""
        deciding = self.worst
        if deciding is None:
            return NOTHING_TESTED
        if self.valid is Verdict.VALID:
            one = self.operations == 1
            operations = "The only operation" if one else f"The {self.operations:,} operations"
            fit = f"{operations} on {counted(len(self.keys), 'key')} {'fits' if one else 'fit'}"
            return f"{fit} into an order that real time allows."
        count = sum(analysis.valid is self.valid for analysis in self.keys.values())
        where = "" if self.worst_key is None else f"Key {self.worst_key}: "
        others = f" ({counted_of(count, len(self.keys), 'key', 'are')} {self.valid}.)" if len(self.keys) > 1 else ""
        return f"{where}{deciding.explanation}{others}"

    @property
    def order_agrees(self) -> Verdict | None:
        """Whether the system's own order is legal on each key; None if no operation carries one."""
        known = [analysis.order_agrees for analysis in self.keys.values() if analysis.order_agrees is not None]
        return worst(known) if known else None

    @property
    def order_reason(self) -> str:
        """The reason, in one or two sentences; empty if no operation carries an order."""
        agrees = self.order_agrees
        reasons = {key: analysis.order_reason for key, analysis in self.keys.items() if analysis.order_agrees is agrees}
        if agrees is None:
            return ""
        if len(self.keys) == 1:
            return next(iter(reasons.values()))
        if agrees is Verdict.VALID:
            count = counted_of(len(reasons), len(self.keys), "key")
            return f"The system's own order is a legal one on all keys whose operations carry one: {count}."
        key, reason = next(iter(reasons.items()))
        return f"Key {key}: {reason} This is so on {counted_of(len(reasons), len(self.keys), 'key')}."

    def to_json(self) -> dict[str, Any]:
        """Returns the result as JSON values: the deciding key in full, and a summary of the others."""
        deciding, agrees = self.worst, self.order_agrees
        result: dict[str, Any] = {} if deciding is None else deciding.to_json()
        analyzers = sorted({analysis.analyzer for analysis in self.keys.values()})
        counts = {str(v): sum(a.valid is v for a in self.keys.values()) for v in Verdict}
        return {
            **result,
            "valid": self.valid.as_json,
            "model": self.model,
            "analyzer": result.get("analyzer", "none"),
            "analyzers": analyzers,
            **({"cause": EMPTY} if deciding is None and self.valid is Verdict.UNKNOWN else {}),
            "operations": self.operations,
            "seconds": self.seconds,
            "explanation": self.explanation,
            "key": self.worst_key,
            "keys": {"total": len(self.keys), **counts},
            "failures": [str(key) for key, analysis in self.keys.items() if analysis.valid is Verdict.INVALID],
            "unknowns": [str(key) for key, analysis in self.keys.items() if analysis.valid is Verdict.UNKNOWN],
            **({} if agrees is None else {"order_agrees": agrees.as_json, "order_reason": self.order_reason}),
        }
