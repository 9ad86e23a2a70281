"""The judge of the workload unique-ids."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from checker.formats.columns import OK
from checker.judging import Anomaly, value_at
from checker.judging.rules import Rule, judged
from harness.console.documents import shown
from harness.console.plain import counted, counted_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from checker.formats.columns import Columns
    from checker.judging import Judgement

GIVEN_TWICE: Final = "given-twice"


def judge(history: Columns) -> Judgement:
    """Looks for an identifier that was given twice."""
    answered = np.flatnonzero(history.type == OK)
    answers = history.result.only(answered)
    order = np.lexsort((answers.second, answers.first, answers.kind))
    kind, first, second = answers.kind[order], answers.first[order], answers.second[order]
    again = np.flatnonzero((kind[1:] == kind[:-1]) & (first[1:] == first[:-1]) & (second[1:] == second[:-1]))

    def anomalies() -> Iterator[Anomaly]:
        for index in again.tolist():
            yield _twice(history, int(answered[order[index]]), int(answered[order[index + 1]]))

    return judged(
        [Rule(kind=GIVEN_TWICE, anomalies=anomalies)],
        {"given": len(answered), GIVEN_TWICE: len(again)},
        held=f"All {counted(len(answered), 'identifier')} differ.",
        untested=None if len(answered) else "No client got an identifier, so nothing was tested.",
        broken=f"{counted_of(len(again), len(answered), 'identifier')} had been given before.",
    )


def _twice(history: Columns, one: int, other: int) -> Anomaly:
    identifier = value_at(history, history.result, one)
    first, last = sorted((one, other), key=lambda row: int(history.end[row]))
    return Anomaly(
        kind=GIVEN_TWICE,
        subject=identifier,
        explanation=(
            f"Process {history.process[first]} and then process {history.process[last]} got the identifier {shown(identifier)}."
        ),
        rows=(first, last),
        decisive=last,
    )
