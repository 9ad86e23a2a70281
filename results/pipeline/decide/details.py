"""Decides and explains keys with the code of `labrys check`, from whole operations, in Spark's Python workers.

The rule: a key that is not valid gets the words of `labrys check`, because the same functions make them. If columns decided the
key, only the few operations that the explanation names become objects. If the key needs a counterexample, or if columns cannot
represent it, all its operations do, within the budget of a key.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - the name that all of Spark's users know
from pyspark.sql import types as t
from pyspark.sql.pandas.types import to_arrow_schema

from checker.analysis import analysis
from checker.errors import Disagreement
from checker.explain.blaming import blaming
from checker.explain.sentences import Evidence, explain
from checker.result import Analysis, operation_json
from harness.errors import LabrysError
from harness.op import OpType
from harness.verdict import Verdict
from results.pipeline.decide.coding import made
from results.pipeline.decide.rows import BYTES_PER_OPERATION, groups
from results.pipeline.large_keys.columns import ADDRESS, schema_of
from results.pipeline.schema import OPERATIONS, VERDICTS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import DataFrame

    from checker.models import Model
    from harness.op import Operation
    from results.pipeline.decide.rows import Group

# The column `engine`: how a key came to its verdict.
DATAFLOW: Final = "dataflow"
KERNEL: Final = "kernel"
OBJECTS: Final = "operations"

# What is known about a key before its operations are read. `wanted`: the invokes of the operations to read, null for all; with
# those that make a value in `observed`.
# `whole`: whether to decide operations, and not only to name them; these are the invokes in `part`, null for all.
# `shrink`: whether a counterexample is wanted.
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
    "observed",
    "wanted",
    "whole",
    "shrink",
)
_OUT: Final = t.StructType([*schema_of(ADDRESS).fields, *VERDICTS.fields])
_OUT_ARROW: Final = to_arrow_schema(_OUT)
_ROWS_PER_BATCH: Final = 256
_SENT_TO_ALL: Final = 50_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """How keys are decided.

    Attributes:
        model: The model of each object.
        time_limit_s: Wall time of the search of one key; None for no limit.
        memory_limit: Bytes for one key.
    """

    model: Model
    time_limit_s: float | None
    memory_limit: int

    @property
    def most(self) -> int:
        """How many operations of a key fit into memory as objects."""
        return max(self.memory_limit // BYTES_PER_OPERATION, 1)


def examined(operations: DataFrame, targets: DataFrame, work: Work, *, count: int, partitions: int) -> DataFrame:
    """Returns a row of verdicts, with `address`, for each target.

    Args:
        operations: All operations.
        targets: `run`, `key`, `address` and the columns of `TARGET`.
        work: How to decide them.
        count: How many targets there are.
        partitions: The number of tasks.
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
        & (
            F.col("target_wanted").isNull()
            | F.array_contains("target_wanted", index)
            | (F.col("target_whole") & F.array_contains("target_observed", made()))
        ),
    )
    # A target without wanted operations needs a row too, so each target adds a row that is no operation.
    known = {"run": F.col("its_run"), "key": F.col("its_key")}
    without = about.withColumns(
        known | {f.name: F.lit(None).cast(f.dataType) for f in OPERATIONS if f.name not in known}
    )
    spread = wanted.unionByName(without).drop("its_run", "its_key").repartition(partitions, ADDRESS)
    ordered = spread.sortWithinPartitions(ADDRESS, "invoke_index", "complete_index", "process")
    return ordered.mapInArrow(partial(_examine, work=work), _OUT)


def _examine(batches: Iterator[pa.RecordBatch], work: Work) -> Iterator[pa.RecordBatch]:
    rows: list[dict[str, Any]] = []
    for group in groups(batches, most=work.most):
        rows.append(examine(group, work))
        if len(rows) == _ROWS_PER_BATCH:
            yield pa.RecordBatch.from_pylist(rows, schema=_OUT_ARROW)
            rows = []
    if rows:
        yield pa.RecordBatch.from_pylist(rows, schema=_OUT_ARROW)


def examine(group: Group, work: Work) -> dict[str, Any]:
    """Returns the row of verdicts, with `address`, of a key; its `about` has the columns of `TARGET` as `target_...`."""
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
    """Returns the verdict on the system's own order, if the whole key was examined."""
    if engine != OBJECTS or result.order_agrees is None:
        return {"order_agrees": None, "order_reason": None}
    return {"order_agrees": str(result.order_agrees), "order_reason": result.order_reason}


def _analysis(group: Group, work: Work) -> Analysis:
    if group.trouble is not None:
        return _unknown(group, work, "error", group.trouble)
    # A part may be too large with all operations that make its values. Then the columns' answer stays.
    is_named = not group.about["target_whole"] or (group.too_many and group.about["target_part"] is not None)
    if group.too_many and not is_named:
        text = f"The key has more operations than fit into its memory limit, {work.most}."
        return _unknown(group, work, "out-of-memory", text)
    if is_named:
        return _named(group, work)
    try:
        with blaming(type(work.model)):
            result = _decided(group, work)
    except LabrysError as error:
        return _unknown(group, work, "error", str(error))
    if group.about["target_engine"] != KERNEL or group.about["target_part"] is None:
        return result
    # The kernel decided the whole key; the part serves for the explanation only.
    known = _named(group, work)
    explained = result if result.valid is Verdict.INVALID else known
    return replace(
        known, kind=explained.kind, explanation=explained.explanation, counterexample=explained.counterexample
    )


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
        makers=None if about["target_observed"] is None else group.operations,
    )
    if about["target_engine"] == DATAFLOW and (result.op is None or result.op.complete_index != about["target_op_end"]):
        raise Disagreement(
            f"dataflow finds invalid from event {about['target_op_end']} on, the kernel finds {result.valid}",
            operations,
        )
    # The part of a history with compare-and-sets may have none, and the kernel would name another analyzer.
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
    """Returns the result that columns gave, with the operations that it names."""
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
    evidence = Evidence(core=core, unsuited=about["target_unsuited"])
    return replace(result, explanation=explain(result, work.model, evidence))
