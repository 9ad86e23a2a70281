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
        if row["started"] is None or row["outcome"] in {None, CaseOutcome.UNDECIDED}:
            continue
        night = night_of(datetime.fromisoformat(row["started"]))
        hits, runs = nights.get(night, (0, 0))
        nights[night] = (hits + (row["outcome"] != CaseOutcome.EXPECTED), runs + 1)
    return nights
