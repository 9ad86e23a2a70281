"""The pictures of an analysis: aggregates of the job, drawn by the report's own plots.

The rule: the number of buckets, functions, keys and shown runs bounds the rows in this process; operations never reach it.
`SHOWN_RUNS` and the other limits are below. The page shows how much is left out.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from harness.suites.expectation import CaseOutcome
from harness.units import NS_PER_S
from harness.verdict import Verdict
from results.measure.op_outcomes import OUTCOMES
from results.measure.series import Line, Shade
from results.page.drawing import Picture
from results.page.rows import Cell, Strip, Trend, TrendRun, short
from results.pipeline.measure.rates import by_nights
from results.pipeline.measure.trends import FIGURES, LINE
from results.words.bounds import shown_shades
from results.words.rates import change_text, rate_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.figure import Figure

    from results.pipeline.write.gathered import OfRun

SHOWN_RUNS: Final = 12
SHOWN_LINES: Final = 8
SHOWN_TRENDS: Final = 60
SHOWN_FUNCTIONS: Final = 6
SHOWN_CELLS: Final = 120
SHOWN_WORKLOADS: Final = 4  # side by side; a picture more has the next ones
NO_FAULT: Final = "no fault"
_QUANTILE_NAMES: Final = ("p50", "p95", "p99", "max")
_TITLES: Final[Mapping[str, tuple[str, float]]] = {
    "availability": ("answered over the run (%)", 100),
    "recovery_s": ("recovery (s)", 1),
    "p50_ms": ("p50 of the slowest function (ms)", 1),
    "p99_ms": ("p99 of the slowest function (ms)", 1),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPictures:
    """The pictures of one run.

    Attributes:
        row: Its row of trends, by name.
        pictures: The pictures.
    """

    row: Mapping[str, Any]
    pictures: Sequence[Picture]


def chosen(trends: Sequence[Mapping[str, Any]], limit: int = SHOWN_RUNS) -> list[Mapping[str, Any]]:
    """Returns the rows of the runs to show: first those with a bad outcome, then those with regressions, then the latest."""
    return sorted(_latest(trends), key=lambda row: (-_severity(row["outcome"]), -len(row["regressions"])))[:limit]


def needs_pictures(row: Mapping[str, Any], links: Mapping[str, str]) -> bool:
    """Returns whether the page draws a run: one without a report, with a bad outcome, or with a regression.

    The report of any other run has the same plots, and drawing takes longer than the rest of a small analysis.

    Args:
        row: Its row of trends.
        links: The link to the report of each run that has one.
    """
    return row["run"] not in links or _severity(row["outcome"]) > 0 or bool(row["regressions"])


def _severity(outcome: str | None) -> int:
    return (CaseOutcome.UNDECIDED if outcome is None else CaseOutcome(outcome)).severity


def of_runs(rows: Sequence[Mapping[str, Any]], tables: Mapping[str, OfRun]) -> list[RunPictures]:
    """Draws rate, latency and keys of some runs.

    Args:
        rows: Their rows of trends.
        tables: By run, its tables of `gathered.Gathered`.
    """
    return [
        RunPictures(row=row, pictures=_of_run(f"run-{number}", tables.get(row["run"], {})))
        for number, row in enumerate(rows, 1)
    ]


def _of_run(prefix: str, tables: Mapping[str, Sequence[Any]]) -> list[Picture]:
    totals = sorted(tables.get("totals", ()), key=lambda row: (-sum(row[outcome] for outcome in OUTCOMES), row["f"]))
    functions = {row["f"] for row in totals[:SHOWN_FUNCTIONS]}
    rates = [row for row in tables.get("rates", ()) if row["f"] in functions]
    if not rates:
        return []
    width_s = rates[0]["width_s"]
    last_s = max(row["time_s"] for row in rates) + width_s
    shades, of_faults = shown_shades(
        [
            Shade(
                kind=short(row["kind"], 40),
                start_s=row["start_ns"] / NS_PER_S,
                end_s=last_s if row["end_ns"] is None else row["end_ns"] / NS_PER_S,
                effective=row["effective"] is not False,
            )
            for row in tables.get("faults", ())
        ]
    )
    pictures = [
        Picture(
            name=f"{prefix}-rate",
            title=f"Operations per second, each {width_s:g} s{of_faults}",
            figure=partial(_figure, "plots:rate", _lines(rates, width_s, {None: "operations"}, per=width_s), shades),
        )
    ]
    latencies = [row for row in tables.get("latencies", ()) if row["f"] in functions]
    if latencies:
        quantiles: dict[str | None, str] = {name: f"{name}_ms" for name in _QUANTILE_NAMES}
        pictures.append(
            Picture(
                name=f"{prefix}-latency",
                title=f"Latency quantiles of ok operations, each {width_s:g} s{of_faults}",
                figure=partial(_figure, "plots:latency_quantiles", _lines(latencies, width_s, quantiles), shades),
            )
        )
    heat = tables.get("heat", ())
    if heat:
        pictures.append(
            Picture(
                name=f"{prefix}-keys",
                title=f"Operations on keys, each {width_s:g} s",
                figure=partial(_figure, "overviews:heat", _strips(heat, tables.get("verdicts", ()), width_s), width_s),
            )
        )
    return pictures


def _lines(
    rows: Sequence[Any], width_s: float, names: Mapping[str | None, str], per: float | None = None
) -> list[Line]:
    """Returns a line for each function and name; without a row, a rate is zero and a quantile is missing."""
    places = [round(row["time_s"] / width_s) for row in rows]
    first, last = (0 if per else min(places)), max(places)
    time_s = (np.arange(first, last + 1) + 0.5) * width_s
    values: dict[tuple[str, str], Any] = {}
    for row, number in zip(rows, places, strict=True):
        for name, column in names.items():
            line = values.setdefault(
                (row["f"], name or row["type"]), np.full(time_s.size, 0.0 if per else np.nan, np.float64)
            )
            line[number - first] = row[column] / (per or 1)
    return [Line(f=short(f, 40), name=name, time_s=time_s, value=value) for (f, name), value in sorted(values.items())]


def _strips(heat: Sequence[Any], verdicts: Sequence[Any], width_s: float) -> list[Strip]:
    verdict_of = {row["key"]: row["verdict"] for row in verdicts}
    cells: dict[str, list[tuple[int, int, int]]] = {}
    for row in heat:
        bucket = round(row["time_s"] / width_s)
        cells.setdefault(row["key"], []).append((bucket, row["operations"], row["answered"]))
    severity = {str(verdict): verdict.severity for verdict in Verdict}
    keys = sorted(cells, key=lambda key: (-severity.get(verdict_of.get(key) or "", 0), len(key), key))
    return [Strip(name=key, verdict=verdict_of.get(key), cells=sorted(cells[key])) for key in keys]


@dataclass(frozen=True, slots=True, kw_only=True)
class LineOfRuns:
    """A line of runs, which are compared with each other.

    Attributes:
        title: Their suite and case, or their test, and their system.
        rows: Their rows of trends, the latest last.
        rate: How many of all runs of the line were not as expected, with the confidence interval.
        change: Since which night the rate has changed; empty if it has not.
    """

    title: str
    rows: Sequence[Mapping[str, Any]]
    rate: str = ""
    change: str = ""

    @property
    def latest(self) -> Mapping[str, Any]:
        """Returns the row of the latest run."""
        return self.rows[-1]


def lines_of(trends: Sequence[Mapping[str, Any]]) -> list[LineOfRuns]:
    """Returns all lines: first those whose latest run has a bad outcome, then those whose latest run has regressions."""
    lines: dict[tuple[str | None, ...], list[Mapping[str, Any]]] = {}
    for row in trends:
        if row["line"] is not None:
            lines.setdefault(tuple(row[name] for name in LINE), []).append(row)
    all_lines = [_line(rows) for rows in lines.values()]
    return sorted(
        all_lines, key=lambda line: (-_severity(line.latest["outcome"]), -len(line.latest["regressions"]), line.title)
    )


def _line(rows: Sequence[Mapping[str, Any]]) -> LineOfRuns:
    nights = by_nights(rows)
    hits, runs = sum(hits for hits, _ in nights.values()), sum(runs for _, runs in nights.values())
    return LineOfRuns(
        title=_title(rows[0]),
        rows=_latest(rows)[::-1],
        rate=rate_text(hits, runs) if runs else "",
        change=change_text(nights),
    )


def _title(row: Mapping[str, Any]) -> str:
    suite = "" if row["suite"] is None else f"{short(row['suite'], 30)}: "
    return f"{suite}{short(row['line'], 100)} on {short(row['system'] or 'a system', 30)}"


def of_lines(lines: Sequence[LineOfRuns], links: Mapping[str, str]) -> list[Picture]:
    """Draws the latest runs of some lines from left to right; a line with one run has no picture.

    Args:
        lines: The lines.
        links: The link to the report of each run.
    """
    several = [line for line in lines if len(line.rows) > 1][:SHOWN_LINES]
    return [_of_line(f"trend-{number}", line, links) for number, line in enumerate(several, 1)]


def _of_line(name: str, line: LineOfRuns, links: Mapping[str, str]) -> Picture:
    rows = line.rows[-SHOWN_TRENDS:]
    few = f", the latest {SHOWN_TRENDS} of {len(line.rows):,} runs" if len(line.rows) > SHOWN_TRENDS else ""
    figures = [
        Trend(
            title=title,
            values=[None if row[figure] is None else row[figure] * factor for row in rows],
            regressions=[index for index, row in enumerate(rows) if figure in row["regressions"]],
        )
        for figure, (title, factor) in _TITLES.items()
        if figure in FIGURES and any(row[figure] is not None for row in rows)
    ]
    runs = [
        TrendRun(
            outcome=row["outcome"],
            label=f"{row['day'] or ''} {row['system_version'] or ''}".strip(),
            link=links.get(row["run"]),
            marked="verdict" in row["regressions"],
        )
        for row in rows
    ]
    return Picture(name=name, title=f"{line.title}{few}", figure=partial(_figure, "overviews:trend", runs, figures))


def _latest(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Returns rows of trends, the latest start first; runs without a start are last."""
    return sorted(sorted(rows, key=itemgetter("run")), key=lambda row: row["started"] or "", reverse=True)


