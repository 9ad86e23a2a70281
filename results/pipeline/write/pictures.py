"""Pictures and the page of an analysis: what the job has aggregated, drawn by the report's own plots.

The law: only rows that are bounded by the number of buckets, functions, keys and runs that are shown reach this process, never
operations; `SHOWN_RUNS` and its like say how many. What is left out is said on the page.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from harness.units import NS_PER_S
from harness.verdict import Verdict, worst
from results import overviews, plots
from results.pipeline.measure.trends import FIGURES
from results.series import Line, Shade

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.figure import Figure

    from results.pipeline.write.gathered import OfRun

SHOWN_RUNS: Final = 12
SHOWN_TESTS: Final = 8
SHOWN_TRENDS: Final = 60
SHOWN_FUNCTIONS: Final = 6
SHOWN_FAULTS: Final = 200
SHOWN_CELLS: Final = 120
NO_FAULT: Final = "no fault"
_QUANTILES: Final = ("p50", "p95", "p99", "max")
_TITLES: Final[Mapping[str, tuple[str, float]]] = {
    "availability": ("answered over the run (%)", 100),
    "recovery_s": ("recovery (s)", 1),
    "p50_ms": ("p50 of the slowest function (ms)", 1),
    "p99_ms": ("p99 of the slowest function (ms)", 1),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """A picture.

    Attributes:
        name: Its file's name without an ending.
        title: What it shows.
        figure: The drawing.
    """

    name: str
    title: str
    figure: Figure


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
    """Returns the rows of the runs to show: those with a bad verdict first, then what became worse, then the latest."""
    return sorted(_latest(trends), key=lambda row: (-_severity(row["verdict"]), -len(row["regressions"])))[:limit]


def _severity(verdict: str | None) -> int:
    return (Verdict.UNKNOWN if verdict is None else Verdict(verdict)).severity


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
            kind=overviews.short(row["kind"], 40),
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
            figure=plots.rate(_lines(rates, width_s, {None: "operations"}, per=width_s), shades),
        )
    ]
    latencies = [row for row in told.get("latencies", ()) if row["f"] in functions]
    if latencies:
        quantiles: dict[str | None, str] = {name: f"{name}_ms" for name in _QUANTILES}
        found.append(
            Picture(
                name=f"{prefix}-latency",
                title=f"Latency quantiles of ok operations, each {width_s:g} s",
                figure=plots.latency_quantiles(_lines(latencies, width_s, quantiles), shades),
            )
        )
    heat = told.get("heat", ())
    if heat:
        found.append(
            Picture(
                name=f"{prefix}-keys",
                title=f"Operations on keys, each {width_s:g} s",
                figure=overviews.heat(_strips(heat, told.get("verdicts", ()), width_s), width_s),
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
    return [
        Line(f=overviews.short(f, 40), name=name, time_s=time_s, value=value)
        for (f, name), value in sorted(values.items())
    ]


def _strips(heat: Sequence[Any], verdicts: Sequence[Any], width_s: float) -> list[overviews.Strip]:
    found = {row["key"]: row["verdict"] for row in verdicts}
    cells: dict[str, list[tuple[int, int, int]]] = {}
    for row in heat:
        place = round(row["time_s"] / width_s)
        cells.setdefault(row["key"], []).append((place, row["operations"], row["answered"]))
    severity = {str(verdict): verdict.severity for verdict in Verdict}
    keys = sorted(cells, key=lambda key: (-severity.get(found.get(key) or "", 0), len(key), key))
    return [overviews.Strip(name=key, verdict=found.get(key), cells=sorted(cells[key])) for key in keys]


def of_tests(trends: Sequence[Mapping[str, Any]]) -> list[Picture]:
    """Draws the latest runs of the tests that have the most, from left to right."""
    tests: dict[tuple[str, str | None], list[Mapping[str, Any]]] = {}
    for row in trends:
        if row["test"] is not None:
            tests.setdefault((row["test"], row["system"]), []).append(row)
    several = [test for test, rows in tests.items() if len(rows) > 1]
    several.sort(key=lambda test: (-len(tests[test]), test[0], test[1] or ""))
    pictures = []
    for number, (test, system) in enumerate(several[:SHOWN_TESTS], 1):
        rows = _latest(tests[test, system])[:SHOWN_TRENDS][::-1]
        figures = [
            overviews.Trend(
                title=title,
                values=[None if row[name] is None else row[name] * factor for row in rows],
                regressions=[place for place, row in enumerate(rows) if name in row["regressions"]],
            )
            for name, (title, factor) in _TITLES.items()
            if name in FIGURES and any(row[name] is not None for row in rows)
        ]
        pictures.append(
            Picture(
                name=f"trend-{number}",
                title=f"{overviews.short(test, 60)} on {overviews.short(system or 'a system', 30)}",
                figure=overviews.trend(
                    [row["verdict"] for row in rows],
                    [f"{row['day'] or ''} {row['system_version'] or ''}".strip() for row in rows],
                    figures,
                    [place for place, row in enumerate(rows) if "verdict" in row["regressions"]],
                ),
            )
        )
    return pictures


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
    cells.sort(key=lambda cell: (0 if cell.verdict is None else -_severity(cell.verdict), cell.row, cell.column))
    return [Picture(name="faults", title="Faults and workloads", figure=overviews.matrix(cells[:SHOWN_CELLS]))]


def _cell(kind: str, workload: str, met: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]]) -> overviews.Cell:
    verdicts = [Verdict(row["verdict"]) for row, _ in met if row["verdict"] is not None]
    asked, answered = (sum(each[name] for _, each in met) for name in ("asked", "answered"))
    return overviews.Cell(
        row=kind,
        column=workload,
        verdict=str(worst(verdicts)) if verdicts else None,
        runs=len(met),
        invalid=verdicts.count(Verdict.INVALID),
        availability=answered / asked if asked else None,
    )
