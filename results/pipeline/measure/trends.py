"""Runs beside the runs before them: verdicts, availability and latency by day, system version and test, and what became worse.

The rule, which is applied to each run and the runs of the same test and system that started before it: a figure is a regression
if it is worse than the median of the last `HISTORY` runs that have it by more than `DEVIATIONS` times their median absolute
deviation (scaled to a standard deviation) and by more than a least step, which is a tenth of the median for times and one
percent point for availability. It takes at least `LEAST_RUNS` such runs. A verdict is a regression if it is invalid and the
last one was not. Recovery as runs report it is compared with such alone, and so is that which operations show. Medians are used
so that one bad night does not hide the next.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import types as t

from harness.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

HISTORY: Final = 10
LEAST_RUNS: Final = 3
DEVIATIONS: Final = 4.0
_TO_SIGMA: Final = 1.4826

# Where the figure of recovery is from. A run says in results.json how long its system took after everything was healed, in
# `parts.recovered`. Of other runs it is the longest time from the end of a fault until operations succeeded steadily.
BY_RUN: Final = "run"
BY_OPERATIONS: Final = "operations"

TRENDS: Final = t.StructType(
    [
        t.StructField("run", t.StringType(), nullable=False),
        t.StructField("day", t.StringType()),
        t.StructField("started", t.StringType()),
        t.StructField("test", t.StringType()),
        t.StructField("system", t.StringType()),
        t.StructField("system_version", t.StringType()),
        t.StructField("workload", t.StringType()),
        t.StructField("faults", t.StringType()),
        t.StructField("verdict", t.StringType()),  # the worst of the run's keys; null if none was judged
        t.StructField("keys", t.LongType()),
        t.StructField("operations", t.LongType()),
        t.StructField("availability", t.DoubleType()),  # the share answered over the run, 0 to 1
        t.StructField("recovery_s", t.DoubleType()),  # null if the system did not recover, or nothing is known of it
        t.StructField("recovery_from", t.StringType()),  # `BY_RUN` or `BY_OPERATIONS`; null: nothing is known of it
        t.StructField(
            "restarted", t.BooleanType()
        ),  # whether the run had to restart every node; null if it does not say
        t.StructField("unrecovered", t.LongType()),  # how often no recovery was seen
        t.StructField("p50_ms", t.DoubleType()),  # the greatest of the run's functions
        t.StructField("p99_ms", t.DoubleType()),
        t.StructField("regressions", t.ArrayType(t.StringType())),  # names of the figures above that became worse
    ]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """How a figure of a run is compared with those of the runs before.

    Attributes:
        more_is_worse: Whether a greater one is a worse one.
        share: The least step, as a share of the median.
        number: The least step, as a number.
    """

    more_is_worse: bool = True
    share: float = 0.1
    number: float = 0.1

    def is_worse(self, value: float, before: Sequence[float]) -> bool:
        """Says whether a figure is a regression."""
        middle = median(before)
        spread = median(abs(each - middle) for each in before) * _TO_SIGMA
        step = max(spread * DEVIATIONS, abs(middle) * self.share, self.number)
        return (value - middle if self.more_is_worse else middle - value) > step


FIGURES: Final[Mapping[str, Figure]] = {
    "availability": Figure(more_is_worse=False, share=0.0, number=0.01),
    "recovery_s": Figure(),
    "p50_ms": Figure(),
    "p99_ms": Figure(),
}


def trends(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Returns a row of `TRENDS` for each run, in the order of tests, systems and starts.

    Args:
        rows: For each run what `figures.figures` returns.
    """
    of_tests: dict[tuple[str | None, str | None], list[Mapping[str, Any]]] = {}
    for row in rows:
        of_tests.setdefault((row["test"], row["system"]), []).append(row)
    found: list[dict[str, Any]] = []
    for test in sorted(of_tests, key=lambda names: [(name is not None, name or "") for name in names]):
        found += _of_test(sorted(of_tests[test], key=lambda row: (row["started"] or "", row["run"])))
    return found


def _of_test(rows: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yields the rows of the runs of one test on one system, which come in the order of their starts."""
    past = _Past()
    verdicts = {verdict.severity: str(verdict) for verdict in Verdict}
    for row in rows:
        told = {**row, **_recovery(row)}
        severity = row["severity"]
        regressions = list(past.worse(told, severity))
        past.add(told, severity)
        told |= {"verdict": None if severity is None else verdicts[severity], "regressions": regressions}
        yield {name: told[name] for name in TRENDS.names}


def _recovery(row: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the columns of recovery: as the run says it, else as its operations show it."""
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
    """The runs before one, as far as the rule of this module looks at them."""

    def __init__(self) -> None:
        # A recovery that the run says and one that its operations show are two figures, and not compared.
        self._runs: dict[tuple[str, str | None], deque[float | None]] = {}
        self._severity: int | None = None

    def worse(self, row: Mapping[str, Any], severity: int | None) -> Iterator[str]:
        """Yields the names of what became worse."""
        invalid = Verdict.INVALID.severity
        if severity == invalid and self._severity is not None and self._severity < invalid:
            yield "verdict"
        for name, figure in FIGURES.items():
            before = [value for value in self._runs.get(_alike(name, row), ()) if value is not None]
            if row[name] is not None and len(before) >= LEAST_RUNS and figure.is_worse(row[name], before):
                yield name

    def add(self, row: Mapping[str, Any], severity: int | None) -> None:
        """Takes a run."""
        for name in FIGURES:
            self._runs.setdefault(_alike(name, row), deque(maxlen=HISTORY)).append(row[name])
        self._severity = severity


def _alike(name: str, row: Mapping[str, Any]) -> tuple[str, str | None]:
    return name, row["recovery_from"] if name == "recovery_s" else None
