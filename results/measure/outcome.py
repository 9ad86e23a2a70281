"""What a run showed, from its document and its parts: the input of `harness.suites.expectation`, which decides the outcome.

The document may come from anyone, so `results.store.members` checks each member. Documents of earlier versions have no
thresholds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.outcome import behind, failures
from harness.suites.expectation import Shown
from results.store import members as must

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness.op import Value
    from harness.verdict import Part, Verdict


def fault_violations(document: Mapping[str, Value]) -> int | None:
    """Returns the number of violations during or after a fault; None if `results.json` does not have it."""
    if "violations" not in document:
        return None
    found = document["violations"]
    if not found:
        return 0
    members = must.mapping(found, "violations")
    names = ("during_faults", "after_faults")
    return sum(must.whole(must.member(members, name), f"violations.{name}") for name in names)


def crossed(document: Mapping[str, Value]) -> tuple[str, ...]:
    """Returns a sentence for each threshold that a run crossed."""
    rows = must.listed(document.get("thresholds", []), "thresholds")
    said = (must.member(must.mapping(row, "thresholds"), "crossed") for row in rows)
    return tuple(must.text(each, "thresholds.crossed") for each in said if each is not None)


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
