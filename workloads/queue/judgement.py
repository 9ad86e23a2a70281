"""The judgement of a queue: the verdict with its reason, the counts, and the first anomalies with explanations."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from checker.formats.columns import FAIL
from checker.judging import MAX_ANOMALIES, Anomaly
from checker.judging.rules import Rule, judged
from checker.values import json_text
from harness.console.documents import shown
from workloads.queue.options import Delivery

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from checker.formats.columns import Columns
    from checker.judging import Judgement
    from harness.op import Value
    from workloads.queue.judge import Facts

MAX_ROWS = 12


def judgement(history: Columns, facts: Facts, delivery: Delivery) -> Judgement:
    """Returns the judgement of a queue with this guarantee of delivery."""
    counts = {
        "attempted": len(facts.flow.put),
        "acknowledged": facts.acknowledged,
        "ok": facts.ok,
        "lost": len(facts.lost),
        "unexpected": len(facts.unexpected),
        "duplicated": len(facts.duplicated),
        "recovered": facts.recovered,
    }
    if facts.compared is not None:
        counts["reordered"] = len(facts.overtaken)
    made = _Anomalies(history, facts)
    rules = [
        Rule(kind="unexpected", anomalies=made.unexpected),
        Rule(kind="lost", anomalies=made.lost, decides=delivery is not Delivery.AT_MOST_ONCE),
        Rule(kind="duplicated", anomalies=made.duplicated, decides=delivery is not Delivery.AT_LEAST_ONCE),
        *([] if facts.compared is None else [Rule(kind="reordered", anomalies=made.reordered)]),
    ]
    numbers = ", ".join(f"{number} {word}" for word, number in counts.items())
    return judged(
        rules,
        counts,
        held=f"The queue kept its guarantees: {numbers}.{_excused(facts)}",
        untested=_unseen(facts, delivery),
        broken=f"The queue violated its guarantees: {numbers}.",
        last={} if delivery is Delivery.AT_MOST_ONCE else made.last(),
        figures=_figures(facts),
    )


def _figures(facts: Facts) -> Mapping[str, Value]:
    """Returns the figures that show how much the judge could decide."""
    flow = facts.flow
    return {
        "drains": len(flow.drains),
        "dequeues_without_answer": len(flow.lost_dequeues),
        "drains_without_answer": len(flow.lost_drains),
        "missing_perhaps_dequeued": facts.perhaps_taken,
        "missing_perhaps_drained": facts.perhaps_drained,
        "missing_not_drained": facts.not_drained,
        "compared_in_order": facts.compared,
    }


def _unseen(facts: Facts, delivery: Delivery) -> str | None:
    """Returns why the verdict is unknown although no anomaly was found; None if it is not unknown."""
    if not facts.acknowledged:
        return "No enqueue was acknowledged, so nothing was tested."
    if not facts.ok:
        return f"{facts.acknowledged} enqueues were acknowledged, but no value came out, so nothing was tested."
    if facts.compared is not None and facts.compared < 2:
        return "There are no two values that were put in once and came out once, so the order was not tested."
    return None if delivery is Delivery.AT_MOST_ONCE else _undecided(facts)


def _undecided(facts: Facts) -> str | None:
    """Returns why it is undecided whether a missing value is lost; None if there is no such value."""
    if facts.not_drained:
        never = "was never drained" if not len(facts.flow.drains) else "was not drained after them"
        return (
            f"{facts.not_drained} of {facts.acknowledged} acknowledged values did not come out, and the queue {never}, "
            "so a loss was not seen."
        )
    if facts.perhaps_drained:
        return (
            f"{facts.perhaps_drained} of {facts.acknowledged} acknowledged values did not come out, and a drain without an "
            "answer may have taken them, so a loss was not seen."
        )
    return None


def _excused(facts: Facts) -> str:
    if not facts.perhaps_taken:
        return ""
    return (
        f" Dequeues without an answer may have taken {facts.perhaps_taken} acknowledged values that did not come out."
    )


class _Anomalies:
    """Makes the anomalies of each kind, lazily."""

    def __init__(self, history: Columns, facts: Facts) -> None:
        self._history = history
        self._found = facts
        self._flow = facts.flow

    def last(self) -> dict[str, Anomaly]:
        """Returns the loss of the value whose enqueue was acknowledged last; nothing if none is lost."""
        lost = self._found.lost
        if not len(lost):
            return {}
        index = int(np.argmax(self._history.end[self._flow.put[lost]]))
        return {"lost": self._losses(slice(index, index + 1))[0]}

    def lost(self) -> Iterator[Anomaly]:
        yield from self._losses(slice(MAX_ANOMALIES))

    def _losses(self, places: slice) -> list[Anomaly]:
        """Returns the losses of some of the values that are lost."""
        facts, flow = self._found, self._flow
        losses = []
        excuse = ""
        if facts.perhaps_taken:
            excuse = (
                f" In all {facts.perhaps_taken + len(facts.lost)} values are missing in this way, and dequeues without an "
                f"answer can have taken {facts.perhaps_taken} of them at most."
            )
        for put, drain in zip(facts.lost[places].tolist(), facts.deciding[places].tolist(), strict=True):
            value, row = flow.value(put), int(flow.put[put])
            explanation = (
                f"The enqueue of {_named(value)} by process {self._process(row)} was acknowledged. Later process "
                f"{self._process(drain)} drained the queue until it was empty. The value never came out.{excuse}"
            )
            losses.append(
                Anomaly(kind="lost", subject=value, explanation=explanation, rows=(row, drain), decisive=drain)
            )
        return losses

    def unexpected(self) -> Iterator[Anomaly]:
        flow, history = self._flow, self._history
        for take in self._found.unexpected.tolist():
            value, row = flow.value(len(flow.put) + take), int(flow.take[take])
            puts = flow.put[np.flatnonzero(flow.put_value == flow.take_value[take])]
            if not len(puts):
                why = "No process put it in."
            elif (history.type[puts] == FAIL).all():
                why = "Its enqueue failed."
            else:
                why = "Its enqueue began only after that."
            explanation = f"{_named(value, 'The')} came out by {self._taking(row)}. {why}"
            rows = (*puts[: MAX_ROWS - 1].tolist(), row)
            yield Anomaly(kind="unexpected", subject=value, explanation=explanation, rows=rows, decisive=row)

    def duplicated(self) -> Iterator[Anomaly]:
        flow, history = self._flow, self._history
        for take in self._found.duplicated.tolist():
            value, row = flow.value(len(flow.put) + take), int(flow.take[take])
            same = np.flatnonzero(flow.put_value == flow.take_value[take])
            puts = flow.put[same][history.type[flow.put[same]] != FAIL]
            takes = flow.take[np.flatnonzero(flow.take_value == flow.take_value[take])]
            others = [int(other) for other in takes[np.argsort(history.end[takes])] if other != row]
            most = "once" if len(puts) == 1 else f"{len(puts)} times"
            # The value can occur twice in the answer of one drain.
            earlier = self._taking(others[0] if others else row)
            explanation = (
                f"{_named(value, 'The')} was put in {most} at most, and came out {len(takes)} times: by {earlier}, and by "
                f"{self._taking(row)}."
            )
            rows = (*puts[:2].tolist(), *others[: MAX_ROWS - 3], row)
            yield Anomaly(kind="duplicated", subject=value, explanation=explanation, rows=rows, decisive=row)

    def reordered(self) -> Iterator[Anomaly]:
        facts, flow = self._found, self._flow
        for late, early in zip(facts.overtaken.tolist(), facts.overtaking.tolist(), strict=True):
            value, other = flow.value(late), flow.value(early)
            puts = int(flow.put[late]), int(flow.put[early])
            takes = self._take_of(late), self._take_of(early)
            explanation = (
                f"Process {self._process(puts[0])} put in {_named(value)} before process {self._process(puts[1])} put in "
                f"{_named(other)}. They came out in the reverse order:  {_named(other)} by {self._taking(takes[1])}, then "
                f"{_named(value)} by {self._taking(takes[0])}."
            )
            rows = tuple(dict.fromkeys((*puts, takes[1], takes[0])))
            yield Anomaly(kind="reordered", subject=value, explanation=explanation, rows=rows, decisive=takes[1])

    def _take_of(self, put: int) -> int:
        return int(self._flow.take[np.flatnonzero(self._flow.take_value == self._flow.put_value[put])[0]])

    def _process(self, row: int) -> int:
        return int(self._history.process[row])

    def _taking(self, row: int) -> str:
        f = self._history.functions[self._history.function[row]]
        return f"a {f} of process {self._process(row)}"


def _named(value: Value, article: str = "the") -> str:
    return f"{article} value {shown(json_text(value), quoted=False)}"
