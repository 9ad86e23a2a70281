"""How often the runs of a line are not as expected, night by night: a sequence of trials."""

from __future__ import annotations

from datetime import date, datetime
from typing import TYPE_CHECKING, Any

from harness.suites.expectation import CaseOutcome
from results.causes.cases import night_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def by_nights(rows: Sequence[Mapping[str, Any]]) -> dict[date, tuple[int, int]]:
    """Returns for each night how many runs were not as expected, and how many were decided.

    Known failures count as not as expected. Runs without a time or a decision do not count.
    """
    nights: dict[date, tuple[int, int]] = {}
    for row in rows:
        started = _instant(row["started"])
        if started is None or row["outcome"] in {None, CaseOutcome.UNDECIDED}:
            continue
        night = night_of(started)
        hits, runs = nights.get(night, (0, 0))
        nights[night] = (hits + (row["outcome"] != CaseOutcome.EXPECTED), runs + 1)
    return nights


def _instant(text: str | None) -> datetime | None:
    """Returns the time of a start; None if a table of an earlier night has another text."""
    try:
        return None if text is None else datetime.fromisoformat(text)
    except ValueError:
        return None
