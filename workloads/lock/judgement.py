"""The judgement of a lock: the verdict with its reason, the counts, and the first anomalies with explanations."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from checker.judging import Anomaly, value_at
from checker.judging.rules import Rule, judged
from harness.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Iterator

    from checker.formats.columns import Columns
    from checker.judging import Judgement
    from workloads.lock.judge import Facts, Pairs


def judgement(history: Columns, facts: Facts) -> Judgement:
    """Returns the judgement of a lock."""
    counts = {
        "acquired": facts.acquired,
        "released": facts.released,
        "contended": facts.contended,
        "two-holders": len(facts.two_holders.rows),
        "token-not-growing": len(facts.not_growing.rows),
        "token-twice": len(facts.twice.rows),
        "released-by-other": len(facts.by_other.rows),
    }
    if facts.writes is not None:
        counts["written"], counts["refused-writes"] = facts.writes.taken, facts.writes.refused
        counts["late-write"] = len(facts.writes.late.rows)
    made = _Anomalies(history, facts)
    rules = [
        Rule(kind="two-holders", anomalies=made.two_holders),
        Rule(kind="token-not-growing", anomalies=made.not_growing),
        Rule(kind="token-twice", anomalies=made.twice),
        Rule(kind="released-by-other", anomalies=made.by_other),
        *([] if facts.writes is None else [Rule(kind="late-write", anomalies=made.late)]),
    ]
    numbers = ", ".join(f"{number} {word}" for word, number in counts.items())
    return judged(
        rules,
        counts,
        held=f"No two processes held the lock at a time: {numbers}.",
        untested=_untested(facts),
        broken=f"The lock violated its guarantees: {numbers}.",
        figures={"tokens": facts.tokens},
    )


def _untested(facts: Facts) -> str | None:
    """Returns what was not tested; None if all was."""
    if not facts.acquired:
        return "No acquire succeeded, so nothing was tested."
    if not facts.contended:
        return "No process requested the lock while another one certainly held it, so nothing was tested."
    if facts.writes is not None and not facts.writes.taken:
        return "The resource took no write, so nothing was tested."
    return None


class _Anomalies:
    """Makes the anomalies of each kind, lazily."""

    def __init__(self, history: Columns, facts: Facts) -> None:
        self._history = history
        self._found = facts

    def two_holders(self) -> Iterator[Anomaly]:
        for row, other in _each(self._found.two_holders):
            following = self._following(other)
            until = "did not release it"
            if following is not None:
                f = self._history.functions[self._history.function[following]]
                until = f"began its {f} at {_seconds(self._history.start_ns[following])}"
            explanation = (
                f"{self._process(other, 'Process')} acquired the lock by {_seconds(self._history.end_ns[other])} and {until}. "
                f"{self._process(row, 'Process')} acquired it by {_seconds(self._history.end_ns[row])}, "
                "while the other one held it."
            )
            rows = (other, row) if following is None else (other, row, following)
            yield Anomaly(
                kind="two-holders",
                subject=int(self._history.process[row]),
                explanation=explanation,
                rows=rows,
                decisive=row,
            )

    def not_growing(self) -> Iterator[Anomaly]:
        for row, other in _each(self._found.not_growing):
            explanation = (
                f"{self._process(row, 'Process')} got the token {self._token(row)} by an acquire that began after "
                f"{self._process(other)} had got the greater token {self._token(other)}."
            )
            yield self._of_token("token-not-growing", row, other, explanation)

    def twice(self) -> Iterator[Anomaly]:
        for row, other in _each(self._found.twice):
            explanation = (
                f"{self._process(row, 'Process')} and {self._process(other)} got the same token {self._token(row)} by two "
                "acquires."
            )
            yield self._of_token("token-twice", row, other, explanation)

    def by_other(self) -> Iterator[Anomaly]:
        for row, _ in _each(self._found.by_other):
            explanation = (
                f"{self._process(row, 'Process')} released the lock with success, but had acquired nothing that it had not "
                "released before."
            )
            yield Anomaly(
                kind="released-by-other",
                subject=int(self._history.process[row]),
                explanation=explanation,
                rows=(row,),
                decisive=row,
            )

    def late(self) -> Iterator[Anomaly]:
        writes = self._found.writes
        if writes is None:
            return
        history = self._history
        for row, other in _each(writes.late):
            hold, later = int(writes.hold[row]), int(writes.hold[other])
            explanation = (
                f"{self._process(row, 'Process')} acquired the lock by {_seconds(history.end_ns[hold])}, and "
                f"{self._process(other)} acquired it by {_seconds(history.end_ns[later])}. The resource took a write of the "
                f"later holder at {_seconds(history.start_ns[other])}, and then one of the earlier holder at "
                f"{_seconds(history.start_ns[row])}."
            )
            yield Anomaly(
                kind="late-write",
                subject=int(history.process[row]),
                explanation=explanation,
                rows=(hold, later, other, row),
                decisive=row,
            )

    def _of_token(self, kind: str, row: int, other: int, explanation: str) -> Anomaly:
        token = value_at(self._history, self._history.result, row)
        return Anomaly(kind=kind, subject=token, explanation=explanation, rows=(other, row), decisive=row)

    def _process(self, row: int, word: str = "process") -> str:
        return f"{word} {int(self._history.process[row])}"

    def _token(self, row: int) -> str:
        return f"{value_at(self._history, self._history.result, row)}"

    def _following(self, row: int) -> int | None:
        """Returns the row of the next operation of the same process."""
        history = self._history
        later = np.flatnonzero((history.process == history.process[row]) & (history.start > history.start[row]))
        return int(later[0]) if len(later) else None


def _each(pairs: Pairs) -> Iterator[tuple[int, int]]:
    return zip(pairs.rows.tolist(), pairs.others.tolist(), strict=True)


def _seconds(time_ns: int) -> str:
    return f"{time_ns / NS_PER_S:.6f} s"
