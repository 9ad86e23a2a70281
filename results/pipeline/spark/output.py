"""The tables of an output folder as DataFrames."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - the name that all of Spark's users know

from results.pipeline.schema import TABLES
from results.pipeline.spark.tables import union
from results.pipeline.spark.types import conform
from results.pipeline.write.output import GENERATIONS, WHOLE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession

    from results.pipeline.write.output import Manifest
    from results.pipeline.write.tables import Reading


def read_table(spark: SparkSession, root: str, manifest: Manifest, name: str) -> DataFrame | None:
    """Returns a table of the manifest; None if no job wrote it."""
    parts: list[DataFrame] = []
    for generation in manifest.generations:
        if name in generation.tables:
            if name in WHOLE:
                parts.clear()
            rows = spark.read.parquet(f"{root}/{GENERATIONS}/{generation.id}/{name}")
            if name in TABLES:
                rows = conform(rows, TABLES[name])
            if generation.superseded and "run" in rows.columns:
                gone = spark.createDataFrame([(run,) for run in generation.superseded], "run string")
                rows = rows.join(F.broadcast(gone), "run", "left_anti").select(*rows.columns)
            parts.append(rows)
    return union(parts) if parts else None


def reading(spark: SparkSession, root: str, manifest: Manifest) -> Reading:
    """Returns the function that reads the tables of an output folder; see `results.pipeline.write.tables.reading`."""

    def read(name: str, columns: Sequence[str], /, **where: Sequence[str]) -> pa.Table:
        rows = read_table(spark, root, manifest, name)
        layout = pa.schema([TABLES[name].field(column_name) for column_name in columns])
        if rows is None:
            return layout.empty_table()
        for column, texts in where.items():
            rows = rows.where(F.col(column).isin(list(texts)))
        return rows.select(*columns).toArrow().cast(layout)

    return read
