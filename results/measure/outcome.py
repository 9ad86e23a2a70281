"""What a run showed, from its document and its parts: the input of `harness.suites.expectation`, which decides the outcome.

The document may come from anyone, so types check the members that are used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from harness.console.members import Whole, read
from harness.outcome import behind, failures
from harness.suites.expectation import Shown
from results.store.errors import BadRecord

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness.op import Value
    from harness.verdict import Part, Verdict


class _Violations(Struct, frozen=True, kw_only=True):
    during_faults: Whole
    after_faults: Whole


class _Limit(Struct, frozen=True, kw_only=True):
    crossed: str | None


def fault_violations(document: Mapping[str, Value]) -> int | None:
    """Returns the number of violations during or after a fault; None if `results.json` does not have it."""
    if "violations" not in document:
        return None
    stored = document["violations"]
    if not stored:
        return 0
    violations = read(stored, _Violations, "violations", error=BadRecord)
    return violations.during_faults + violations.after_faults


def crossed(document: Mapping[str, Value]) -> tuple[str, ...]:
    """Returns a sentence for each threshold that a run crossed."""
    limits = read(document.get("thresholds", []), list[_Limit], "thresholds", error=BadRecord)
    return tuple(limit.crossed for limit in limits if limit.crossed is not None)


def shown(document: Mapping[str, Value], verdict: Verdict, parts: Sequence[Part]) -> Shown:
    """Returns what a run showed.

    Args:
        document: The document of `results.json`.
        verdict: Its verdict.
        parts: Its parts.
    """
    return Shown(
        verdict=verdict,
        failures=failures(parts),
        fault_violations=fault_violations(document),
        crossed=crossed(document),
        behind=behind(parts) is not None,
    )
