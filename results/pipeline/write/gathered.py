"""The input of the page and its pictures: the rows of the few shown runs, and the sums of all runs for each kind of fault.

The rule: the number of buckets, functions, keys and shown runs bounds this input. It never contains operations.
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
VERDICTS: Final = "verdicts"  # only of the keys in `HEAT`
FAULTS: Final = "faults"

OfRun: TypeAlias = "Mapping[str, Sequence[Mapping[str, Any]]]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered:
    """The input of the page and its pictures.

    Attributes:
        runs: By run and by table, the rows of the shown runs: `RATES` (of all nodes together), `LATENCIES`, `TOTALS`, `HEAT`,
            `VERDICTS` and `FAULTS`.
        kinds: For each run and kind of fault `run`, `kind`, and how many operations were `asked` and `answered` during it.
    """

    runs: Mapping[str, OfRun]
    kinds: Sequence[Mapping[str, Any]]


def gathered(
    names: Sequence[str], timelines: Mapping[str, DataFrame], *, faults: DataFrame, verdicts: DataFrame
) -> Gathered:
    """Gathers the rows of some runs from Spark's tables.

    Args:
        names: The shown runs.
        timelines: The tables of `timelines.timelines`, or the same tables read again.
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
    during = timelines[AVAILABILITY].where("node is null and f is null and part = 'during'").groupBy("run", "kind").agg(
        F.sum("operations").alias("asked"), F.sum("answered").alias("answered")
    )  # fmt: skip
    return Gathered(runs=found, kinds=[row.asDict() for row in during.collect()])
