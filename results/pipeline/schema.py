"""The tables of the pipeline: what columns they have, of what types, and which version of them this is.

The law: a table that is written has exactly these columns in this order, and `docs/spark.md` says what each means; a change to
any of them raises `VERSION`. The table of operations is the one that `checker.formats.parquet` defines, so that what the job
reads and what `labrys check` reads is the same file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import types as t

from checker.formats.parquet import COLUMNS
from harness.op import OpType
from harness.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame

FORMAT: Final = "labrys-analysis"
VERSION: Final = 4

# A hundred years: sums and differences of times below it stay within 64 bits, which Spark's arithmetic insists on.
MOST_NS: Final = 100 * 366 * 86_400 * NS_PER_S

_KINDS: Final[Mapping[str, t.DataType]] = {"string": t.StringType(), "name": t.StringType(), "int64": t.LongType()}
TYPES: Final = tuple(str(kind) for kind in OpType if kind is not OpType.INVOKE)

OPERATIONS: Final = t.StructType([t.StructField(column.name, _KINDS[column.kind]) for column in COLUMNS])

QUARANTINE: Final = t.StructType(
    [
        t.StructField("source", t.StringType(), nullable=False),
        t.StructField("run", t.StringType()),
        t.StructField("key", t.StringType()),
        t.StructField("line", t.LongType()),
        t.StructField("invoke_index", t.LongType()),
        t.StructField("reason", t.StringType(), nullable=False),
        t.StructField("sample", t.StringType()),
    ]
)

VERDICTS: Final = t.StructType(
    [
        t.StructField("run", t.StringType(), nullable=False),
        t.StructField("key", t.StringType()),
        t.StructField("verdict", t.StringType(), nullable=False),
        t.StructField("model", t.StringType(), nullable=False),
        t.StructField("analyzer", t.StringType(), nullable=False),
        t.StructField("engine", t.StringType(), nullable=False),
        t.StructField("cause", t.StringType()),
        t.StructField("kind", t.StringType()),
        t.StructField("operations", t.LongType(), nullable=False),
        t.StructField("op_invoke_index", t.LongType()),
        t.StructField("op_complete_index", t.LongType()),
        t.StructField("explanation", t.StringType()),
        t.StructField("counterexample", t.StringType()),
        t.StructField("order_agrees", t.StringType()),
        t.StructField("order_reason", t.StringType()),
    ]
)


def conform(rows: DataFrame, schema: t.StructType) -> DataFrame:
    """Returns exactly the columns of a table, in order, with their types; a missing one is null."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - the name that all of Spark's users know

    have = set(rows.columns)
    return rows.select(
        *(
            (F.col(field.name) if field.name in have else F.lit(None)).cast(field.dataType).alias(field.name)
            for field in schema.fields
        )
    )
