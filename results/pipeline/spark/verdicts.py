"""Verdicts for each run and key: DataFrame in, DataFrame out. The functions of `results.pipeline.decide` do the work.

The columns that a verdict needs go through the shuffle as integers. Only keys that integers cannot represent, and those that
are not valid, are read again as whole operations.

`verdicts` runs jobs while it is called, because each step depends on the results of the one before. The results are small: one
row for each key.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - the name that all of Spark's users know
from pyspark.sql.pandas.functions import arrow_udf

from checker.consistency import Asking
from checker.formats.columns import NEEDED, OPTIONAL
from results.pipeline.decide import judges
from results.pipeline.decide.asked import VerdictOptions
from results.pipeline.decide.coding import ADDRESS, CODED, TEXTS, coded, made
from results.pipeline.decide.details import VALID_FROM, examined, valid
from results.pipeline.decide.kernel import ANSWER, TO_GENERAL, decide
from results.pipeline.decide.rows import TARGET, TARGETED, Target
from results.pipeline.decide.targets import (
    REFUTED,
    answered,
    chosen,
    is_doubtful,
    is_general,
    is_refuted,
    needs_objects,
)
from results.pipeline.schema import OPERATIONS, VERDICTS
from results.pipeline.spark.keys import address, keys_of
from results.pipeline.spark.large_transactions.route import decided as decided_in_parts
from results.pipeline.spark.tables import union
from results.pipeline.spark.types import conform, struct_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pyspark.sql import Column, DataFrame

    from checker.judging import Judge
    from results.pipeline.decide.asked import Asked
    from results.pipeline.decide.coding import RegisterCoding
    from results.pipeline.spark.keys import Keys

_OPERATIONS_PER_TASK: Final = 1 << 20
_SENT_TO_ALL: Final = 50_000
_OF_KEYS: Final = ("run", "key", "operations", "orders")
_LONGS: Final = pa.list_(pa.int64())
# A key to read again. `observed` is null if no operations are wanted for the values that they make.
_TARGETS: Final = pa.schema(
    {
        **dict.fromkeys(("run", "key"), pa.string()),
        ADDRESS: pa.int64(),
        "wanted": _LONGS,
        "observed": _LONGS,
        TARGET: pa.string(),
    }
)

# A key that is not valid: its answer, with its name and its counts.
_BAD: Final = pa.schema(
    [
        _TARGETS.field("run"),
        _TARGETS.field("key"),
        *(pa.field(name, pa.int64()) for name in ("operations", "orders")),
        *ANSWER,
    ]
)


def judged(operations: DataFrame, judge: Judge, memory_limit: int) -> DataFrame:
    """Decides the operations of each run and key by the checker of a workload.

    Args:
        operations: The columns of `schema.OPERATIONS`. Spark reads them twice.
        judge: The checker. Spark sends it to the workers, which must be able to import its modules.
        memory_limit: Bytes for one key in a worker.

    Returns:
        A row for each run and key, in the columns of `schema.VERDICTS`.
    """
    large, is_all = _large_transactions(operations, memory_limit) if isinstance(judge, Asking) else ([], False)
    if large:
        answers = [
            decided_in_parts(
                operations.where((F.col("run") == key["run"]) & F.col("key").eqNullSafe(F.lit(key["key"]))),
                judge, size=key["operations"], text=key["text"], memory_limit=memory_limit,
            )
            for key in large
        ]  # fmt: skip
        tuples = [tuple(row.get(name) for name in VERDICTS.names) for row in answers]
        frame = operations.sparkSession.createDataFrame(tuples, struct_of(VERDICTS))
        if is_all:
            return frame
        names = operations.sparkSession.createDataFrame(
            [(key["run"], key["key"]) for key in large], "its_run string, its_key string"
        )
        rest = operations.join(F.broadcast(names), _same_key(operations, names), "left_anti")
        return frame.unionByName(judged(rest, judge, memory_limit))
    keys = keys_of(operations)
    rows = operations.select("run", *NEEDED, *OPTIONAL, address(keys.salt).alias(ADDRESS))
    spread = rows.repartition(_tasks(keys, keys.count), ADDRESS).sortWithinPartitions(ADDRESS, "invoke_index")
    decided = spread.mapInArrow(partial(judges.decide, judge=judge, memory_limit=memory_limit), struct_of(VERDICTS))
    return conform(decided, VERDICTS)


def _large_transactions(operations: DataFrame, memory_limit: int) -> tuple[list[Any], bool]:
    """Returns the runs and keys that take more memory than one worker has, with their sizes, and whether these are all."""
    text = F.sum(F.coalesce(F.octet_length("value"), F.lit(0)) + F.coalesce(F.octet_length("result"), F.lit(0)))
    sizes = operations.groupBy("run", "key").agg(F.count("*").alias("operations"), text.alias("text"))
    limit = F.col("operations") * judges.BYTES_PER_OPERATION + F.col("text")
    sizes = sizes.withColumn("large", limit > memory_limit).localCheckpoint()
    large = sizes.where(F.col("large")).orderBy("run", "key").collect()
    return large, sizes.where(~F.col("large")).isEmpty()


def verdicts(operations: DataFrame, options: VerdictOptions | None = None) -> DataFrame:
    """Decides the operations of each run and key by a model.

    Args:
        operations: The columns of `schema.OPERATIONS`. Spark reads them several times.
        options: The options of the check.

    Returns:
        A row for each run and key, in the columns of `schema.VERDICTS`.

    Raises:
        InputError: The model does not exist, or cannot have this initial state.
    """
    options = options or VerdictOptions()
    asked = options.asked()
    keys = keys_of(operations)
    coding = asked.coding
    whole = keys.table.where(needs_objects(F.col("orders"), F.col("operations"), asked))
    number_whole = whole.count() if keys.ordered else 0
    answers, bad, parts = None, [], []
    general, count = keys.table, keys.count
    if coding is not None and number_whole < keys.count:
        answers = _answers(operations, keys, coding, asked, whole if number_whole else None).localCheckpoint()
        to_general = answers.where(is_general(F.col("verdict"))).select(ADDRESS)
        if number_whole:
            to_general = to_general.unionByName(whole.select(ADDRESS))
        counts = {row["verdict"]: row["count"] for row in answers.groupBy("verdict").count().collect()}
        general, count = keys.table.join(to_general, ADDRESS), counts.get(TO_GENERAL, 0) + number_whole
        if any(is_doubtful(verdict) for verdict in counts):
            doubtful = answers.where(is_doubtful(F.col("verdict")))
            bad.append(keys.table.join(doubtful, ADDRESS))
    if count:
        first = general.mapInArrow(_undecided, struct_of(_TARGETS))
        frame = _examined(operations, first, asked, count=count, tasks=_tasks(keys, count)).localCheckpoint()
        parts.append(frame)
        named = [F.col(column).alias(name) for name, column in REFUTED.items()]
        refuted = frame.where(is_refuted(F.col("verdict"))).select("run", "key", "operations", *named)
        # They are read again only for a counterexample.
        bad.append(refuted.withColumns({ADDRESS: address(keys.salt), "tied": F.lit(col=True), "orders": F.lit(0)}))
    explained = _explained(operations, keys, [conform(frame, _BAD) for frame in bad], asked)
    if explained is not None:
        parts = [_without(part, explained) for part in parts] + [explained]
    return union([*parts, _valid(keys, answers, parts, asked)])


def _explained(operations: DataFrame, keys: Keys, bad: Sequence[DataFrame], asked: Asked) -> DataFrame | None:
    """Returns the verdicts of the keys that are read again; None if there are none."""
    if not bad:
        return None
    most, explained = asked.most, asked.question.explaining.most

    def choose(its: pa.Table) -> pa.Table:
        return _chosen(its, most=most, explained=explained)

    targets = union(bad).groupBy("run").applyInArrow(choose, struct_of(_TARGETS)).localCheckpoint()
    count = targets.count()
    if not count:
        return None
    return _examined(operations, targets, asked, count=count, tasks=_tasks(keys, count)).localCheckpoint()


def _same_key(one: DataFrame, other: DataFrame) -> Column:
    return (one["run"] == other["its_run"]) & one["key"].eqNullSafe(other["its_key"])


def _without(rows: DataFrame, others: DataFrame) -> DataFrame:
    """Returns the rows whose key is in no other row."""
    theirs = others.select(F.col("run").alias("its_run"), F.col("key").alias("its_key"))
    return rows.join(theirs, _same_key(rows, theirs), "left_anti")


def _valid(keys: Keys, answers: DataFrame | None, parts: Sequence[DataFrame], asked: Asked) -> DataFrame:
    """Returns the verdicts of the keys that columns found valid."""
    rest = keys.table
    for part in parts:
        rest = _without(rest, part)
    if answers is None:
        rest = rest.withColumns({name: F.lit(None).cast("string") for name in ("analyzer", "engine")})
    else:
        rest = rest.join(answers.select(ADDRESS, "analyzer", "engine"), ADDRESS, "left")

    def rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield valid(batch, asked)

    return rest.select(*VALID_FROM).mapInArrow(rows, struct_of(VERDICTS))


def _answers(
    operations: DataFrame, keys: Keys, coding: RegisterCoding, asked: Asked, whole: DataFrame | None
) -> DataFrame:
    """Returns the answer that columns alone give for each key with an operation that matters.

    Args:
        operations: All operations.
        keys: The keys.
        coding: How integers represent operations.
        asked: What is asked about each key.
        whole: The keys that always take the route of whole operations; None for none.
    """

    def code(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield coded(batch, coding)

    rows = operations.select(address(keys.salt).alias(ADDRESS), *TEXTS)
    if whole is not None:
        rows = rows.join(F.broadcast(whole.select(ADDRESS)), ADDRESS, "left_anti")
    touches = rows.mapInArrow(code, struct_of(CODED))
    spread = touches.repartition(_tasks(keys, keys.count), ADDRESS).sortWithinPartitions(ADDRESS)
    return spread.mapInArrow(partial(decide, asked=asked, coding=coding), struct_of(ANSWER))


def _tasks(keys: Keys, count: int) -> int:
    """Returns the number of tasks for so many of the keys."""
    spark = keys.table.sparkSession
    fewest = 2 * spark.sparkContext.defaultParallelism
    return max(1, min(count, max(fewest, keys.operations // _OPERATIONS_PER_TASK)))


def _undecided(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yields targets (`_TARGETS`) for keys without an answer."""
    for batch in batches:
        yield _rows((_target(row), row[ADDRESS]) for row in batch.to_pylist())


