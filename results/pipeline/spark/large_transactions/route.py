"""Runs the steps with Spark; see the package."""

from __future__ import annotations

import json
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - the name that all of Spark's users know
from pyspark.sql.pandas.types import to_arrow_schema

from checker.consistency import ATOMIC_VISIBILITY, PROCESS, REALTIME, TRANSACTION_ORDER, order_of, searched
from checker.formats.columns import NEEDED, OK, ColumnReader
from harness.errors import InputError, LabrysError
from harness.op import OpType
from results.pipeline.decide.judges import row_of
from results.pipeline.spark.large_transactions import by_key, by_time
from results.pipeline.spark.large_transactions.by_time import Slicing
from results.pipeline.spark.large_transactions.finish import (
    OUT_OF_MEMORY,
    Gathered,
    alone,
    judgement,
    refs_of,
    starts_of,
)  # fmt: skip
from results.pipeline.spark.large_transactions.parcels import PARCELS, batch_of, contents, packed, unpacked
from results.pipeline.spark.large_transactions.pieces import (
    EDGE,
    FINDINGS,
    NUMBERS,
    PARTS,
    REF,
    SLICED,
    WORDS,
    Places,
    numbers_of,
)  # fmt: skip
from results.pipeline.spark.types import conform, struct_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyspark.sql import DataFrame

    from checker.consistency import Question
    from checker.formats.columns import Columns, Int64s
    from checker.judging import Judge, Judgement
    from results.pipeline.spark.large_transactions.by_key import OfKeys
    from results.pipeline.spark.large_transactions.by_time import Shown
    from results.pipeline.spark.large_transactions.finish import Name, Ref

DATAFLOW: Final = "dataflow"  # the column `engine`
_KERNEL_PROCESS: Final = 8  # the kind of an edge of processes, as in the kernel
_SHARE: Final = 4  # a partition of keys has about this part of the memory limit
_TASK_BYTES: Final = 1 << 27  # of rows in a task, as far as is known; a task has many buckets, one after the other
_PART_BYTES: Final = 60  # of a part without its text
_PIECE_BYTES: Final = 90
_OPEN: Final = pa.schema({"start": pa.int64(), "end": pa.int64()})

# What the keys of a bucket show: numbers about them, JSON for the driver, and tables in parcels.
HELD: Final = pa.schema(
    {
        "pieces": pa.int64(),
        "end": pa.int64(),  # the last index of a completion of an ok transaction, or of a start
        "told": pa.string(),
        "open": pa.binary(),  # `_OPEN`: transactions without an answer that others depend on
        "findings": pa.binary(),  # null if there are none
        "numbers": pa.binary(),
        "words": pa.binary(),
    }
)
# What a slice or a window shows: JSON, or a parcel for a window.
SHOWN: Final = pa.schema([*PARCELS, pa.field("told", pa.string())])


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
        judged, columns = _judgement(
            operations.select(*NEEDED), judge, judge.question(), size=size, text=text, memory_limit=memory_limit
        )
    except LabrysError as error:
        return {**about, "verdict": "unknown", "cause": "error", "explanation": str(error)}
    row = row_of(judge.name, judged, columns, size)
    return {**about, **row, **({"cause": judged.cause} if row.get("cause") and judged.cause == OUT_OF_MEMORY else {})}


