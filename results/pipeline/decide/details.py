"""Decides and explains keys with the code of `labrys check`, from whole operations, in Spark's Python workers.

The law: what is said about a key that is not valid is what `labrys check` says about it, because the same functions say it.
For a key that was decided from columns only the few operations are made that its explanation names; a key whose counterexample
is wanted, and one that columns cannot say, is made as a whole, within its budget.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - the name that all of Spark's users know
from pyspark.sql.pandas.types import to_arrow_schema

from checker.analysis import analysis
from checker.blaming import blaming
from checker.errors import Disagreement
from checker.explain import Telling, explain
from checker.result import Analysis, operation_json
from harness.errors import LabrysError
from harness.op import OpType
from harness.verdict import Verdict
from results.pipeline.decide.columns import ADDRESS
from results.pipeline.decide.rows import BYTES_PER_OPERATION, groups
from results.pipeline.schema import OPERATIONS, VERDICTS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import DataFrame

    from checker.models import Model
    from harness.op import Operation
    from results.pipeline.decide.rows import Group

# How a key came to its verdict.
DATAFLOW: Final = "dataflow"
KERNEL: Final = "kernel"
OBJECTS: Final = "operations"

# What is known about a key before its operations are looked at. `wanted` holds the invokes of the operations to look at, null
# for all. `whole` says that operations are to be decided, and not only named: those whose invokes `part` holds, null for all;
# `shrink` says that a counterexample is wanted.
TARGET: Final = (
    "operations",
    "verdict",
    "analyzer",
    "engine",
    "cause",
    "kind",
    "op_start",
    "op_end",
    "core",
    "unsuited",
    "part",
    "wanted",
    "whole",
    "shrink",
)
_OUT: Final = to_arrow_schema(VERDICTS).insert(0, pa.field(ADDRESS, pa.int64()))
_OUT_DDL: Final = ", ".join(
    f"{name} {'bigint' if pa.types.is_integer(kind) else 'string'}"
    for name, kind in zip(_OUT.names, _OUT.types, strict=True)
)
_ROWS_PER_BATCH: Final = 256
_SENT_TO_ALL: Final = 50_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """How keys are decided.

    Attributes:
        model: What each object does.
        time_limit_s: Wall time of a key's search; None for no limit.
        memory_limit: Bytes for a key.
    """

    model: Model
    time_limit_s: float | None
    memory_limit: int

    @property
    def most(self) -> int:
        """How many operations of a key can be looked at as a whole."""
        return max(self.memory_limit // BYTES_PER_OPERATION, 1)


def examined(operations: DataFrame, targets: DataFrame, work: Work, *, count: int, partitions: int) -> DataFrame:
    """Returns a row of verdicts, and `address`, for each target.

    Args:
        operations: All operations.
        targets: `run`, `key`, `address` and the columns of `TARGET`.
        work: How they are decided.
        count: How many targets there are.
        partitions: Over how many tasks they are spread.
    """
    about = targets.select(
        F.col("run").alias("its_run"),
        F.col("key").alias("its_key"),
        ADDRESS,
        *(F.col(name).alias(f"target_{name}") for name in TARGET),
    )
    index = F.col("invoke_index")
    wanted = operations.select(*OPERATIONS.names).join(
        F.broadcast(about) if count <= _SENT_TO_ALL else about,
        (F.col("run") == F.col("its_run"))
        & F.col("key").eqNullSafe(F.col("its_key"))
        & (F.col("target_wanted").isNull() | F.array_contains("target_wanted", index)),
    )
    # A target of which nothing is wanted is told of, too: each brings a row that is no operation.
    known = {"run": F.col("its_run"), "key": F.col("its_key")}
    without = about.withColumns(
        known | {f.name: F.lit(None).cast(f.dataType) for f in OPERATIONS if f.name not in known}
    )
    spread = wanted.unionByName(without).drop("its_run", "its_key").repartition(partitions, ADDRESS)
    ordered = spread.sortWithinPartitions(ADDRESS, "invoke_index", "complete_index", "process")
    return ordered.mapInArrow(partial(_examine, work=work), _OUT_DDL)


def _examine(batches: Iterator[pa.RecordBatch], work: Work) -> Iterator[pa.RecordBatch]:
    rows: list[dict[str, Any]] = []
    for group in groups(batches, most=work.most):
        rows.append(examine(group, work))
        if len(rows) == _ROWS_PER_BATCH:
            yield pa.RecordBatch.from_pylist(rows, schema=_OUT)
            rows = []
    if rows:
        yield pa.RecordBatch.from_pylist(rows, schema=_OUT)


def examine(group: Group, work: Work) -> dict[str, Any]:
    """Returns the row of verdicts, and `address`, of a key, whose `about` has the columns of `TARGET` as `target_...`."""
    about = group.about
    result = _analysis(group, work)
    op = result.op
    counterexample = [operation_json(each) for each in result.counterexample]
    return {
        ADDRESS: about[ADDRESS],
        "run": about["run"],
        "key": about["key"],
        "verdict": str(result.valid),
        "model": work.model.name,
        "analyzer": result.analyzer,
        "engine": about["target_engine"],
        "cause": result.cause,
        "kind": result.kind,
        "operations": about["target_operations"],
        "op_invoke_index": None if op is None else op.invoke_index,
        "op_complete_index": None if op is None or op.type is OpType.INFO else op.complete_index,
        "explanation": result.explanation,
        "counterexample": json.dumps(counterexample, ensure_ascii=False, sort_keys=True) if counterexample else None,
        **_order(result, about["target_engine"]),
    }


def _order(result: Analysis, engine: str) -> dict[str, str | None]:
    """Returns what is known about the system's own order, where all of the key was looked at."""
    if engine != OBJECTS or result.order_agrees is None:
        return {"order_agrees": None, "order_reason": None}
    return {"order_agrees": str(result.order_agrees), "order_reason": result.order_reason}


