"""What the page and its pictures are drawn from: the rows of the few runs that are shown, and what all runs bore.

The law: what is gathered here is bounded by the number of buckets, functions, keys and runs that are shown, and never holds
operations.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from pyspark.sql import functions as F  # noqa: N812 - the name that all of Spark's users know

from results.pipeline.measure.timelines import AVAILABILITY, HEAT, LATENCIES, RATES, TOTALS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame

MAX_ROWS: Final = 200_000
VERDICTS: Final = "verdicts"  # of the keys in `HEAT` alone
FAULTS: Final = "faults"

OfRun: TypeAlias = "Mapping[str, Sequence[Mapping[str, Any]]]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered:
    """What is drawn.

    Attributes:
        runs: By run and by table, the rows of the runs that are shown: `RATES` (of all nodes together), `LATENCIES`, `TOTALS`,
            `HEAT`, `VERDICTS` and `FAULTS`.
        bore: For each run and kind of fault `run`, `kind`, and how many operations were `asked` and `answered` during it.
    """

    runs: Mapping[str, OfRun]
    bore: Sequence[Mapping[str, Any]]


def gathered(
    names: Sequence[str], timelines: Mapping[str, DataFrame], *, faults: DataFrame, verdicts: DataFrame
) -> Gathered:
    """Gathers the rows of some runs from Spark's tables.

    Args:
        names: The runs that are shown.
        timelines: What `timelines.timelines` returned, or the same tables read again.
        faults: The columns of `runs.FAULTS`.
        verdicts: The columns of `schema.VERDICTS`.
    """
    rates = timelines[RATES].groupBy("run", "f", "type", "time_s", "width_s").agg(
        F.sum("operations").alias("operations")
    )  # fmt: skip
    heat = timelines[HEAT]
    of_keys = verdicts.select("run", "key", "verdict").join(heat.select("run", "key").distinct(), ["run", "key"])
    few = faults.select("run", "kind", "start_ns", "end_ns", "effective").orderBy("run", "start_ns")
    found: dict[str, dict[str, list[Mapping[str, Any]]]] = {name: {} for name in names}
    for table, rows in (
        (RATES, rates),
        (LATENCIES, timelines[LATENCIES]),
        (HEAT, heat),
        (VERDICTS, of_keys),
        (FAULTS, few),
        (TOTALS, timelines[TOTALS]),
    ):
        for row in rows.where(F.col("run").isin(list(names))).limit(MAX_ROWS).collect() if names else ():
            found[row["run"]].setdefault(table, []).append(row.asDict())
    during = timelines[AVAILABILITY].where("node is null and part = 'during'").groupBy("run", "kind").agg(
        F.sum("operations").alias("asked"), F.sum("answered").alias("answered")
    )  # fmt: skip
    return Gathered(runs=found, bore=[row.asDict() for row in during.collect()])
