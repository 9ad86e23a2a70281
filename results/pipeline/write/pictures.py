"""Pictures and the page of an analysis: what the job has aggregated, drawn by the report's own plots.

The law: only rows that are bounded by the number of buckets, functions, keys and runs that are shown reach this process, never
operations; `SHOWN_RUNS` and its like say how many. What is left out is said on the page.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from harness.expectation import Outcome
from harness.units import NS_PER_S
from harness.verdict import Verdict
from results.drawing import Picture
from results.pipeline.measure.trends import FIGURES, LINE
from results.rows import Cell, Strip, Trend, TrendRun, short
from results.series import Line, Shade

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.figure import Figure

    from results.pipeline.write.gathered import OfRun

SHOWN_RUNS: Final = 12
SHOWN_LINES: Final = 8
SHOWN_TRENDS: Final = 60
SHOWN_FUNCTIONS: Final = 6
SHOWN_FAULTS: Final = 200
SHOWN_CELLS: Final = 120
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
    """Returns the rows of the runs to show: those with a bad outcome first, then what became worse, then the latest."""
    return sorted(_latest(trends), key=lambda row: (-_severity(row["outcome"]), -len(row["regressions"])))[:limit]


def _severity(outcome: str | None) -> int:
    return (Outcome.UNDECIDED if outcome is None else Outcome(outcome)).severity


def of_runs(rows: Sequence[Mapping[str, Any]], told: Mapping[str, OfRun]) -> list[RunPictures]:
    """Draws rate, latency and keys of some runs.

    Args:
        rows: Their rows of trends.
        told: By run, what `gathered.Gathered` has of it.
    """
    return [
        RunPictures(row=row, pictures=_of_run(f"run-{number}", told.get(row["run"], {})))
        for number, row in enumerate(rows, 1)
    ]


def _of_run(prefix: str, told: Mapping[str, Sequence[Any]]) -> list[Picture]:
    totals = sorted(told.get("totals", ()), key=lambda row: (-(row["ok"] + row["info"] + row["fail"]), row["f"]))
    functions = {row["f"] for row in totals[:SHOWN_FUNCTIONS]}
    rates = [row for row in told.get("rates", ()) if row["f"] in functions]
    if not rates:
        return []
    width_s = rates[0]["width_s"]
    last_s = max(row["time_s"] for row in rates) + width_s
    shades = [
        Shade(
            kind=short(row["kind"], 40),
            start_s=row["start_ns"] / NS_PER_S,
            end_s=last_s if row["end_ns"] is None else row["end_ns"] / NS_PER_S,
            effective=row["effective"] is not False,
        )
        for row in sorted(told.get("faults", ()), key=lambda row: row["start_ns"])[:SHOWN_FAULTS]
    ]
    found = [
        Picture(
            name=f"{prefix}-rate",
            title=f"Operations per second, each {width_s:g} s",
            figure=partial(_rate, _lines(rates, width_s, {None: "operations"}, per=width_s), shades),
        )
    ]
    latencies = [row for row in told.get("latencies", ()) if row["f"] in functions]
    if latencies:
        quantiles: dict[str | None, str] = {name: f"{name}_ms" for name in _QUANTILE_NAMES}
        found.append(
            Picture(
                name=f"{prefix}-latency",
                title=f"Latency quantiles of ok operations, each {width_s:g} s",
                figure=partial(_quantiles, _lines(latencies, width_s, quantiles), shades),
            )
        )
    heat = told.get("heat", ())
    if heat:
        found.append(
            Picture(
                name=f"{prefix}-keys",
                title=f"Operations on keys, each {width_s:g} s",
                figure=partial(_heat, _strips(heat, told.get("verdicts", ()), width_s), width_s),
            )
        )
    return found


def _lines(
    rows: Sequence[Any], width_s: float, names: Mapping[str | None, str], per: float | None = None
) -> list[Line]:
    """Returns a line for each function and name; a rate is zero where there is no row, and a quantile is not there."""
    places = [round(row["time_s"] / width_s) for row in rows]
    first, last = (0 if per else min(places)), max(places)
    time_s = (np.arange(first, last + 1) + 0.5) * width_s
    values: dict[tuple[str, str], Any] = {}
    for row, place in zip(rows, places, strict=True):
        for name, column in names.items():
            line = values.setdefault(
                (row["f"], name or row["type"]), np.full(time_s.size, 0.0 if per else np.nan, np.float64)
            )
            line[place - first] = row[column] / (per or 1)
    return [Line(f=short(f, 40), name=name, time_s=time_s, value=value) for (f, name), value in sorted(values.items())]


def _strips(heat: Sequence[Any], verdicts: Sequence[Any], width_s: float) -> list[Strip]:
    found = {row["key"]: row["verdict"] for row in verdicts}
    cells: dict[str, list[tuple[int, int, int]]] = {}
    for row in heat:
        place = round(row["time_s"] / width_s)
        cells.setdefault(row["key"], []).append((place, row["operations"], row["answered"]))
    severity = {str(verdict): verdict.severity for verdict in Verdict}
    keys = sorted(cells, key=lambda key: (-severity.get(found.get(key) or "", 0), len(key), key))
    return [Strip(name=key, verdict=found.get(key), cells=sorted(cells[key])) for key in keys]


@dataclass(frozen=True, slots=True, kw_only=True)
class LineOfRuns:
    """The runs that are compared with each other.

    Attributes:
        title: What they have in common.
        rows: Their rows of trends, the latest last.
    """

    title: str
    rows: Sequence[Mapping[str, Any]]

    @property
    def latest(self) -> Mapping[str, Any]:
        """Returns the row of the latest run."""
        return self.rows[-1]


def lines_of(trends: Sequence[Mapping[str, Any]]) -> list[LineOfRuns]:
    """Returns all lines, those first whose latest run has a bad outcome, then those where it became worse."""
    lines: dict[tuple[str | None, ...], list[Mapping[str, Any]]] = {}
    for row in trends:
        if row["line"] is not None:
            lines.setdefault(tuple(row[name] for name in LINE), []).append(row)
    found = [LineOfRuns(title=_title(rows[0]), rows=_latest(rows)[::-1]) for rows in lines.values()]
    return sorted(
        found, key=lambda line: (-_severity(line.latest["outcome"]), -len(line.latest["regressions"]), line.title)
    )


def _title(row: Mapping[str, Any]) -> str:
    suite = "" if row["suite"] is None else f"{short(row['suite'], 30)}: "
    return f"{suite}{short(row['line'], 100)} on {short(row['system'] or 'a system', 30)}"


def of_lines(lines: Sequence[LineOfRuns], links: Mapping[str, str]) -> list[Picture]:
    """Draws the latest runs of some lines from left to right; a line of one run has no picture.

    Args:
        lines: The lines.
        links: By run, where its report is.
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
            regressions=[place for place, row in enumerate(rows) if figure in row["regressions"]],
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
    return Picture(name=name, title=f"{line.title}{few}", figure=partial(_trend, runs, figures))


