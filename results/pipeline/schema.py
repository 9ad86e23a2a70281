"""The tables of the pipeline: their columns with types, and their version.

The rule: a written table has exactly these columns in this order, and `docs/spark.md` describes each. A change to any of them
raises `VERSION`. `checker.formats.parquet` defines the table of operations, so the job and `labrys check` read the same files.
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
VERSION: Final = 6
# The versions that an incremental job goes on with. Version 5 has no column `said_crossed` in `runs` and no `f` in
# `availability`; they are null then. In its tables, refusals count as `fail` too.
READABLE: Final = frozenset({5, VERSION})

# A hundred years. Sums and differences of smaller times fit into 64 bits, and Spark's arithmetic fails on an overflow.
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

RUNS: Final = t.StructType(
    [
        t.StructField("run", t.StringType(), nullable=False),
        t.StructField("day", t.StringType()),  # of its start, in UTC, e.g. 2026-11-21
        t.StructField("started", t.StringType()),  # ISO 8601
        t.StructField("test", t.StringType()),  # the test's name
        t.StructField("system", t.StringType()),
        t.StructField("system_version", t.StringType()),
        t.StructField("labrys_version", t.StringType()),
        t.StructField("workload", t.StringType()),
        t.StructField("faults", t.StringType()),  # the kinds that began, sorted, separated by commas; empty for none
        t.StructField("nodes", t.LongType()),
        t.StructField("seed", t.StringType()),
        t.StructField("reproduce", t.StringType()),
        t.StructField("said_verdict", t.StringType()),  # in results.json: valid, invalid or unknown; null without one
        t.StructField("said_reason", t.StringType()),
        t.StructField("said_recovery_s", t.DoubleType()),  # from healing until the system worked, or the run gave up
        t.StructField("said_restarted", t.BooleanType()),  # whether the run restarted every node for that
        t.StructField("said_recovery_error", t.StringType()),  # what was missing in the end; null if the system worked
        t.StructField("said_failures", t.ArrayType(t.StringType())),  # parts that decide it, not valid, `name=verdict`
        t.StructField("said_fault_violations", t.LongType()),  # violations during or after a fault
        t.StructField("said_behind", t.StringType()),  # the sentence of `control-node` if it was behind; else null
        t.StructField(
            "said_crossed", t.ArrayType(t.StringType())
        ),  # a sentence for each threshold that the run crossed
        t.StructField("suite", t.StringType()),  # the suite that ran it; without one, this and the next six are null
        t.StructField("suite_case", t.StringType()),  # e.g. faults[nemesis=kill]#2
        t.StructField("line", t.StringType()),  # the case without the number of its repetition
        t.StructField("expects", t.StringType()),  # the verdict that the suite expects: valid, invalid or unknown
        t.StructField("expects_in_fault", t.BooleanType()),  # whether a violation is expected during or after a fault
        t.StructField("known_failures", t.ArrayType(t.StringType())),  # parts that may fail, `name=verdict`
        t.StructField("expects_parts", t.ArrayType(t.StringType())),  # parts that must be invalid
        t.StructField("duration_s", t.DoubleType()),
        t.StructField("answers", t.ArrayType(t.StringType())),  # codes of fail errors that count as availability
        t.StructField("refusals", t.ArrayType(t.StringType())),  # codes of fail errors that name another node
        t.StructField("model", t.StringType(), nullable=False),  # the model or workload that checks its operations
        t.StructField("format", t.StringType(), nullable=False),  # jsonl, edn, etcd-log, parquet or unknown
        t.StructField("source", t.StringType(), nullable=False),  # the path that it was read from
        t.StructField("report", t.StringType()),  # the path of its report; null if it has none
    ]
)

FAULTS: Final = t.StructType(
    [
        t.StructField("run", t.StringType(), nullable=False),
        t.StructField("fault", t.LongType(), nullable=False),  # its number within the run
        t.StructField("kind", t.StringType(), nullable=False),
        t.StructField("targets", t.ArrayType(t.StringType())),
        t.StructField("start_ns", t.LongType(), nullable=False),
        t.StructField("end_ns", t.LongType()),  # null: it never ended
        t.StructField("effective", t.BooleanType()),  # null: unknown
        t.StructField("proof", t.StringType()),  # the sentence of the proof
    ]
)

SIGHTINGS: Final = t.StructType(
    [
        t.StructField("run", t.StringType(), nullable=False),
        t.StructField("time_ns", t.LongType(), nullable=False),
        t.StructField("node", t.StringType(), nullable=False),
        t.StructField("role", t.StringType()),
        t.StructField("term", t.LongType()),
        t.StructField("leader", t.StringType()),
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