def _target(row: Mapping[str, Any]) -> Target:
    return Target(**{name: row[name] for name in _OF_KEYS})


def _chosen(bad: pa.Table, *, most: int, explained: int) -> pa.Table:
    """Returns targets (`_TARGETS`) for the keys of a run that are not valid."""
    rows = bad.to_pylist()
    addresses = {row["key"]: row[ADDRESS] for row in rows}
    known = [(answered(_target(row), row), row["tied"]) for row in rows]
    batch = _rows((target, addresses[target.key]) for target in chosen(known, most=most, explained=explained))
    return pa.Table.from_batches([batch])


def _rows(targets: Iterable[tuple[Target, int]]) -> pa.RecordBatch:
    rows: list[dict[str, Any]] = [
        {
            "run": target.run,
            "key": target.key,
            ADDRESS: address,
            "wanted": target.wanted,
            "observed": target.observed if target.whole else None,
            TARGET: target.text(),
        }
        for target, address in targets
    ]
    return pa.RecordBatch.from_pylist(rows, schema=_TARGETS)


def _examined(operations: DataFrame, targets: DataFrame, asked: Asked, *, count: int, tasks: int) -> DataFrame:
    """Returns a row of verdicts for each target.

    Args:
        operations: All operations.
        targets: The columns `_TARGETS`.
        asked: What is asked about them.
        count: How many targets there are.
        tasks: The number of tasks.
    """
    about = targets.select(F.col("run").alias("its_run"), F.col("key").alias("its_key"), ADDRESS, "wanted", "observed")
    index = F.col("invoke_index")
    number = arrow_udf(_made, "long")  # type: ignore[call-overload]  # its stubs demand the argument that it warns of
    wanted = F.col("wanted").isNull() | F.array_contains("wanted", index)
    rows = operations.select(*OPERATIONS.names)
    theirs = rows.join(F.broadcast(about) if count <= _SENT_TO_ALL else about, _same_key(rows, about))
    theirs = theirs.where(wanted | F.array_contains("observed", number("f", "value")))
    layout = struct_of(TARGETED)
    nothing = F.lit(None).cast("string").alias(TARGET)
    heads = conform(targets, layout.add(ADDRESS, "long"))
    spread = theirs.select(*OPERATIONS.names, nothing, ADDRESS).unionByName(heads).repartition(tasks, ADDRESS)
    # The head of a key comes first: it has no invoke.
    ordered = spread.sortWithinPartitions(ADDRESS, F.col("invoke_index").asc_nulls_first(), "complete_index", "process")
    return ordered.drop(ADDRESS).mapInArrow(partial(examined, asked=asked), struct_of(VERDICTS))


def _made(f: pa.Array, value: pa.Array) -> pa.Array:
    return pa.array(made(f, value))
