"""Spark's types of the tables of `results.pipeline.schema`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the name that all of Spark's users know
from pyspark.sql import types as t
from pyspark.sql.pandas.types import from_arrow_schema

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame


def struct_of(schema: pa.Schema) -> t.StructType:
    """Returns Spark's schema of a table."""
    return from_arrow_schema(schema)


def conform(rows: DataFrame, schema: pa.Schema | t.StructType) -> DataFrame:
    """Returns exactly the columns of a table, in order, with their types; a missing one is null."""
    have = set(rows.columns)
    return rows.select(
        *(
            (F.col(field.name) if field.name in have else F.lit(None)).cast(field.dataType).alias(field.name)
            for field in (schema if isinstance(schema, t.StructType) else struct_of(schema))
        )
    )
