"""The input of the page and its pictures: the rows of the few shown runs, and the sums of all runs for each kind of fault.

The rule: the number of buckets, functions, keys and shown runs bounds this input. It never contains operations.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pyarrow.compute as pc

from results.pipeline.measure.availability import DURING
from results.pipeline.schema import AVAILABILITY, HEAT, LATENCIES, RATES, TABLES, TOTALS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from results.pipeline.write.tables import Reading

MAX_ROWS: Final = 200_000
VERDICTS: Final = "verdicts"  # only of the keys in `HEAT`
FAULTS: Final = "faults"
_BUCKET: Final = ("run", "f", "type", "time_s", "width_s")

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


def gathered(read: Reading, names: Sequence[str]) -> Gathered:
    """Gathers the rows of some runs from the tables.

    Args:
        read: Reads the tables of the output folder.
        names: The shown runs.
    """
    runs: dict[str, dict[str, list[Mapping[str, Any]]]] = {name: {} for name in names}

    def take(table: str, rows: Iterable[Mapping[str, Any]]) -> None:
        for row in rows:
            runs[row["run"]].setdefault(table, []).append(row)

    if names:
        rates = read(RATES, (*_BUCKET, "operations"), run=names).group_by(list(_BUCKET), use_threads=False)
        summed = rates.aggregate([("operations", "sum")]).rename_columns([*_BUCKET, "operations"])
        take(RATES, summed.slice(0, MAX_ROWS).to_pylist())
        for table in (LATENCIES, HEAT, TOTALS):
            take(table, read(table, TABLES[table].names, run=names).slice(0, MAX_ROWS).to_pylist())
        shown = {(row["run"], row["key"]) for of_run in runs.values() for row in of_run.get(HEAT, ())}
        keys = sorted({key for _, key in shown})
        verdicts = read(VERDICTS, ("run", "key", "verdict"), run=names, key=keys).to_pylist()
        take(VERDICTS, (row for row in verdicts if (row["run"], row["key"]) in shown))
        faults = read(FAULTS, ("run", "kind", "start_ns", "end_ns", "effective"), run=names).sort_by("start_ns")
        take(FAULTS, faults.slice(0, MAX_ROWS).to_pylist())
    around = read(AVAILABILITY, ("run", "kind", "node", "f", "part", "operations", "answered"), part=[DURING])
    whole = around.filter(pc.and_(pc.is_null(around.column("node")), pc.is_null(around.column("f"))))
    during = whole.group_by(["run", "kind"], use_threads=False).aggregate([("operations", "sum"), ("answered", "sum")])
    return Gathered(runs=runs, kinds=during.rename_columns(["run", "kind", "asked", "answered"]).to_pylist())
