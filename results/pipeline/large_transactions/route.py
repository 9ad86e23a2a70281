"""Runs the steps with Spark; see the package."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - the name that all of Spark's users know

from checker.columns import INFO, NEEDED, OK, ColumnReader
from checker.transactions.models import PROCESS, REALTIME, order_of
from harness.errors import LabrysError
from harness.op import OpType
from results.pipeline.decide.judges import row_of
from results.pipeline.large_transactions import by_key, by_time
from results.pipeline.large_transactions.by_time import Slicing
from results.pipeline.large_transactions.finish import (
    KEPT,
    OUT_OF_MEMORY,
    Found,
    alone,
    judgement,
    refs_of,
    starts_of,
)  # fmt: skip
from results.pipeline.large_transactions.pieces import (
    EDGE,
    FINDING,
    GROUP,
    NUMBERS,
    PARTS,
    PIECES,
    READER,
    SLICED,
    TOLD,
    VERTEX,
    WRITER,
    Places,
    numbers_of,
)  # fmt: skip
from results.pipeline.spark.types import conform, struct_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyspark.sql import DataFrame

    from checker.columns import Columns
    from checker.judging import Judge, Judgement
    from checker.transactions.models import Question
    from results.pipeline.large_transactions.finish import Name, Ref

DATAFLOW: Final = "dataflow"  # the column `engine`
_KERNEL_PROCESS: Final = 8  # the kind of an edge of processes, as in the kernel
_SHARE: Final = 4  # a partition of keys has about this part of the memory limit
_ROWS_PER_TASK: Final = 1 << 20


def decided(operations: DataFrame, judge: Any, *, size: int, text: int, memory_limit: int) -> dict[str, Any]:
    """Returns the row of verdicts of one run and key.

    Args:
        operations: Its operations; Spark reads them up to six times.
        judge: The checker.
        size: The number of operations.
        text: The bytes of their texts.
        memory_limit: Bytes of a part in a worker.
    """
    first = operations.select("run", "key").head()
    assert first is not None  # noqa: S101 - the caller has counted them
    about = {
        "run": first["run"], "key": first["key"], "model": judge.name, "analyzer": judge.name, "engine": DATAFLOW,
        "operations": size,
    }  # fmt: skip
    try:
        found, columns = _judgement(
            operations.select(*NEEDED), judge, judge.question(), size=size, text=text, memory_limit=memory_limit
        )
    except LabrysError as error:
        return {**about, "verdict": "unknown", "cause": "error", "explanation": str(error)}
    row = row_of(judge.name, found, columns, size)
    return {**about, **row, **({"cause": found.cause} if row.get("cause") and found.cause == OUT_OF_MEMORY else {})}


def _judgement(
    operations: DataFrame, judge: Judge, question: Question, *, size: int, text: int, memory_limit: int
) -> tuple[Judgement, Columns]:
    left_out: list[int] = []
    while True:
        steps = _Steps(operations, question, size=size, text=text, memory_limit=memory_limit)
        pieces = steps.by_key(left_out)
        try:
            found = Found(told=_told(pieces, "key"), size=size, memory_limit=memory_limit)
            found.hold()
            wrong = found.wrong()
            if wrong is not None:
                columns = steps.columns([wrong[0]])
                return alone(judge, columns, size), columns
            if found.contradicted() != left_out:
                left_out = found.contradicted()
                continue
            if found.twice() is None:
                steps.findings(pieces, found)
                steps.by_time(pieces, found)
            columns = steps.columns(starts_of(found))
            names = steps.names(pieces, sorted(refs_of(found)))
            return judgement(question, found, columns, names), columns
        finally:
            pieces.unpersist()


def _told(rows: DataFrame, column: str) -> list[dict[str, Any]]:
    return [json.loads(row[0]) for row in rows.where(F.col("what") == TOLD).select(column).collect()]


class _Steps:
    """The steps for one history."""

    def __init__(self, operations: DataFrame, question: Question, *, size: int, text: int, memory_limit: int) -> None:
        self._operations = operations
        self._question = question
        self._text = text
        self._memory_limit = memory_limit
        self._size = size
        self._spark = operations.sparkSession
        self._least = 2 * self._spark.sparkContext.defaultParallelism
        self._order = order_of(question.model, question.anomalies)

    def by_key(self, left_out: Sequence[int]) -> DataFrame:
        """Returns the pieces of the graph, and what keys show by themselves."""
        question, limit = self._question, self._memory_limit
        parts = self._operations.mapInArrow(partial(by_key.parts, question=question), struct_of(PARTS))
        address = F.xxhash64(F.col("key"))
        needed = self._size * 3 * by_key.BYTES_PER_PART + 4 * self._text
        tasks = max(self._least, -(-needed * _SHARE // limit))
        spread = parts.repartition(tasks, address).sortWithinPartitions("start", "place")
        made = partial(by_key.pieces, question=question, left_out=tuple(left_out), memory_limit=limit)
        return spread.mapInArrow(made, struct_of(PIECES)).persist(StorageLevel.DISK_ONLY)

    def findings(self, pieces: DataFrame, found: Found) -> None:
        """Adds the anomalies that are no cycles."""
        some = pieces.where(F.col("what") == FINDING).select("kind", "a", "b", "before", "before_text", "after_text")
        inside = F.col("before_text") == "internal"
        first = F.min(F.struct("b", "before", "kind", "before_text", "after_text")).alias("first")
        once = some.where(inside).groupBy("a").agg(first).select("a", "first.*").select(*some.columns)
        some = some.where(~inside).unionByName(once)
        found.counts = {row[0]: row[1] for row in some.groupBy("before_text").count().collect()}
        if not found.counts:
            return
        order = Window.partitionBy("before_text").orderBy("kind", "a", "b", "before")
        kept = some.withColumn("number", F.row_number().over(order)).where(F.col("number") <= KEPT)
        found.findings = [row.asDict() for row in kept.collect()]

    def by_time(self, pieces: DataFrame, found: Found) -> None:
        """Adds the cycles."""
        numbers = pieces.select(*NUMBERS)
        if self._order == PROCESS:
            numbers = numbers.unionByName(self._processes())
        counted = numbers.agg(F.max("a_end").alias("end"), F.max(F.when(F.col("a_kind") == OK, F.col("a_end"))).alias("last"),
            F.max("a").alias("start"), F.count_if(F.col("what") < FINDING).alias("pieces")).head()  # fmt: skip
        assert counted is not None  # noqa: S101 - an aggregate without groups has one row
        if not counted["pieces"]:
            return
        last = max(counted["last"] or 0, counted["start"] or 0) + 1
        slices = max(1, -(-2 * counted["pieces"] * by_time.BYTES_PER_PIECE // self._memory_limit))
        slicing = Slicing(
            width=-(-last // slices),
            extra=REALTIME if self._order == REALTIME else "none",
            unordered=self._question.workload == "list-append",
            memory_limit=self._memory_limit,
        )
        places = self._places(numbers)
        found.shown = self._cycles(numbers, places, slicing, counted["pieces"])

    def _cycles(self, numbers: DataFrame, places: Places, slicing: Slicing, count: int) -> list[dict[str, Any]]:
        what = F.col("what")
        width = slicing.width

        def plain(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                yield from by_time.sliced(numbers_of(batch), places, width)

        def fans(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            kept = [batch for batch in batches if batch.num_rows]
            if kept:
                yield from by_time.sliced_fans(numbers_of(pa.Table.from_batches(kept).combine_chunks()), places, width)

        tasks = max(self._least, count // _ROWS_PER_TASK)
        rows = numbers.where(what.isin(EDGE, VERTEX, GROUP)).mapInArrow(plain, struct_of(SLICED))
        some = numbers.where(what.isin(READER, WRITER)).repartition(tasks, "key_at", "key_place")
        rows = rows.unionByName(some.mapInArrow(fans, struct_of(SLICED)))
        spread = rows.repartition(tasks, "slice").sortWithinPartitions("slice")
        layout = struct_of(by_time.SHOWN)
        shown = spread.mapInArrow(partial(by_time.decided, slicing=slicing, windows=False), layout)
        shown = shown.persist(StorageLevel.DISK_ONLY)
        try:
            told = _told(shown, "told")
            across = shown.where(what != TOLD).repartition(self._least, "slice").sortWithinPartitions("slice")
            told += _told(across.mapInArrow(partial(by_time.decided, slicing=slicing, windows=True), layout), "told")
            return told
        finally:
            shown.unpersist()

    def _places(self, numbers: DataFrame) -> Places:
        """Returns the places of the transactions without an answer that others depend on."""
        leads = (F.col("what").isin(EDGE, READER)) & (F.col("a_kind") == INFO)
        end = F.min(F.when((F.col("what") == EDGE) & (F.col("b_kind") == OK), F.col("b_end"))).alias("end")
        rows = numbers.where(leads).groupBy("a").agg(end).toArrow().sort_by("a")
        return Places(rows.column("a").to_numpy(), rows.column("end").fill_null(-1).to_numpy())

    def _processes(self) -> DataFrame:
        """Returns an edge from each ok transaction to the next ok one of its process."""
        ok = self._operations.where(F.col("type") == str(OpType.OK)).select(
            F.col("process"), F.col("invoke_index").alias("start"), F.col("complete_index").alias("end")
        )
        before = Window.partitionBy("process").orderBy("start")
        pairs = ok.select(
            F.lag("start").over(before).alias("a"), F.lag("end").over(before).alias("a_end"),
            F.col("process").alias("a_process"), F.col("start").alias("b"), F.col("end").alias("b_end"),
            F.col("process").alias("b_process"),
        ).where(F.col("a").isNotNull())  # fmt: skip
        constants = {"what": EDGE, "kind": _KERNEL_PROCESS, "a_kind": OK, "b_kind": OK, "key_at": -1}
        return conform(pairs.withColumns({name: F.lit(value) for name, value in constants.items()}),
            pa.schema([PIECES.field(name) for name in NUMBERS]))  # fmt: skip

    def columns(self, starts: Sequence[int]) -> Columns:
        """Returns the transactions with these starts, in this order."""
        wanted = self._spark.createDataFrame([(start,) for start in starts], "invoke_index long")
        rows = self._operations.join(F.broadcast(wanted), "invoke_index", "left_semi").toArrow()
        table = rows.sort_by("invoke_index").combine_chunks()
        batches = table.to_batches() or [pa.RecordBatch.from_pylist([], schema=table.schema)]
        return ColumnReader("the history").of_batch(batches[0])

    def names(self, pieces: DataFrame, refs: Sequence[Ref]) -> Mapping[Ref, Name]:
        """Returns the words of pieces."""
        if not refs:
            return {}
        layout = pa.schema([PIECES.field(name) for name in by_time.REF])
        columns = np.array(refs, np.int64).T
        arrays = [pa.array(column).cast(field.type) for column, field in zip(columns, layout, strict=True)]
        wanted = self._spark.createDataFrame(pa.Table.from_arrays(arrays, schema=layout))
        kept = {name: F.coalesce(F.col(name), F.lit(0)).alias(name) for name in by_time.REF}
        rows = pieces.select(*kept.values(), "key", "before_text", "after_text", "source")
        rows = rows.join(F.broadcast(wanted), list(by_time.REF), "left_semi")
        return {
            tuple(row[name] for name in by_time.REF): (
                row["key"], row["before_text"], row["after_text"], -1 if row["source"] is None else row["source"],
            )
            for row in rows.collect()
        }  # fmt: skip
