"""Pictures and the page of an analysis: what Spark has aggregated, drawn by the report's own plots.

The law: only rows that are bounded by the number of buckets, functions, keys and runs that are shown reach this process, never
operations; `SHOWN_RUNS` and its like say how many. What is left out is said on the page.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from pyspark.sql import functions as F  # noqa: N812 - the name that all of Spark's users know

from harness.units import NS_PER_S
from harness.verdict import Verdict
from results import overviews, plots
from results.pipeline.measure import timelines as tables
from results.pipeline.measure.badness import badness, word
from results.pipeline.measure.trends import FIGURES
from results.series import Line, Shade

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.figure import Figure
    from pyspark.sql import DataFrame

SHOWN_RUNS: Final = 12
SHOWN_TESTS: Final = 8
SHOWN_TRENDS: Final = 60
SHOWN_FUNCTIONS: Final = 6
SHOWN_FAULTS: Final = 200
SHOWN_CELLS: Final = 120
MAX_ROWS: Final = 200_000
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


def chosen(trends: DataFrame, limit: int = SHOWN_RUNS) -> list[dict[str, Any]]:
    """Returns the rows of the runs to show: those with a bad verdict first, then what became worse, then the latest."""
    order = [
        F.desc(badness(F.col("verdict"))),
        F.desc(F.size("regressions")),
        F.desc_nulls_last("started"),
        F.col("run"),
    ]
    return [row.asDict() for row in trends.orderBy(*order).limit(limit).collect()]


def of_runs(
    rows: Sequence[Mapping[str, Any]], timelines: Mapping[str, DataFrame], faults: DataFrame, verdicts: DataFrame
) -> list[RunPictures]:
    """Draws rate, latency and keys of some runs."""
    if not rows:
        return []
    names = [row["run"] for row in rows]
    told: dict[str, dict[str, list[Any]]] = {name: {} for name in names}
    rates = timelines[tables.RATES].groupBy("run", "f", "type", "time_s", "width_s").agg(
        F.sum("operations").alias("operations")
    )  # fmt: skip
    heat = timelines[tables.HEAT]
    of_keys = verdicts.select("run", "key", "verdict").join(heat.select("run", "key").distinct(), ["run", "key"])
    few = faults.select("run", "kind", "start_ns", "end_ns", "effective").orderBy("run", "start_ns")
    for name, rows_of in (
        ("rates", rates),
        ("latencies", timelines[tables.LATENCIES]),
        ("heat", heat),
        ("verdicts", of_keys),
        ("faults", few),
        ("totals", timelines[tables.TOTALS]),
    ):
        for row in rows_of.where(F.col("run").isin(names)).limit(MAX_ROWS).collect():
            told[row["run"]].setdefault(name, []).append(row)
    return [
        RunPictures(row=row, pictures=_of_run(f"run-{number}", told[row["run"]])) for number, row in enumerate(rows, 1)
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


def of_tests(trends: DataFrame) -> list[Picture]:
    """Draws the latest runs of the tests that have the most, from left to right."""
    several = trends.where("test is not null").groupBy("test", "system").count().where("count > 1")
    tests = several.orderBy(F.desc("count"), "test", "system").limit(SHOWN_TESTS).collect()
    pictures = []
    for number, test in enumerate(tests, 1):
        its = trends.where(F.col("test").eqNullSafe(test["test"]) & F.col("system").eqNullSafe(test["system"]))
        rows = its.orderBy(F.desc_nulls_last("started"), "run").limit(SHOWN_TRENDS).collect()[::-1]
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
                title=f"{overviews.short(test['test'], 60)} on {overviews.short(test['system'] or 'a system', 30)}",
                figure=overviews.trend(
                    [row["verdict"] for row in rows],
                    [f"{row['day'] or ''} {row['system_version'] or ''}".strip() for row in rows],
                    figures,
                    [place for place, row in enumerate(rows) if "verdict" in row["regressions"]],
                ),
            )
        )
    return pictures


def of_faults(trends: DataFrame, availability: DataFrame) -> list[Picture]:
    """Draws the faults by the workloads that met them; nothing if no run had a workload."""
    bore = availability.where("node is null and part = 'during'").groupBy("run", "kind").agg(
        F.sum("operations").alias("asked"), F.sum("answered").alias("answered")
    )  # fmt: skip
    met = trends.select("run", "workload", "verdict").where("workload is not null").join(bore, "run", "left")
    worst = F.max(F.when(F.col("verdict").isNotNull(), badness(F.col("verdict"))))
    rows = (
        met.groupBy(F.coalesce("kind", F.lit("no fault")).alias("kind"), "workload")
        .agg(
            F.count_distinct("run").alias("runs"),
            F.count_distinct(F.when(F.col("verdict") == "invalid", F.col("run"))).alias("invalid"),
            worst.alias("badness"),
            F.try_divide(F.sum("answered"), F.sum("asked")).alias("availability"),
        )
        .orderBy(F.desc("badness"), "kind", "workload")
        .limit(SHOWN_CELLS)
        .withColumn("verdict", word(F.col("badness")))
        .collect()
    )
    cells = [
        overviews.Cell(
            row=row["kind"],
            column=row["workload"],
            verdict=row["verdict"],
            runs=row["runs"],
            invalid=row["invalid"],
            availability=row["availability"],
        )
        for row in rows
    ]
    if not cells:
        return []
    return [Picture(name="faults", title="Faults and workloads", figure=overviews.matrix(cells))]