def _judgement(
    operations: DataFrame, judge: Judge, question: Question, *, size: int, text: int, memory_limit: int
) -> tuple[Judgement, Columns]:
    for source in (TRANSACTION_ORDER, ATOMIC_VISIBILITY):
        if source in question.sources:
            raise InputError(
                f"parts of a history do not use {source}, and this one takes more than the limit of {memory_limit >> 20} MiB; "
                f"raise it with --memory-limit, or leave {source} away"
            )
    left_out: list[int] = []
    while True:
        steps = _Steps(operations, question, size=size, text=text, memory_limit=memory_limit)
        pieces = steps.by_key(left_out)
        try:
            keys = pieces.select(
                "told", "pieces", "end", "open", F.col("findings").isNotNull().alias("finds")
            ).collect()
            told = [answer for row in keys for answer in json.loads(row["told"])]
            gathered = Gathered(told=told, size=size, memory_limit=memory_limit)
            gathered.hold()
            wrong = gathered.wrong()
            if wrong is not None:
                columns = steps.columns([wrong[0]])
                return alone(judge, columns, size), columns
            if gathered.contradicted() != left_out:
                left_out = gathered.contradicted()
                continue
            if gathered.twice() is None:
                if any(row["finds"] for row in keys):
                    steps.findings(pieces, gathered)
                steps.by_time(pieces, keys, gathered)
            columns = steps.columns(starts_of(gathered))
            names = steps.names(pieces, sorted(refs_of(gathered)))
            return judgement(question, gathered, columns, names), columns
        finally:
            pieces.unpersist()


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
        """Returns what the keys of each bucket show (`HELD`)."""
        question, limit = self._question, self._memory_limit
        needed = self._size * 3 * by_key.BYTES_PER_PART + 4 * self._text
        buckets = max(self._least, -(-needed * _SHARE // limit))

        def divided(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            parts = by_key.parts(batches, question)
            yield from packed(
                ((part.column("address").to_numpy() % buckets, part) for part in parts), PARTS, limit // 4
            )

        def held(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for _, parts in unpacked(batches, PARTS):
                yield _held(by_key.of_keys(parts, question, left_out, limit))

        moved = self._size * 3 * _PART_BYTES + self._text
        parcels = self._spread(self._operations.mapInArrow(divided, struct_of(PARCELS)), buckets, moved)
        return parcels.mapInArrow(held, struct_of(HELD)).persist(StorageLevel.DISK_ONLY)

    def _spread(self, parcels: DataFrame, buckets: int, moved: int) -> DataFrame:
        """Returns parcels with those of a bucket in one partition, one after the other; `moved` is the bytes of their rows."""
        tasks = min(buckets, max(self._least, moved // _TASK_BYTES))
        return parcels.repartition(tasks, "bucket").sortWithinPartitions("bucket")

    def findings(self, pieces: DataFrame, gathered: Gathered) -> None:
        """Adds the anomalies that are no cycles."""

        def unpack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                yield from (batch_of(content, FINDINGS) for content in batch.column("findings"))

        some = pieces.where(F.col("findings").isNotNull()).select("findings").mapInArrow(unpack, struct_of(FINDINGS))
        inside = F.col("name") == by_key.INTERNAL
        first = F.min(F.struct("place", "number", "step", "name", "about")).alias("first")
        once = some.where(inside).groupBy("at").agg(first).select("at", "first.*").select(*some.columns)
        counts: Counter[str] = Counter()
        for told in gathered.told:
            counts.update(told.get("counts", {}))
        counts[by_key.INTERNAL] = once.count()
        gathered.counts = {name: count for name, count in counts.items() if count}
        order = Window.partitionBy("name").orderBy("step", "at", "place", "number")
        numbered = some.where(~inside).unionByName(once).withColumn("nth", F.row_number().over(order))
        gathered.findings = [row.asDict() for row in numbered.where(F.col("nth") <= by_key.KEPT).collect()]

    def by_time(self, pieces: DataFrame, keys: Sequence[Any], gathered: Gathered) -> None:
        """Adds the cycles."""
        count = sum(row["pieces"] for row in keys)
        if not count:
            return
        numbers = pieces.select("numbers")
        if self._order == PROCESS:
            numbers = numbers.unionByName(self._processes())
            count += self._size
        last = max(row["end"] for row in keys) + 1
        slices = max(1, -(-2 * count * by_time.BYTES_PER_PIECE // self._memory_limit))
        slicing = Slicing(
            width=-(-last // slices),
            extra=REALTIME if self._order == REALTIME else "none",
            unordered=self._question.workload == "list-append",
            memory_limit=self._memory_limit,
            more=tuple(searched(self._question.model, self._question.anomalies)),
        )
        places = _places([row["open"] for row in keys])
        gathered.shown = self._cycles(numbers, places, slicing, slices, 2 * count * _PIECE_BYTES)

    def _cycles(
        self, numbers: DataFrame, places: Places, slicing: Slicing, slices: int, moved: int
    ) -> list[dict[str, Any]]:
        width, limit = slicing.width, self._memory_limit
        everywhere = self._spark.sparkContext.broadcast(places)

        def cut(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            rows = (
                some
                for batch in batches
                for content in batch.column("numbers")
                for some in by_time.sliced(numbers_of(batch_of(content, NUMBERS)), everywhere.value, width)
            )
            yield from packed(((some.column("slice").to_numpy(), some) for some in rows), SLICED, limit // 4)

        def decided(batches: Iterator[pa.RecordBatch], *, windows: bool) -> Iterator[pa.RecordBatch]:
            for number, rows in unpacked(batches, SLICED):
                yield from _shown(by_time.decided(number, rows, slicing, windows=windows))

        layout = struct_of(SHOWN)
        spread = self._spread(numbers.mapInArrow(cut, struct_of(PARCELS)), slices, moved)
        shown = spread.mapInArrow(partial(decided, windows=False), layout).persist(StorageLevel.DISK_ONLY)
        try:
            told = _told(shown)
            across = self._spread(shown.where(F.col("content").isNotNull()).select(*PARCELS.names), slices, moved // 4)
            return told + _told(across.mapInArrow(partial(decided, windows=True), layout))
        finally:
            shown.unpersist()
            everywhere.unpersist()

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
        edges = conform(pairs.withColumns({name: F.lit(value) for name, value in constants.items()}), NUMBERS)

        def packed_rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                yield pa.RecordBatch.from_arrays([contents([batch.cast(NUMBERS)], NUMBERS)], names=["numbers"])

        return edges.mapInArrow(packed_rows, "numbers binary")

    def columns(self, starts: Sequence[int]) -> Columns:
        """Returns the transactions with these starts, in this order."""
        if not starts:
            schema = to_arrow_schema(self._operations.schema)
            return ColumnReader("the history").of_batch(pa.RecordBatch.from_pylist([], schema=schema))
        wanted = self._spark.createDataFrame([(start,) for start in starts], "invoke_index long")
        rows = self._operations.join(F.broadcast(wanted), "invoke_index", "left_semi").toArrow()
        table = rows.sort_by("invoke_index").combine_chunks()
        batches = table.to_batches() or [pa.RecordBatch.from_pylist([], schema=table.schema)]
        return ColumnReader("the history").of_batch(batches[0])

    def names(self, pieces: DataFrame, refs: Sequence[Ref]) -> Mapping[Ref, Name]:
        """Returns the words of pieces."""
        if not refs:
            return {}
        starts = np.array([ref[REF.index("a")] for ref in refs], np.int64)
        wanted = set(refs)

        def named(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                for one, other in zip(batch.column("numbers"), batch.column("words"), strict=True):
                    numbers, words = numbers_of(batch_of(one, NUMBERS)), batch_of(other, WORDS)
                    rows = np.flatnonzero(np.isin(numbers["a"], starts))
                    its = zip(*(numbers[name][rows].tolist() for name in REF), strict=True)
                    some = [(row, ref) for row, ref in zip(rows.tolist(), its, strict=True) if ref in wanted]
                    told = json.dumps([[ref, words.slice(row, 1).to_pylist()[0]] for row, ref in some])
                    yield pa.RecordBatch.from_pylist([{"told": told}])

        rows = pieces.select("numbers", "words").mapInArrow(named, "told string").collect()
        return {
            tuple(ref): (its["key"], its["before_text"], its["after_text"], -1 if its["source"] is None else its["source"])
            for row in rows for ref, its in json.loads(row["told"])
        }  # fmt: skip


def _held(answers: OfKeys) -> pa.RecordBatch:
    """Returns the row (`HELD`) of a bucket."""
    numbers = numbers_of(answers.numbers)
    ends: Int64s = np.maximum(numbers["a"], np.where(numbers["a_kind"] == OK, numbers["a_end"], 0))
    starts, earliest = by_key.open_ones(numbers)
    open_ = pa.RecordBatch.from_arrays([pa.array(starts), pa.array(earliest)], schema=_OPEN)
    return pa.RecordBatch.from_arrays(
        [
            pa.array([len(ends)], pa.int64()),
            pa.array([int(ends.max()) if len(ends) else 0], pa.int64()),
            pa.array([json.dumps(answers.told)]),
            contents([open_], _OPEN),
            contents([answers.findings], FINDINGS) if answers.findings.num_rows else pa.nulls(1, pa.binary()),
            contents([answers.numbers], NUMBERS),
            contents([answers.words], WORDS),
        ],
        schema=HELD,
    )


def _shown(shown: Shown) -> Iterator[pa.RecordBatch]:
    """Yields the rows (`SHOWN`) of a slice or of a window."""
    if shown.told:
        yield pa.RecordBatch.from_pylist([{"told": json.dumps(shown.told)}], schema=SHOWN)
    for parcels in packed(((rows.column("slice").to_numpy(), rows) for rows in shown.rows), SLICED, 1 << 62):
        none = pa.nulls(parcels.num_rows, pa.string())
        yield pa.RecordBatch.from_arrays([*parcels.columns, none], schema=SHOWN)


def _told(rows: DataFrame) -> list[dict[str, Any]]:
    told_rows = rows.where(F.col("told").isNotNull()).select("told").collect()
    return [answer for row in told_rows for answer in json.loads(row["told"])]


def _places(some: Sequence[bytes]) -> Places:
    """Returns the places of the transactions without an answer that others depend on, by what each bucket knows (`_OPEN`)."""
    batches = [batch_of(pa.scalar(bytes(content), pa.binary()), _OPEN) for content in some]
    table = pa.Table.from_batches(batches, schema=_OPEN)
    return Places(*by_key.earliest(table.column("start").to_numpy(), table.column("end").to_numpy()))
