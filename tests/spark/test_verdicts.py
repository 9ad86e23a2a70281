"""The Spark job's verdicts are those of `labrys check`."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pytest

from harness.randomness import stream
from results.pipeline.decide.asked import VerdictOptions
from results.pipeline.decide.details import TOO_LARGE
from results.pipeline.decide.kernel import KERNEL
from results.pipeline.decide.rows import BYTES_PER_OPERATION, OBJECTS
from results.pipeline.schema import OPERATIONS, VERDICTS
from results.pipeline.spark.types import struct_of
from results.pipeline.spark.verdicts import verdicts
from tests.spark.histories import (
    Kind,
    alone,
    any_kind,
    by_check,
    in_their_order,
    mixed_histories,
    row_order,
    write_runs,
    writes_and_reads,
)
from tests.unit.checker.conftest import draw_history

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path
    from random import Random

    from pyspark.sql import SparkSession

    from harness.op import Operation

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

RUNS = 250
SHUFFLES = "spark.sql.shuffle.partitions"


def by_spark(
    spark: SparkSession,
    folder: Path,
    runs: Mapping[str, Sequence[Operation]],
    options: VerdictOptions,
    *,
    cuts: int = 3,
    shuffles: int = 4,
) -> dict[tuple[str, str | None], dict[str, Any]]:
    """Returns the job's rows, from operations in an arbitrary order and partitioning."""
    operations = spark.read.schema(struct_of(OPERATIONS)).parquet(*write_runs(folder, runs)).repartition(cuts)
    before = str(spark.conf.get(SHUFFLES))
    spark.conf.set(SHUFFLES, str(shuffles))
    try:
        frame = verdicts(operations, options)
        collected = frame.collect()
    finally:
        spark.conf.set(SHUFFLES, before)
    assert frame.schema.names == VERDICTS.names
    rows = {}
    for row in collected:
        assert (row["run"], row["key"]) not in rows
        fields = row.asDict()
        fields["counterexample"] = json.loads(row["counterexample"] or "[]")
        rows[fields.pop("run"), fields.pop("key")] = fields
    return rows


def assert_same(ours: Mapping[Any, Mapping[str, Any]], theirs: Mapping[Any, Mapping[str, Any]]) -> None:
    """Asserts that each row equals the result of `labrys check`."""
    assert ours.keys() == theirs.keys()
    for name, expected in theirs.items():
        fields = {field: ours[name][field] for field in expected}
        assert fields == expected, name


@dataclass(frozen=True, slots=True, kw_only=True)
class Draw:
    """Random histories, the options of the job, and the layout of their table.

    Attributes:
        seed: The seed of the histories.
        options: The job's options.
        shuffles: The number of tasks after each shuffle.
        cuts: The number of parts of the table.
        cas: Whether some histories have compare-and-set.
    """

    seed: int
    options: VerdictOptions
    shuffles: int
    cuts: int
    cas: bool

    def kind(self, random: Random) -> Kind:
        """Draws the properties of a history."""
        kind = any_kind(random)
        return kind if self.cas else replace(kind, cas=False)


DRAWS = [
    Draw(
        seed=1,
        options=VerdictOptions(model="register"),
        shuffles=3,
        cuts=5,
        cas=False,
    ),
    Draw(
        seed=2,
        options=VerdictOptions(
            initial="1",
            conventions={"nil_read": "any", "failed_cas": "observe"},
        ),
        shuffles=2,
        cuts=1,
        cas=True,
    ),
]


