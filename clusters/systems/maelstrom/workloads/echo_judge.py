"""The judge of the workload echo."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from checker.formats.columns import OK
from checker.judging import Anomaly, value_at
from checker.judging.rules import Rule, judged
from harness.console.documents import shown
from harness.console.plain import counted, counted_of

if TYPE_CHECKING:
    from checker.formats.columns import Columns
    from checker.judging import Judgement

OTHER_VALUE: Final = "other-value"


def judge(history: Columns) -> Judgement:
    """Compares each answer with what was sent."""
    answered = np.flatnonzero(history.type == OK)
    sent, back = history.value.only(answered), history.result.only(answered)
    other = (sent.kind != back.kind) | (sent.first != back.first) | (sent.second != back.second)
    wrong = answered[other]
    return judged(
        [Rule(kind=OTHER_VALUE, anomalies=lambda: (_other(history, row) for row in wrong.tolist()))],
        {"answers": len(answered), OTHER_VALUE: len(wrong)},
        held=f"All {counted(len(answered), 'answer')} are what was sent.",
        untested=None if len(answered) else "No value came back, so nothing was tested.",
        broken=f"{counted_of(len(wrong), len(answered), 'answer')} differ from what was sent.",
    )


def _other(history: Columns, row: int) -> Anomaly:
    sent, back = value_at(history, history.value, row), value_at(history, history.result, row)
    return Anomaly(
        kind=OTHER_VALUE,
        subject=sent,
        explanation=f"Process {history.process[row]} sent {shown(sent)}, and {shown(back)} came back.",
        rows=(row,),
        decisive=row,
    )