def _analysis(group: Group, work: Work) -> Analysis:
    if group.trouble is not None:
        return _unknown(group, work, "error", group.trouble)
    if group.too_many and group.about["target_whole"]:
        text = f"The key has more operations than fit into its memory limit, {work.most}."
        return _unknown(group, work, "out-of-memory", text)
    if not group.about["target_whole"]:
        return _named(group, work)
    try:
        with blaming(type(work.model)):
            result = _decided(group, work)
    except LabrysError as error:
        return _unknown(group, work, "error", str(error))
    if group.about["target_engine"] != KERNEL or group.about["target_part"] is None:
        return result
    # The kernel has looked at all of the key; the part is there to tell of it.
    known = _named(group, work)
    told = result if result.valid is Verdict.INVALID else known
    return replace(known, kind=told.kind, explanation=told.explanation, counterexample=told.counterexample)


def _decided(group: Group, work: Work) -> Analysis:
    about, part = group.about, group.about["target_part"]
    operations = group.operations if part is None else _of_invokes(group.operations, part)
    result = analysis(
        work.model,
        operations,
        time_limit=work.time_limit_s,
        memory_limit=work.memory_limit,
        threads=1,
        counterexample=about["target_shrink"],
        part=part is not None,
    )
    if about["target_engine"] == DATAFLOW and (result.op is None or result.op.complete_index != about["target_op_end"]):
        raise Disagreement(
            f"dataflow finds invalid from event {about['target_op_end']} on, the kernel finds {result.valid}",
            operations,
        )
    # A part of a history with compare-and-sets may have none.
    return replace(result, analyzer=about["target_analyzer"]) if about["target_engine"] == DATAFLOW else result


def _of_invokes(operations: Sequence[Operation], invokes: Sequence[int]) -> list[Operation]:
    chosen = frozenset(invokes)
    return [op for op in operations if op.invoke_index in chosen]


def _unknown(group: Group, work: Work, cause: str, explanation: str) -> Analysis:
    return Analysis(
        valid=Verdict.UNKNOWN,
        model=work.model.name,
        analyzer=group.about["target_analyzer"] or "none",
        operations=group.about["target_operations"],
        seconds=0.0,
        cause=cause,
        explanation=explanation,
    )


def _named(group: Group, work: Work) -> Analysis:
    """Says what was found in columns, with the operations that it names."""
    about = group.about
    by_start = {op.invoke_index: op for op in group.operations}
    result = Analysis(
        valid=Verdict(about["target_verdict"]),
        model=work.model.name,
        analyzer=about["target_analyzer"],
        operations=about["target_operations"],
        seconds=0.0,
        op=by_start.get(about["target_op_start"]),
        cause=about["target_cause"],
        kind=about["target_kind"],
    )
    core = [by_start[start] for start in about["target_core"] or () if start in by_start]
    telling = Telling(core=core, unsuited=about["target_unsuited"])
    return replace(result, explanation=explain(result, work.model, telling))
