"""The figures of whole runs, from the written tables; see `results.pipeline.measure.figures`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harness.verdict import Verdict
from results.pipeline.measure.availability import AFTER
from results.pipeline.measure.timelines import AVAILABILITY, TOTALS
from results.pipeline.schema import RUNS
from results.pipeline.single.tables import read_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from results.pipeline.write.output import Manifest


def figures(root: str, manifest: Manifest) -> Iterable[Mapping[str, Any]]:
    """Yields the rows of `measure.figures`."""
    found: dict[str, dict[str, Any]] = {}
    for row in read_table(root, manifest, "runs", RUNS.names):
        found[row["run"]] = {**row, **dict.fromkeys(("severity", "availability", "p50_ms", "p99_ms", "measured_s"))}
        found[row["run"]] |= {"keys": None, "operations": None, "healed": 0, "unseen": 0, "asked": 0, "answered": 0}
    for row in read_table(root, manifest, "verdicts", ("verdict", "operations")):
        its = found[row["run"]]
        its["severity"] = max(its["severity"] or 0, Verdict(row["verdict"]).severity)
        its["keys"] = (its["keys"] or 0) + 1
        its["operations"] = (its["operations"] or 0) + row["operations"]
    for row in read_table(root, manifest, AVAILABILITY, ("node", "f", "part", "sustained_ok_s")):
        if row["node"] is None and row["f"] is None and row["part"] == AFTER:
            its = found[row["run"]]
            its["healed"] += 1
            its["unseen"] += row["sustained_ok_s"] is None
            its["measured_s"] = _greatest(its["measured_s"], row["sustained_ok_s"])
    for row in read_table(root, manifest, TOTALS, ("asked", "answered", "p50_ms", "p99_ms")):
        its = found[row["run"]]
        its["asked"] += row["asked"]
        its["answered"] += row["answered"]
        its |= {name: _greatest(its[name], row[name]) for name in ("p50_ms", "p99_ms")}
    for its in found.values():
        its["availability"] = its["answered"] / its["asked"] if its["asked"] else None
    return found.values()


def _greatest(one: float | None, other: float | None) -> float | None:
    return max((value for value in (one, other) if value is not None), default=None)