def of_faults(trends: Sequence[Mapping[str, Any]], by_kind: Sequence[Mapping[str, Any]]) -> list[Picture]:
    """Draws a matrix of kinds of faults and workloads; nothing if no run has a workload.

    Args:
        trends: The rows of trends.
        by_kind: The `kinds` of `gathered.Gathered`.
    """
    kinds: dict[str, list[Mapping[str, Any]]] = {}
    for fault in by_kind:
        kinds.setdefault(fault["run"], []).append(fault)
    by_cell: dict[tuple[str, str], list[tuple[Mapping[str, Any], Mapping[str, Any]]]] = {}
    for row in trends:
        if row["workload"] is not None:
            for fault in kinds.get(row["run"], [{"kind": NO_FAULT, "asked": 0, "answered": 0}]):
                by_cell.setdefault((fault["kind"], row["workload"]), []).append((row, fault))
    cells = [_cell(*names, by_cell[names]) for names in by_cell]
    cells.sort(key=lambda cell: (-_severity(next(iter(cell.outcomes))), cell.row, cell.column))
    shown = cells[:SHOWN_CELLS]
    few = f", the worst {SHOWN_CELLS} of {len(cells):,} cells" if len(cells) > SHOWN_CELLS else ""
    workloads = sorted({cell.column for cell in shown})
    return [
        Picture(
            name=f"faults-{first // SHOWN_WORKLOADS + 1}" if first else "faults",
            title=f"Faults and workloads{few}",
            figure=partial(
                _figure,
                "overviews:matrix",
                [cell for cell in shown if cell.column in workloads[first : first + SHOWN_WORKLOADS]],
            ),
        )
        for first in range(0, len(workloads), SHOWN_WORKLOADS)
    ]


def _cell(kind: str, workload: str, pairs: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]]) -> Cell:
    outcomes = Counter(row["outcome"] for row, _ in pairs)
    asked, answered = (sum(fault[name] for _, fault in pairs) for name in ("asked", "answered"))
    return Cell(
        row=kind,
        column=workload,
        outcomes=dict(sorted(outcomes.items(), key=lambda item: (-_severity(item[0]), item[0] is None, item[0]))),
        availability=answered / asked if asked else None,
    )


def _figure(function: str, *arguments: object) -> Figure:
    """Draws a figure by a function of `results`, given as `module:name`.

    The drawing library is slow to load. So its functions have names here, and only the process that draws loads them.
    """
    module, _, name = function.partition(":")
    figure: Figure = getattr(import_module(f"results.page.{module}"), name)(*arguments)
    return figure
