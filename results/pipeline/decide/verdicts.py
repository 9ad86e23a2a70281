"""Verdicts for each run and key: DataFrame in, DataFrame out.

The rule: each verdict, operation, explanation and counterexample is the one that `labrys check` gives for the same operations,
or `unknown` with its cause. There are three routes:

- The kernel decides registers whose values are integers. An operation is a few integers, and a call decides many keys.
- Dataflow decides such a register of any size, if it does not fit into a worker and its values are unique.
- The code of `labrys check` decides all others, from whole operations, one key at a time.

Keys whose operations carry the system's own order take the third route if they fit into a worker. For larger keys it stays
unknown whether that order is legal.

`verdicts` runs jobs while it is called, because each step depends on the results of the one before. The results are small: one
row for each key.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - the name that all of Spark's users know

from checker.checking import conventions_of, make_model
from checker.explain.sentences import VALID
from checker.formats.read import PARQUET
from checker.independent import EXPLAINED
from checker.search.deciders import DEFAULT_MODEL
from checker.search.tables import OBJECTS as LONGEST_WHOLE
from harness.verdict import Verdict
from results.pipeline.decide.coding import coded, coding_of
from results.pipeline.decide.details import DATAFLOW, KERNEL, OBJECTS, TARGET, Work, examined
from results.pipeline.decide.kernel import BYTES_PER_OPERATION, TO_GENERAL, Budget, decide
from results.pipeline.large_keys.blame import blame
from results.pipeline.large_keys.clusters import has_cas
from results.pipeline.large_keys.columns import ADDRESS, ANSWER, schema_of
from results.pipeline.large_keys.scan import Scan, Scanning
from results.pipeline.schema import VERDICTS, conform
from results.pipeline.spark.keys import Keys, keys_of
from results.pipeline.spark.tables import union

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame

    from checker.models import Model
    from results.pipeline.decide.coding import RegisterCoding

_OPERATIONS_PER_TASK: Final = 1 << 20
ZONES: Final = "zones"
CHAIN: Final = "chain"
TOO_LARGE: Final = (
    "It is not known whether the system's own order is a legal one: the key has more operations than fit into its memory "
    "limit, {most}."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictOptions:
    """The options of the check, as `labrys check` has them.

    Attributes:
        model: The model's class, or the name of an installed one.
        initial: The initial state in EDN; None: the model's own.
        conventions: `nil_read`, `failed_cas` and `crashed_dequeue`, if they differ from the conventions of our own formats.
        time_limit_s: Wall time for the search of one key; None for no limit.
        memory_limit: Bytes for one key in a worker.
        hot_operations: Dataflow decides a register's key with more operations than this; None: with more than the memory limit
            allows in one worker.
        bucket_events: How many events of a hot key make a slice of its timeline.
        explained: For how many invalid keys of a run a counterexample is searched; those with the earliest violations.
    """

    model: type[Model] | str = DEFAULT_MODEL
    initial: str | None = None
    conventions: Mapping[str, str] = field(default_factory=dict)
    time_limit_s: float | None = 60.0
    memory_limit: int = 1 << 30
    hot_operations: int | None = None
    bucket_events: int = 1 << 17
    explained: int = EXPLAINED

    @property
    def most_in_kernel(self) -> int:
        """The maximum number of operations of a key that goes straight to the kernel."""
        return self.memory_limit // BYTES_PER_OPERATION if self.hot_operations is None else self.hot_operations


def verdicts(operations: DataFrame, options: VerdictOptions | None = None) -> DataFrame:
    """Decides the operations of each run and key.

    Args:
        operations: The columns of `schema.OPERATIONS`. Spark reads them several times.
        options: The options of the check.

    Returns:
        A row for each run and key, in the columns of `schema.VERDICTS`.

    Raises:
        InputError: The model does not exist, or cannot have this initial state.
    """
    options = options or VerdictOptions()
    model = make_model(options.model, options.initial, {**conventions_of(PARQUET), **options.conventions})
    work = Work(model=model, time_limit_s=options.time_limit_s, memory_limit=options.memory_limit)
    keys = keys_of(operations)
    coding = coding_of(model)
    whole = keys.table.where((F.col("orders") > 0) & (F.col("operations") <= work.most))
    number_whole = whole.count() if keys.ordered else 0
    if coding is None or number_whole == keys.count:
        answers, general, counts = None, keys.table, {TO_GENERAL: keys.count}
    else:
        answers = _answers(operations, keys, coding, options, whole if number_whole else None).localCheckpoint()
        general = keys.table.join(answers.where(F.col("verdict") == TO_GENERAL).select(ADDRESS), ADDRESS)
        counts = {row["verdict"]: row["count"] for row in answers.groupBy("verdict").count().collect()}
    explained = _explained(operations, keys, answers, general, counts, work=work, options=options)
    rows = _table(keys, answers, explained, model.name)
    return rows if number_whole == keys.ordered else _with_unknown_orders(rows, keys, work.most)


def _answers(
    operations: DataFrame, keys: Keys, coding: RegisterCoding, options: VerdictOptions, whole: DataFrame | None
) -> DataFrame:
    """Returns the answer that columns alone give for each key with a relevant operation.

    Args:
        operations: All operations.
        keys: The keys.
        coding: How integers represent operations.
        options: The options of the check.
        whole: The keys that always take the route of whole operations; None for none.
    """
    touches = coded(operations, coding, keys.salt)
    if whole is None:
        return _by_columns(touches, keys, coding, options)
    others = _by_columns(touches.join(whole.select(ADDRESS), ADDRESS, "left_anti"), keys, coding, options)
    sent = whole.withColumns({"verdict": F.lit(TO_GENERAL), "analyzer": F.lit("none"), "tied": F.lit(col=True)})
    return others.unionByName(conform(sent, ANSWER).withColumn("engine", F.lit(OBJECTS)))


def _by_columns(touches: DataFrame, keys: Keys, coding: RegisterCoding, options: VerdictOptions) -> DataFrame:
    """Returns the answers for keys, by the kernel or by dataflow."""
    budget = Budget(initial=coding.initial, time_limit_s=options.time_limit_s, memory_limit=options.memory_limit)
    tasks = _tasks(keys, keys.count)
    if keys.greatest <= options.most_in_kernel:
        return by_kernel(touches, budget, tasks)
    large = keys.table.where(F.col("operations") > options.most_in_kernel).select(ADDRESS)
    hot = F.broadcast(large)
    decided = by_dataflow(touches.join(hot, ADDRESS, "left_semi"), budget, tasks, options.bucket_events)
    if large.count() == keys.count:
        return decided
    return by_kernel(touches.join(hot, ADDRESS, "left_anti"), budget, tasks).unionByName(decided)


def by_dataflow(touches: DataFrame, budget: Budget, partitions: int, bucket_events: int) -> DataFrame:
    """Decides keys by dataflow if it suits them, and the others by the kernel, within the limits of a key."""
    chained = has_cas(touches)
    scanning = Scanning(
        initial=budget.initial, bucket_events=bucket_events, memory_limit=budget.memory_limit, chained=chained
    )
    scan = Scan(touches, scanning)
    found = scan.found()
    spark = touches.sparkSession
    answers: list[dict[str, object]] = []
    unsuited, bad = [], []
    for each in found:
        if each.general:
            answers.append({ADDRESS: each.address, "verdict": TO_GENERAL, "tied": True})
        elif each.unsuited:
            unsuited.append((each.address,))
        elif each.bad:
            bad.append(each)
        else:
            analyzer = CHAIN if each.chained else ZONES
            answers.append({ADDRESS: each.address, "verdict": str(Verdict.VALID), "analyzer": analyzer, "tied": False})
    if bad:
        theirs = F.broadcast(spark.createDataFrame([(each.address,) for each in bad], schema_of(ADDRESS)))
        blamed = blame(touches.join(theirs, ADDRESS, "left_semi"), scan, bad, scanning)
        for each in bad:
            found_blame = blamed.get(each.address)
            if found_blame is None:
                unsuited.append((each.address,))
                continue
            answers.append(
                {
                    ADDRESS: each.address,
                    "verdict": str(Verdict.INVALID),
                    "analyzer": CHAIN if each.chained else ZONES,
                    "kind": found_blame.kind,
                    "op_start": found_blame.start,
                    "op_end": found_blame.end,
                    "core": [] if found_blame.kind is None else list(found_blame.part),
                    "tied": False,
                    # `blame` gives a kind if the violation depends on too many operations to decide them by themselves.
                    "part": list(found_blame.part) if found_blame.kind is None else [],
                    "observed": list(found_blame.observed),
                }
            )
    scan.release()
    rows = [tuple(answer.get(name) for name in ANSWER.names) for answer in answers]
    decided = spark.createDataFrame(rows, ANSWER).withColumn("engine", F.lit(DATAFLOW))
    if not unsuited:
        return decided
    theirs = F.broadcast(spark.createDataFrame(unsuited, schema_of(ADDRESS)))
    return decided.unionByName(by_kernel(touches.join(theirs, ADDRESS, "left_semi"), budget, partitions))


def by_kernel(touches: DataFrame, budget: Budget, partitions: int) -> DataFrame:
    """Decides keys by the kernel, from their coded operations."""
    spread = touches.repartition(partitions, ADDRESS).sortWithinPartitions(ADDRESS)
    return spread.mapInArrow(partial(decide, budget=budget), ANSWER).withColumn("engine", F.lit(KERNEL))


def _tasks(keys: Keys, count: int) -> int:
    """Returns the number of tasks for so many of the keys."""
    spark = keys.table.sparkSession
    fewest = 2 * spark.sparkContext.defaultParallelism
    return max(1, min(count, max(fewest, keys.operations // _OPERATIONS_PER_TASK)))


def _explained(
    operations: DataFrame,
    keys: Keys,
    answers: DataFrame | None,
    general: DataFrame,
    counts: Mapping[str, int],
    *,
    work: Work,
    options: VerdictOptions,
) -> DataFrame | None:
    """Returns rows of verdicts, with `address`, for all keys that need more than a valid row; None if no key does."""
    columns = ["run", "key", ADDRESS, *(name for name in TARGET if name not in {"wanted", "whole", "shrink"}), "tied"]
    bad: list[DataFrame] = []
    count = counts.get(str(Verdict.INVALID), 0) + counts.get(str(Verdict.UNKNOWN), 0)
    if answers is not None and count:
        doubtful = answers.where(F.col("verdict").isin(str(Verdict.INVALID), str(Verdict.UNKNOWN)))
        bad.append(keys.table.join(doubtful, ADDRESS).select(*columns))
    decided = None
    if of_objects := counts.get(TO_GENERAL, 0):
        first = _undecided(general)
        tasks = _tasks(keys, of_objects)
        decided = examined(operations, first, work, count=of_objects, partitions=tasks).localCheckpoint()
        refuted = decided.where(F.col("verdict") == str(Verdict.INVALID))
        if again := refuted.count():
            # The second examination only searches for a counterexample.
            count += again
            found = refuted.select(ADDRESS, "verdict", "kind", F.col("op_complete_index").alias("op_end"))
            others = first.drop("verdict", "kind", "op_end").withColumn("tied", F.lit(col=True))
            bad.append(others.join(found, ADDRESS).select(*columns))
    if not bad:
        return decided
    targets = _targets(union(bad), work, options.explained).localCheckpoint()
    explained = examined(operations, targets, work, count=count, partitions=_tasks(keys, count)).localCheckpoint()
    if decided is None:
        return explained
    return explained.unionByName(decided.join(explained.select(ADDRESS), ADDRESS, "left_anti"))


def _undecided(keys: DataFrame) -> DataFrame:
    """Returns targets for keys without an answer."""
    types = {"op_start": "bigint", "op_end": "bigint"} | dict.fromkeys(
        ("core", "part", "observed", "wanted"), "array<bigint>"
    )
    nothing = {name: F.lit(None).cast(types.get(name, "string")) for name in TARGET if name != "operations"}
    known = {"engine": F.lit(OBJECTS), "whole": F.lit(col=True), "shrink": F.lit(col=False)}
    return keys.withColumns(nothing | known)


def _targets(bad: DataFrame, work: Work, explained: int) -> DataFrame:
    """Returns targets for keys that are not valid: which operations to examine, and for what purpose."""
    invalid = F.col("verdict") == str(Verdict.INVALID)
    bad = _whole_where_they_fit(bad, min(LONGEST_WHOLE, work.most))
    place = F.row_number().over(Window.partitionBy("run", invalid).orderBy(F.col("op_end").asc_nulls_last(), "key"))
    size = F.coalesce(F.array_size("part"), F.col("operations"))
    columns_cannot = (F.col("engine") == DATAFLOW) | (invalid & (F.col("tied") | F.col("kind").eqNullSafe("search")))
    part = F.coalesce("part", F.array())
    named = F.concat(F.coalesce("core", F.array()), F.filter(F.array("op_start"), lambda start: start.isNotNull()))
    all_of_it = F.col("whole") & F.col("part").isNull()
    return (
        bad.withColumn("shrink", invalid & (place <= explained))
        .withColumn("whole", (F.col("shrink") | columns_cannot) & size.between(1, work.most))
        .where((F.col("engine") != OBJECTS) | F.col("shrink"))
        .withColumn(
            "wanted", F.when(~all_of_it, F.array_union(named, F.when(F.col("whole"), part).otherwise(F.array())))
        )
    )


def _whole_where_they_fit(bad: DataFrame, most: int) -> DataFrame:
    """Drops the `part` of short keys, so that all their operations are examined.

    The simplest counterexample may lie outside the part, and `labrys check` looks for it there.
    """
    fits = (F.array_size("part") > 0) & (F.col("operations") <= most)
    return bad.withColumn("part", F.when(~F.coalesce(fits, F.lit(col=False)), F.col("part")))


def _table(keys: Keys, answers: DataFrame | None, explained: DataFrame | None, model: str) -> DataFrame:
    rest = keys.table if explained is None else keys.table.join(explained.select(ADDRESS), ADDRESS, "left_anti")
    if answers is not None:
        rest = rest.join(answers.select(ADDRESS, "analyzer", "engine"), ADDRESS, "left")
    else:
        rest = rest.withColumns({"analyzer": F.lit(None).cast("string"), "engine": F.lit(None).cast("string")})
    before, after = VALID.split("{operations}")
    valid = rest.withColumns(
        {
            "verdict": F.lit(str(Verdict.VALID)),
            "model": F.lit(model),
            # A key without a relevant operation has no answer; the near-linear analyzer of registers would find it valid.
            "analyzer": F.coalesce("analyzer", F.lit(ZONES)),
            "engine": F.coalesce("engine", F.lit(KERNEL)),
            "explanation": F.concat(F.lit(before), "operations", F.lit(after)),
        }
    )
    rows = conform(valid, VERDICTS)
    return rows if explained is None else rows.unionByName(conform(explained, VERDICTS))


def _with_unknown_orders(rows: DataFrame, keys: Keys, most: int) -> DataFrame:
    """Sets the order of keys to unknown if their operations carry an order and are too many to examine."""
    large = keys.table.where((F.col("orders") > 0) & (F.col("operations") > most))
    theirs = large.select(F.col("run").alias("its_run"), F.col("key").alias("its_key"))
    same = (F.col("run") == F.col("its_run")) & F.col("key").eqNullSafe(F.col("its_key"))
    is_large = F.col("its_run").isNotNull()
    joined = rows.join(F.broadcast(theirs), same, "left")
    orders = {
        "order_agrees": F.when(is_large, F.lit(str(Verdict.UNKNOWN))).otherwise(F.col("order_agrees")),
        "order_reason": F.when(is_large, F.lit(TOO_LARGE.format(most=most))).otherwise(F.col("order_reason")),
    }
    return conform(joined.withColumns(orders), VERDICTS)