def _latest(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Returns rows of trends, the run that started last first; those that do not say when they started are last."""
    return sorted(sorted(rows, key=itemgetter("run")), key=lambda row: row["started"] or "", reverse=True)


def of_faults(trends: Sequence[Mapping[str, Any]], bore: Sequence[Mapping[str, Any]]) -> list[Picture]:
    """Draws the faults by the workloads that met them; nothing if no run had a workload.

    Args:
        trends: The rows of trends.
        bore: For each run and kind of fault `run`, `kind`, and how many operations were `asked` and `answered` during it.
    """
    kinds: dict[str, list[Mapping[str, Any]]] = {}
    for each in bore:
        kinds.setdefault(each["run"], []).append(each)
    met: dict[tuple[str, str], list[tuple[Mapping[str, Any], Mapping[str, Any]]]] = {}
    for row in trends:
        if row["workload"] is not None:
            for each in kinds.get(row["run"], [{"kind": NO_FAULT, "asked": 0, "answered": 0}]):
                met.setdefault((each["kind"], row["workload"]), []).append((row, each))
    cells = [_cell(*names, met[names]) for names in met]
    if not cells:
        return []
    cells.sort(key=lambda cell: (0 if cell.outcome is None else -_severity(cell.outcome), cell.row, cell.column))
    figure = partial(_matrix, cells[:SHOWN_CELLS])
    return [Picture(name="faults", title="Faults and workloads", figure=figure)]


def _cell(kind: str, workload: str, met: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]]) -> Cell:
    outcomes = [Outcome(row["outcome"]) for row, _ in met if row["outcome"] is not None]
    asked, answered = (sum(each[name] for _, each in met) for name in ("asked", "answered"))
    return Cell(
        row=kind,
        column=workload,
        outcome=max(outcomes, key=lambda outcome: outcome.severity, default=None),
        runs=len(met),
        unexpected=outcomes.count(Outcome.UNEXPECTED),
        availability=answered / asked if asked else None,
    )


# The drawing library is loaded where pictures are drawn, which may be another process.


def _rate(lines: Sequence[Line], shades: Sequence[Shade]) -> Figure:
    from results import plots  # noqa: PLC0415 - slow to import

    return plots.rate(lines, shades)


def _quantiles(lines: Sequence[Line], shades: Sequence[Shade]) -> Figure:
    from results import plots  # noqa: PLC0415 - slow to import

    return plots.latency_quantiles(lines, shades)


def _heat(strips: Sequence[Strip], width_s: float) -> Figure:
    from results import overviews  # noqa: PLC0415 - slow to import

    return overviews.heat(strips, width_s)


def _matrix(cells: Sequence[Cell]) -> Figure:
    from results import overviews  # noqa: PLC0415 - slow to import

    return overviews.matrix(cells)


def _trend(runs: Sequence[TrendRun], figures: Sequence[Trend]) -> Figure:
    from results import overviews  # noqa: PLC0415 - slow to import

    return overviews.trend(runs, figures)
