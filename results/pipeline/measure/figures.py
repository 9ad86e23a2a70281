"""The figures of whole runs, from the tables of runs, verdicts and timelines; `trends` compares them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc

from checker.judging import UNPROMISED
from harness.verdict import Verdict
from results.pipeline.measure.availability import AFTER
from results.pipeline.schema import AVAILABILITY, RUNS, TOTALS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from results.pipeline.write.tables import Reading


def figures(read: Reading) -> Iterable[Mapping[str, Any]]:
    """Returns a row for each run with the input of `trends.trends`, beside the columns of `schema.RUNS`.

    The columns are: `severity` (of the worst verdict; null if none was judged), `keys`, `operations`, `measured_s` (the longest
    recovery after a fault), `healed` (how many faults were healed), `unseen` (how many of them show no recovery),
    `availability`, `p50_ms` and `p99_ms`.

    Args:
        read: Reads the tables of the output folder.
    """
    runs: dict[str, dict[str, Any]] = {}
    for row in read("runs", RUNS.names).to_pylist():
        runs[row["run"]] = {**row, **dict.fromkeys(("severity", "availability", "p50_ms", "p99_ms", "measured_s"))}
        runs[row["run"]] |= {"keys": None, "operations": None, "healed": 0, "unseen": 0, "asked": 0, "answered": 0}
    verdicts = read("verdicts", ("run", "verdict", "cause", "operations")).group_by(["run", "verdict", "cause"])
    judged = verdicts.aggregate([("operations", "sum"), ("operations", "count")]).to_pylist()
    for row in sorted(
        judged, key=lambda row: row["cause"] == UNPROMISED
    ):  # the keys that promised nothing count if all are such
        its = runs[row["run"]]
        if its["severity"] is None or row["cause"] != UNPROMISED:
            its["severity"] = max(its["severity"] or 0, Verdict(row["verdict"]).severity)
        its["keys"] = (its["keys"] or 0) + row["operations_count"]
        its["operations"] = (its["operations"] or 0) + row["operations_sum"]
    around = read(AVAILABILITY, ("run", "node", "f", "part", "sustained_ok_s"))
    whole = pc.and_(pc.is_null(around.column("node")), pc.is_null(around.column("f")))
    for row in around.filter(pc.and_(whole, pc.equal(around.column("part"), AFTER))).to_pylist():
        its = runs[row["run"]]
        its["healed"] += 1
        its["unseen"] += row["sustained_ok_s"] is None
        its["measured_s"] = _greatest(its["measured_s"], row["sustained_ok_s"])
    for row in read(TOTALS, ("run", "asked", "answered", "p50_ms", "p99_ms")).to_pylist():
        its = runs[row["run"]]
        its["asked"] += row["asked"]
        its["answered"] += row["answered"]
        its |= {name: _greatest(its[name], row[name]) for name in ("p50_ms", "p99_ms")}
    for its in runs.values():
        its["availability"] = its["answered"] / its["asked"] if its["asked"] else None
    return runs.values()


def _greatest(one: float | None, other: float | None) -> float | None:
    return max((value for value in (one, other) if value is not None), default=None)
