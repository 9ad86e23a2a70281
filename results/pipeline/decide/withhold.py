"""Verdicts of runs that were not read completely.

The rule: a history with rows in quarantine gets no definite verdict. A missing row may be the write that explains a read, or
the read that nothing explains. The verdict is unknown, and its cause names the first missing row. The verdict on the system's
own order is then unknown too. A row with a known key affects only that key. A row without a known run affects every run of its
source.

A history is also unknown if it is unreadable, if it has no operation, or if no model for it is known: nothing was tested.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from harness.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from results.pipeline.read.documents import Known
    from results.pipeline.read.sources import Seen

    Row = Mapping[str, Any]

NOTHING: Final = "none"
ENGINE: Final = "spark"
_DEFINITE: Final = ("kind", "op_invoke_index", "op_complete_index", "explanation", "counterexample")


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """The rows in quarantine of a run, or of one of its keys.

    Attributes:
        rows: How many there are.
        line: The line of the first one; 0 if it is not known.
        reason: The reason of the first one, with the file and the line.
    """

    rows: int
    line: int
    reason: str

    def __add__(self, other: Lost) -> Lost:
        """Returns both together."""
        first = min(self, other, key=lambda lost: (lost.line, lost.reason))
        return Lost(rows=self.rows + other.rows, line=first.line, reason=first.reason)


def lost_of(quarantine: Iterable[Row], seen: Sequence[Seen]) -> dict[str, dict[str | None, Lost]]:
    """Returns the rows in quarantine by run and by key; those without a known key have the key None.

    Args:
        quarantine: Rows of `schema.QUARANTINE`, of histories only; with `rows` a row stands for so many.
        seen: The runs and their sources.
    """
    by_source: dict[str, list[str]] = {}
    for history in seen:
        by_source.setdefault(history.source.data, []).append(history.run)
    # An unreadable source has its reason already, and its row in quarantine is no row of a history.
    unread = {history.run for history in seen if history.source.trouble is not None}
    by_run: dict[str, dict[str | None, Lost]] = {}
    for row in quarantine:
        if row["run"] in unread:
            continue
        lost = Lost(rows=row.get("rows", 1), line=row["line"] or 0, reason=_located(row))
        runs = by_source.get(row["source"], []) if row["run"] is None else [row["run"]]
        key = None if row["run"] is None else row["key"]
        for run in runs:
            known = by_run.setdefault(run, {})
            known[key] = known[key] + lost if key in known else lost
    return by_run


def _located(row: Row) -> str:
    """Returns the reason of a row in quarantine with the file and the line."""
    reason: str = row["reason"]
    location = row["source"] if row["line"] is None else f"{row['source']}:{row['line']}"
    return reason if reason.startswith(row["source"]) else f"{location}: {reason}"


def withheld(verdicts: Sequence[Row], lost: Mapping[str | None, Lost]) -> Iterator[Row]:
    """Yields the verdicts of a run, where rows in quarantine make a verdict unknown.

    Args:
        verdicts: The rows of `schema.VERDICTS` of the run, of which there is at least one.
        lost: Its rows in quarantine, by key.
    """
    keys = {row["key"] for row in verdicts}
    gone = [key for key in lost if key is not None and key not in keys]
    model = max(row["model"] for row in verdicts)
    run = verdicts[0]["run"]
    for row in verdicts:
        # If a run has only keys without a well-formed row, their rows suffice; a row for the whole run would count it twice.
        if gone and row["engine"] == ENGINE and row["model"] and row["operations"]:
            continue
        yield _doubted(row, lost)
    for key in gone:
        yield _doubted({**_nothing(run, model), "key": key}, lost)


def _doubted(row: Row, lost: Mapping[str | None, Lost]) -> Row:
    its = [lost[key] for key in dict.fromkeys((None, row["key"])) if key in lost]
    if not its:
        return row
    rows = sum(loss.rows for loss in its)
    cause = f"{rows} rows of this history are in quarantine, so it is not whole; the first: {its[0].reason}"
    changed = {**row, **dict.fromkeys(_DEFINITE), "verdict": str(Verdict.UNKNOWN), "cause": cause}
    if row.get("order_agrees") is not None:
        changed |= {"order_agrees": str(Verdict.UNKNOWN), "order_reason": cause}
    return changed


def _nothing(run: str, model: str) -> dict[str, Any]:
    return {
        "run": run,
        "key": None,
        "verdict": str(Verdict.UNKNOWN),
        "model": model,
        "analyzer": NOTHING,
        "engine": ENGINE,
        "cause": None,
        "operations": 0,
    }


def unjudged(seen: Seen, known: Known) -> dict[str, Any]:
    """Returns the unknown verdict of a run that was not judged: unreadable, without operations, or without a model."""
    operations = seen.operations or 0
    return _nothing(seen.run, known.name(seen.run)) | {"cause": _cause(seen, known), "operations": operations}


def _cause(seen: Seen, known: Known) -> str:
    if seen.source.trouble is not None:
        return seen.source.trouble
    if not seen.operations:
        return f"{seen.source.data}: the history holds no operation"
    if known.deciders[seen.run] is None:
        damaged = known.damaged.get(seen.run)
        undecided = known.undecided[seen.run]
        return undecided if damaged is None else f"{undecided}; {damaged}"
    return f"{seen.source.data}: none of the history's {seen.operations} operations can be judged"
