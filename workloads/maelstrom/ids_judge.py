"""The judge of the workload unique-ids."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from checker.formats.columns import OK
from checker.judging import MAX_ANOMALIES, Anomaly, Judgement, value_at
from harness.console.documents import shown
from harness.console.plain import counted, counted_of
from harness.verdict import Verdict

if TYPE_CHECKING:
    from checker.formats.columns import Columns


def judge(history: Columns) -> Judgement:
    """Looks for an identifier that was given twice."""
    answered = np.flatnonzero(history.type == OK)
    if not len(answered):
        return Judgement(verdict=Verdict.UNKNOWN, reason="No client got an identifier, so nothing was tested.")
    found = history.result.only(answered)
    order = np.lexsort((found.second, found.first, found.kind))
    kind, first, second = found.kind[order], found.first[order], found.second[order]
    again = np.flatnonzero((kind[1:] == kind[:-1]) & (first[1:] == first[:-1]) & (second[1:] == second[:-1]))
    counts = {"given": len(answered), "given-twice": len(again)}
    if not len(again):
        reason = f"All {counted(len(answered), 'identifier')} differ."
        return Judgement(verdict=Verdict.VALID, reason=reason, counts=counts)
    pairs = [(int(answered[order[place]]), int(answered[order[place + 1]])) for place in again[:MAX_ANOMALIES]]
    return Judgement(
        verdict=Verdict.INVALID,
        reason=f"{counted_of(len(again), len(answered), 'identifier')} had been given before.",
        counts=counts,
        anomalies=[_twice(history, one, other) for one, other in pairs],
    )


def _twice(history: Columns, one: int, other: int) -> Anomaly:
    identifier = value_at(history, history.result, one)
    first, last = sorted((one, other), key=lambda row: int(history.end[row]))
    return Anomaly(
        kind="given-twice",
        subject=identifier,
        explanation=(
            f"Process {history.process[first]} and then process {history.process[last]} got the identifier {shown(identifier)}."
        ),
        rows=(first, last),
        decisive=last,
    )
