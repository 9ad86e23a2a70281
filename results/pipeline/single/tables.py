"""The tables of an output folder, written and read in this process with the same columns as Spark's."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import dataset, parquet
from pyspark.sql.pandas.types import to_arrow_schema

from results.measure.op_outcomes import OUTCOMES
from results.pipeline.measure.availability import AVAILABILITY_COLUMNS
from results.pipeline.measure.timelines import AVAILABILITY, CONCURRENCY, HEAT, LATENCIES, LEADERS, RATES, TOTALS
from results.pipeline.measure.trends import TRENDS
from results.pipeline.read.local_files import local
from results.pipeline.schema import FAULTS, QUARANTINE, RUNS, SIGHTINGS, VERDICTS
from results.pipeline.spark.tables import MAX_FOLDER_NAME, PARTITIONS
from results.pipeline.write.output import GENERATIONS, WHOLE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from results.pipeline.write.output import Manifest

_TEXT, _WHOLE_NUMBER, _NUMBER = pa.string(), pa.int64(), pa.float64()
_BUCKET: Final = {"time_s": _NUMBER, "width_s": _NUMBER}
_QUANTILES: Final = dict.fromkeys(("p50_ms", "p95_ms", "p99_ms", "max_ms"), _NUMBER)

LAYOUTS: Final[Mapping[str, pa.Schema]] = {
    "runs": to_arrow_schema(RUNS),
    "faults": to_arrow_schema(FAULTS),
    "sightings": to_arrow_schema(SIGHTINGS),
    "quarantine": to_arrow_schema(QUARANTINE),
    "verdicts": to_arrow_schema(VERDICTS),
    "trends": to_arrow_schema(TRENDS),
    AVAILABILITY: to_arrow_schema(AVAILABILITY_COLUMNS),
    RATES: pa.schema({"run": _TEXT, "f": _TEXT, "type": _TEXT, "node": _TEXT, **_BUCKET, "operations": _WHOLE_NUMBER}),
    LATENCIES: pa.schema({"run": _TEXT, "f": _TEXT, **_BUCKET, "operations": _WHOLE_NUMBER, **_QUANTILES}),
    TOTALS: pa.schema(
        {
            **dict.fromkeys(("run", "f"), _TEXT),
            **dict.fromkeys((*OUTCOMES, "asked", "answered"), _WHOLE_NUMBER),
            **_QUANTILES,
        }
    ),
    CONCURRENCY: pa.schema({"run": _TEXT, **_BUCKET, "open": _WHOLE_NUMBER}),
    HEAT: pa.schema({"run": _TEXT, "key": _TEXT, **_BUCKET, "operations": _WHOLE_NUMBER, "answered": _WHOLE_NUMBER}),
    LEADERS: pa.schema(
        {
            "run": _TEXT,
            "fault": _WHOLE_NUMBER,
            "part": _TEXT,
            "changes": _WHOLE_NUMBER,
            "leaders": pa.list_(_TEXT),
            "terms": pa.list_(_WHOLE_NUMBER),
        }
    ),
}


def write_table(folder: str, name: str, rows: Iterable[Mapping[str, Any]]) -> None:
    """Writes a table.

    Args:
        folder: Its folder's URI; the folder does not exist yet.
        name: The table's name, one of `LAYOUTS`.
        rows: Its rows; missing columns become null.
    """
    layout = LAYOUTS[name]
    _write(
        folder, pa.Table.from_pylist([{each: row.get(each) for each in layout.names} for row in rows], schema=layout)
    )


def write_operations(folder: str, operations: pa.Table, *, run: str, day: str) -> None:
    """Writes the operations of a run, in a folder of its day and its name, as Spark's job does."""
    name = re.sub(r"[^A-Za-z0-9._+-]", "_", run)[-MAX_FOLDER_NAME:]
    parts = "/".join(f"{part}={value}" for part, value in zip(PARTITIONS, (day, name), strict=True))
    _write(f"{folder}/{parts}", operations)


def _write(folder: str, rows: pa.Table) -> None:
    place = local(folder)
    place.mkdir(parents=True)
    parquet.write_table(rows, place / "part-00000.parquet")
    (place / "_SUCCESS").touch()


def read_table(
    root: str, manifest: Manifest, name: str, columns: Sequence[str], runs: Sequence[str] | None = None
) -> list[dict[str, Any]]:
    """Returns the rows of a table.

    Args:
        root: The output folder's URI.
        manifest: Its manifest.
        name: The table's name.
        columns: The columns to read.
        runs: The runs to read; None for all.
    """
    wanted = list(dict.fromkeys([*columns, *(["run"] if "run" in LAYOUTS[name].names else [])]))
    found: list[dict[str, Any]] = []
    for generation in manifest.generations:
        if name not in generation.tables:
            continue
        if name in WHOLE:
            found.clear()
        place = local(f"{root}/{GENERATIONS}/{generation.id}/{name}")
        there = dataset.dataset(place, format="parquet").schema.names  # an earlier version may lack a column
        rows = parquet.read_table(place, columns=[each for each in wanted if each in there], partitioning=None)
        for each in wanted:
            if each not in there:
                rows = rows.append_column(
                    LAYOUTS[name].field(each), pa.nulls(len(rows), LAYOUTS[name].field(each).type)
                )
        if "run" in wanted:
            gone = pc.is_in(rows.column("run"), pa.array(generation.superseded, pa.string()))
            rows = rows.filter(pc.invert(gone))
            if runs is not None:
                rows = rows.filter(pc.is_in(rows.column("run"), pa.array(runs, pa.string())))
        found += rows.to_pylist()
    return found
