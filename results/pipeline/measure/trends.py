"""Trends: compares outcomes, availability and latency of runs with earlier runs, and finds regressions.

A run is compared with earlier runs of the same line: the repetitions of one case of a suite, or the runs of one test outside
suites, on one system. A figure is a regression if it is worse than the median of the last `HISTORY` runs with this figure, by
more than both

- `DEVIATIONS` times their median absolute deviation, scaled to a standard deviation, and
- a smallest step: a tenth of the median for times, one percentage point for availability.

At least `MIN_RUNS` such runs are needed. Medians keep one bad night from hiding the next one. If the control node was behind,
the figures do not measure the system: they are no regressions, and later runs are not compared with them. A verdict is a
regression if it is unexpected and the verdict of the run before was not. Recovery has two sources, the run's own report and the
operations. Each is compared only with figures of the same source.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any, Final

from harness.parts import OF_ANY_RUN
from harness.suites.expectation import CaseOutcome, Expectation, Shown
from harness.verdict import Verdict, worst
from results.pipeline.schema import TRENDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

HISTORY: Final = 10
MIN_RUNS: Final = 3
DEVIATIONS: Final = 4.0
_TO_SIGMA: Final = 1.4826

# What makes two runs comparable.
LINE: Final = ("suite", "line", "system")

# The source of the figure of recovery. `results.json` has the time from healing until the system worked, in `parts.recovered`.
# For runs without it, the figure is the longest time from the end of a fault until operations succeeded steadily.
BY_RUN: Final = "run"
BY_OPERATIONS: Final = "operations"


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """How a figure of a run is compared with that of earlier runs.

    Attributes:
        more_is_worse: Whether a higher figure is worse.
        share: The smallest step, as a share of the median.
        number: The smallest step, in the unit of the figure.
    """

    more_is_worse: bool = True
    share: float = 0.1
    number: float = 0.1

    def is_worse(self, value: float, before: Sequence[float]) -> bool:
        """Returns whether a figure is a regression."""
        middle = median(before)
        spread = median(abs(earlier - middle) for earlier in before) * _TO_SIGMA
        step = max(spread * DEVIATIONS, abs(middle) * self.share, self.number)
        return (value - middle if self.more_is_worse else middle - value) > step


FIGURES: Final[Mapping[str, Figure]] = {
    "availability": Figure(more_is_worse=False, share=0.0, number=0.01),
    "recovery_s": Figure(),
    "p50_ms": Figure(),
    "p99_ms": Figure(),
}


def trends(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Returns a row of `TRENDS` for each run, sorted by line, system and start.

    Args:
        rows: The rows of `figures.figures`, one for each run.
    """
    lines: dict[tuple[str | None, ...], list[dict[str, Any]]] = {}
    for row in rows:
        line = {**row, "line": row["line"] if row["line"] is not None else row["test"]}
        lines.setdefault(tuple(line[name] for name in LINE), []).append(line)
    trended: list[dict[str, Any]] = []
    for names in sorted(lines, key=lambda names: [(name is not None, name or "") for name in names]):
        trended += _of_line(sorted(lines[names], key=lambda row: (row["started"] or "", row["run"])))
    return trended


def _of_line(rows: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yields the rows of the runs of one line, which are sorted by their starts."""
    past = _Past()
    verdicts = {verdict.severity: str(verdict) for verdict in Verdict}
    for row in rows:
        severity = row["severity"]
        outcome = outcome_of(row)
        trend = {
            **row,
            **_recovery(row),
            "verdict": None if severity is None else verdicts[severity],
            "outcome": None if outcome is None else str(outcome),
            "crossed": row["said_crossed"],
            "behind": None if row["said_failures"] is None else row["said_behind"] is not None,
        }
        trend["regressions"] = list(past.worse(trend))
        past.add(trend)
        yield {name: trend[name] for name in TRENDS.names}


def verdict_of(keys: str | None, said: str | None) -> Verdict | None:
    """Returns the verdict of a run: the worse one of its keys' verdict and that in its `results.json`; None without both.

    Args:
        keys: The worst verdict of its keys; None if none was judged.
        said: The verdict in `results.json`; None without one.
    """
    verdicts = [Verdict(verdict) for verdict in (keys, said) if verdict is not None]
    return worst(verdicts) if verdicts else None


def outcome_of(row: Mapping[str, Any]) -> CaseOutcome | None:
    """Returns the outcome of a run, compared with what its suite expects; a run outside suites is expected to be valid.

    None if the run has no verdict.
    """
    keys = next((verdict for verdict in Verdict if verdict.severity == row["severity"]), None)
    verdict = verdict_of(keys, row["said_verdict"])
    if verdict is None:
        return None
    failures = [*(row["said_failures"] or ())]
    if keys is Verdict.INVALID and not any(_is_of_keys(failure) for failure in failures):
        failures.append(f"keys={keys}")  # the run itself did not find it, so no suite can list it as known
    expectation = Expectation(
        verdict=Verdict(row["expects"] or Verdict.VALID),
        during_fault=bool(row["expects_in_fault"]),
        known_failures=frozenset(row["known_failures"] or ()),
        parts=frozenset(row["expects_parts"] or ()),
    )
    return expectation.outcome(
        Shown(
            verdict=verdict,
            failures=failures,
            fault_violations=row["said_fault_violations"],
            crossed=row["said_crossed"] or (),
            behind=row["said_behind"] is not None,
        )
    )


def _is_of_keys(failure: str) -> bool:
    """Returns whether a failure, `name=verdict`, is about the run's operations."""
    name, _, verdict = failure.rpartition("=")
    return name not in OF_ANY_RUN and verdict == Verdict.INVALID


def _recovery(row: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the columns of recovery: from the run's own report, else from its operations."""
    if row["said_recovery_s"] is not None:
        failed = row["said_recovery_error"] is not None
        return {
            "recovery_s": None if failed else row["said_recovery_s"],
            "recovery_from": BY_RUN,
            "restarted": row["said_restarted"],
            "unrecovered": int(failed),
        }
    healed = bool(row["healed"])
    return {
        "recovery_s": row["measured_s"],
        "recovery_from": BY_OPERATIONS if healed else None,
        "restarted": None,
        "unrecovered": row["unseen"] if healed else None,
    }


class _Past:
    """The earlier runs of a line, as far as the rule of this module needs them."""

    def __init__(self) -> None:
        # Recovery from the run's report and recovery from operations are two figures, never compared with each other.
        self._runs: dict[tuple[str, str | None], deque[float | None]] = {}
        self._outcome: str | None = None

    def worse(self, row: Mapping[str, Any]) -> Iterator[str]:
        """Yields the names of the regressions."""
        if row["outcome"] == CaseOutcome.UNEXPECTED and self._outcome not in {None, CaseOutcome.UNEXPECTED}:
            yield "verdict"
        if row["behind"]:
            return
        for name, figure in FIGURES.items():
            before = [value for value in self._runs.get(_source(name, row), ()) if value is not None]
            if row[name] is not None and len(before) >= MIN_RUNS and figure.is_worse(row[name], before):
                yield name

    def add(self, row: Mapping[str, Any]) -> None:
        """Adds a run."""
        self._outcome = row["outcome"]
        if row["behind"]:
            return
        for name in FIGURES:
            self._runs.setdefault(_source(name, row), deque(maxlen=HISTORY)).append(row[name])


def _source(name: str, row: Mapping[str, Any]) -> tuple[str, str | None]:
    return name, row["recovery_from"] if name == "recovery_s" else None
