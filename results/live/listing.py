"""The rows of the page of a store: which runs match, in which order, and which of them are on this page of the list."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from harness.errors import InputError
from harness.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from results.store.store import RunSummary

PAGE = 100
_PAGE_NUMBER = re.compile(r"[0-9]{1,9}")
_ORDERS = {
    "time": lambda row: (row.run.stamp, row.run.test_name),
    "test": lambda row: (row.run.test_name, row.run.stamp),
    "verdict": lambda row: (2.5 if row.shown is None else 3 - row.shown.alone.severity, row.run.stamp),
}


def listed(summaries: Sequence[RunSummary], query: Mapping[str, str]) -> dict[str, Any]:
    """Returns the values of the page for its template.

    Args:
        summaries: All runs, newest first.
        query: The fields of the address: `q` has words, `sort` an order, `up` is 1 for the reverse, `page` is from 0.

    Raises:
        InputError: `page` is no number.
    """
    words = query.get("q", "").lower().split()
    order = query.get("sort", "time")
    rows = [row for row in summaries if _matches(row, words)]
    if order in _ORDERS and order != "time":
        rows.sort(key=_ORDERS[order])
    if query.get("up") == "1":
        rows.reverse()
    if not _PAGE_NUMBER.fullmatch(query.get("page", "0")):
        raise InputError("expected the number of a page, from 0")
    page = int(query.get("page", "0"))
    return {
        "rows": rows[page * PAGE : (page + 1) * PAGE],
        "total": len(rows),
        "page": page,
        "pages": -(-len(rows) // PAGE),
        "order": order if order in _ORDERS else "time",
        "up": query.get("up") == "1",
    }


def _matches(row: RunSummary, words: Sequence[str]) -> bool:
    verdict = Verdict.from_json(row.valid) or ("running" if row.running else "none")
    text = " ".join(
        [row.run.test_name, row.run.stamp, row.reason, row.seed or "", row.reproduce or "", *row.faults, *row.crossed]
        + ([] if row.shown is None else [row.shown.words])
    ).lower()
    return all(word == verdict or (word in text and word not in {"valid", "invalid"}) for word in words)