@pytest.mark.parametrize("draw", DRAWS, ids=lambda draw: draw.options.model)
def test_every_route_says_what_the_checker_says(spark: SparkSession, tmp_path: Path, draw: Draw) -> None:
    """The partitioning of a table with hundreds of keys changes no verdict, operation, explanation or counterexample."""
    options = draw.options
    runs = mixed_histories(draw.seed, RUNS, draw.kind, keys=(1, 2, 3, 5))
    if not draw.cas:
        runs |= long_runs()
    ours = by_spark(spark, tmp_path, runs, options, cuts=draw.cuts, shuffles=draw.shuffles)
    assert_same(ours, by_check(options, runs))
    assert len(ours) > 2 * RUNS
    assert {row["order_agrees"] for row in ours.values()} == {None}
    assert {row["engine"] for row in ours.values()} == {KERNEL, OBJECTS}
    for name in LIES if not draw.cas else ():
        assert ours[name, None]["op_invoke_index"] == 2 * LIED_AT, "what was planted is found where it was planted"


@pytest.mark.parametrize("name", ["fifo-queue", "multi-register", "owner-mutex"])
def test_other_models_are_judged_within_their_budget(spark: SparkSession, tmp_path: Path, name: str) -> None:
    """Objects other than registers have the same results. A key beyond its memory limit is unknown with that cause."""
    random = stream(3, name)
    drawn = {f"run-{number}": draw_history(name, random, ties=number % 2 == 0)[1] for number in range(80)}
    runs = {run: sorted(operations, key=row_order) for run, operations in drawn.items() if operations}
    large = [alone(number, "enqueue", number) for number in range(40)]
    options = VerdictOptions(model=name, memory_limit=20 * BYTES_PER_OPERATION)
    ours = by_spark(spark, tmp_path, runs | {"large": large}, options)
    too_large = ours.pop(("large", None))
    assert (too_large["verdict"], too_large["cause"]) == ("unknown", "out-of-memory")
    assert_same(ours, by_check(options, runs))
    assert {row["verdict"] for row in ours.values()} == {"valid", "invalid"}


def test_the_order_that_a_system_tells_is_told_beside_the_verdict(spark: SparkSession, tmp_path: Path) -> None:
    """As with `labrys check`, key by key. Keys without orders are decided as usual. Too large ones have an unknown order."""
    random = stream(5, "orders")
    plain = mixed_histories(5, 60, any_kind, keys=(1, 2, 3))
    told = {
        f"told-{name}": in_their_order(random, operations)
        for name, operations in mixed_histories(6, 120, any_kind, keys=(1, 2)).items()
    }
    large = {"large": [replace(op, order=index) for index, op in enumerate(writes_and_reads(60, {}))]}
    large["larger"] = [replace(op, order=index) for index, op in enumerate(writes_and_reads(60, {31: 1}))]
    options = VerdictOptions(memory_limit=40 * BYTES_PER_OPERATION)
    ours = by_spark(spark, tmp_path, plain | told | large, options)
    for name, verdict in (("large", "valid"), ("larger", "invalid")):
        row = ours.pop((name, None))
        assert (row["verdict"], row["engine"], row["order_agrees"]) == (verdict, KERNEL, "unknown")
        assert row["order_reason"] == TOO_LARGE.format(most=40)
    assert_same(ours, by_check(options, plain | told))
    agrees = [row["order_agrees"] for row in ours.values()]
    assert min(agrees.count("valid"), agrees.count("invalid"), agrees.count(None)) > 20
    by_hints = [row for row in ours.values() if row["analyzer"] == "hints"]
    assert by_hints
    assert {(row["verdict"], row["engine"], row["order_agrees"]) for row in by_hints} == {("valid", OBJECTS, "valid")}
    all_told = by_spark(spark, tmp_path, told, options)
    assert_same(all_told, {name: {"verdict": ours[name]["verdict"]} for name in all_told})


LIED_AT = 1501
LIES: Mapping[str, Callable[[int], int]] = {
    "stale": lambda index: index - 901,
    "phantom": lambda index: -index,
    "future": lambda index: index + 41,
}


def long_runs() -> dict[str, list[Operation]]:
    """Returns long runs of one register: a valid one, and one with each kind of wrong result."""
    runs = {"valid": writes_and_reads(2 * LIED_AT, {})}
    return runs | {name: writes_and_reads(2 * LIED_AT, {LIED_AT: lie(LIED_AT)}) for name, lie in LIES.items()}
