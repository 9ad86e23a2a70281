"""The input of the page and its pictures, from the tables; see `results.pipeline.write.gathered`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from results.pipeline.measure.availability import DURING
from results.pipeline.measure.timelines import AVAILABILITY, HEAT, LATENCIES, RATES, TOTALS
from results.pipeline.single.tables import LAYOUTS, read_table
from results.pipeline.write.gathered import FAULTS, VERDICTS, Gathered

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from results.pipeline.write.output import Manifest

    Row = Mapping[str, Any]


def gathered(root: str, manifest: Manifest, names: Sequence[str]) -> Gathered:
    """Returns the input of the page and its pictures."""
    found: dict[str, dict[str, list[Row]]] = {name: {} for name in names}

    def take(table: str, rows: Iterable[Row]) -> None:
        for row in rows:
            found[row["run"]].setdefault(table, []).append(row)

    rates: dict[tuple[Any, ...], int] = {}
    bucket = ("run", "f", "type", "time_s", "width_s")
    for row in read_table(root, manifest, RATES, (*bucket, "operations"), names):
        group = tuple(row[name] for name in bucket)
        rates[group] = rates.get(group, 0) + row["operations"]
    take(RATES, ({**dict(zip(bucket, group, strict=True)), "operations": count} for group, count in rates.items()))
    for table in (LATENCIES, HEAT, TOTALS):
        take(table, read_table(root, manifest, table, LAYOUTS[table].names, names))
    shown = {(row["run"], row["key"]) for of_run in found.values() for row in of_run.get(HEAT, ())}
    verdicts = read_table(root, manifest, "verdicts", ("key", "verdict"), names)
    take(VERDICTS, (row for row in verdicts if (row["run"], row["key"]) in shown))
    faults = read_table(root, manifest, "faults", ("kind", "start_ns", "end_ns", "effective"), names)
    take(FAULTS, sorted(faults, key=lambda row: row["start_ns"]))
    during: dict[tuple[str, str], tuple[int, int]] = {}
    for row in read_table(root, manifest, AVAILABILITY, ("kind", "node", "f", "part", "operations", "answered")):
        if row["node"] is None and row["f"] is None and row["part"] == DURING:
            asked, answered = during.get((row["run"], row["kind"]), (0, 0))
            during[row["run"], row["kind"]] = asked + row["operations"], answered + row["answered"]
    kinds = [
        {"run": run, "kind": kind, "asked": asked, "answered": answered}
        for (run, kind), (asked, answered) in during.items()
    ]
    return Gathered(runs=found, kinds=kinds)
