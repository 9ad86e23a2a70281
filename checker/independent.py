"""Histories over independent keys: each key is decided for itself, all at once on all cores.

A history is linearizable iff its part on each object is (Herlihy and Wing, 1990), so this is exact.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from checker.analysis import conclude, confirm
from checker.encode import encode
from checker.models import Model
from checker.models import model as model_of
from checker.solving import Limits, solve
from harness.verdict import Verdict, worst

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from checker._kernel import Cancellation
    from checker.result import Analysis
    from harness.op import Operation

EXPLAINED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyedAnalysis:
    """What is known about a history over independent keys.

    Attributes:
        valid: The worst verdict of any key.
        model: The model's name.
        operations: How many operations there are.
        seconds: Wall time of the check.
        keys: By key, in the order of the history.
        worst_key: The key that decides: of those with the worst verdict the one that shows it earliest.
    """

    valid: Verdict
    model: str
    operations: int
    seconds: float
    keys: Mapping[str | None, Analysis]
    worst_key: str | None

    @property
    def worst(self) -> Analysis | None:
        """Returns the analysis that decides; None if there are no operations."""
        return self.keys.get(self.worst_key) if self.keys else None

    @property
    def explanation(self) -> str:
        """Returns the verdict in one or two sentences."""
        deciding = self.worst
        if deciding is None:
            return "There are no operations."
        if self.valid is Verdict.VALID:
            return f"The {self.operations} operations on {len(self.keys)} keys fit into an order that real time allows."
        count = sum(analysis.valid is self.valid for analysis in self.keys.values())
        where = "" if self.worst_key is None else f"Key {self.worst_key}: "
        others = f" ({count} of {len(self.keys)} keys are {self.valid}.)" if len(self.keys) > 1 else ""
        return f"{where}{deciding.explanation}{others}"

    def to_json(self) -> dict[str, Any]:
        """Returns the result as JSON-like data: the deciding key in full, the others in short."""
        deciding = self.worst
        result: dict[str, Any] = {} if deciding is None else deciding.to_json()
        analyzers = sorted({analysis.analyzer for analysis in self.keys.values()})
        counts = {str(v): sum(a.valid is v for a in self.keys.values()) for v in Verdict}
        return {
            **result,
            "valid": self.valid.as_json,
            "model": self.model,
            "analyzer": result.get("analyzer", "none"),
            "analyzers": analyzers,
            "operations": self.operations,
            "seconds": self.seconds,
            "explanation": self.explanation,
            "key": self.worst_key,
            "keys": {"total": len(self.keys), **counts},
            "failures": [str(key) for key, analysis in self.keys.items() if analysis.valid is Verdict.INVALID],
            "unknowns": [str(key) for key, analysis in self.keys.items() if analysis.valid is Verdict.UNKNOWN],
        }


def check_keys(
    model: Model | str,
    operations: Iterable[Operation],
    *,
    algorithm: str = "auto",
    time_limit: float | None = None,
    memory_limit: int | None = None,
    threads: int | None = None,
    certificate: bool = False,
    counterexample: bool = True,
    cross_check: bool = False,
    fail_fast: bool = False,
    cancellation: Cancellation | None = None,
) -> KeyedAnalysis:
    """Decides a history over independent keys; arguments are those of `checker.analysis.analysis`.

    Args:
        model: What each object does.
        operations: The history, with keys.
        algorithm: See `analysis`.
        time_limit: Seconds for all keys together.
        memory_limit: Bytes for all searches together.
        threads: None for all cores.
        certificate: See `analysis`.
        counterexample: Whether to explain invalid keys; only the first few, so that a broken run does not take for ever.
        cross_check: See `analysis`.
        fail_fast: Whether one invalid key is enough; others may end as unknown then.
        cancellation: See `analysis`.
    """
    limits = Limits(
        algorithm=algorithm,
        time_limit_s=time_limit,
        memory_limit=memory_limit,
        threads=threads,
        cancellation=cancellation,
    )
    chosen = model_of(model) if isinstance(model, str) else model
    began = time.perf_counter()
    groups: dict[str | None, list[Operation]] = {}
    total = 0
    for op in operations:
        total += 1
        groups.setdefault(op.key, []).append(op)
    encoded = {key: encode(chosen, group) for key, group in groups.items()}
    outcomes = solve([e.problem for e in encoded.values()], limits, want_order=certificate, fail_fast=fail_fast)
    by_key = dict(zip(encoded, outcomes, strict=True))
    invalid = [key for key, outcome in by_key.items() if outcome["verdict"] == "invalid"]
    first = sorted(invalid, key=lambda key: _failed_at(encoded[key].operations, by_key[key]["op"]))
    explained = set(first[:EXPLAINED]) if counterexample else set()
    analyses = {
        key: conclude(
            chosen, groups[key], encoded[key], outcome, certificate=certificate, counterexample=key in explained
        )
        for key, outcome in by_key.items()
    }
    if cross_check:
        for key, analysis in analyses.items():
            confirm(chosen, groups[key], encoded[key], analysis, limits)
    verdict = worst(analysis.valid for analysis in analyses.values())
    deciding = first[0] if first else next((key for key, a in analyses.items() if a.valid is verdict), None)
    return KeyedAnalysis(
        valid=verdict,
        model=chosen.name,
        operations=total,
        seconds=time.perf_counter() - began,
        keys=analyses,
        worst_key=deciding,
    )


def _failed_at(known: list[Operation], op: int | None) -> int:
    end = None if op is None else known[op].complete_index
    return 2**63 if end is None else end
