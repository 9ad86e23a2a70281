"""The judge of the workload echo."""

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
    """Compares each answer with what was sent."""
    answered = np.flatnonzero(history.type == OK)
    if not len(answered):
        return Judgement(verdict=Verdict.UNKNOWN, reason="No value came back, so nothing was tested.")
    sent, back = history.value.only(answered), history.result.only(answered)
    other = (sent.kind != back.kind) | (sent.first != back.first) | (sent.second != back.second)
    wrong = answered[other]
    counts = {"answers": len(answered), "wrong": len(wrong)}
    if not len(wrong):
        reason = f"All {counted(len(answered), 'answer')} are what was sent."
        return Judgement(verdict=Verdict.VALID, reason=reason, counts=counts)
    return Judgement(
        verdict=Verdict.INVALID,
        reason=f"{counted_of(len(wrong), len(answered), 'answer')} differ from what was sent.",
        counts=counts,
        anomalies=[_other(history, int(row)) for row in wrong[:MAX_ANOMALIES]],
    )


def _other(history: Columns, row: int) -> Anomaly:
    sent, back = value_at(history, history.value, row), value_at(history, history.result, row)
    return Anomaly(
        kind="other-value",
        subject=sent,
        explanation=f"Process {history.process[row]} sent {shown(sent)}, and {shown(back)} came back.",
        rows=(row,),
        decisive=row,
    )
