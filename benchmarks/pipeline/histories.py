"""Synthetic histories of registers, made in Spark: correct except for anomalies at known places.

Without its anomalies a history is linearizable by construction. Operation `i` of a key takes effect in slot `i`. It begins up
to `SPREAD` slots before and ends up to `SPREAD` slots after it, so about `SPREAD` operations run at once. Each write has a
unique value. A read returns the value after the last effect before it. Some writes crash, half of them with effect, and some
compare-and-sets fail. Everything follows from the seed and the place, so tasks make tables of any size in parallel, and the
tables are reproducible.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from results.pipeline.schema import OPERATIONS
from results.pipeline.spark.types import struct_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import pyarrow as pa
    from numpy.typing import NDArray
    from pyspark.sql import DataFrame, SparkSession

SPREAD: Final = 5
SUBSLOTS: Final = 2 * SPREAD + 2
# The time between two indexes: 50,000 operations a second in total, for any number of keys.
STEP_NS: Final = 1666
CHUNK_OPERATIONS: Final = 1 << 16
KEY_OPERATIONS: Final = 1000
NODES: Final = 5
RUN: Final = "synthetic"
READ, WRITE, CAS, FAILED, CRASHED, LOST_CRASH = range(6)
_MUTATES: Final = np.array([False, True, True, False, True, False])
_NEVER_WRITTEN: Final = 7 * 10**17
KINDS: Final = ("stale", "lost", "phantom", "future", "split", "cas")


@dataclass(frozen=True, slots=True, kw_only=True)
class Planted:
    """An anomaly.

    Attributes:
        kind: One of `KINDS`: a stale read; an acknowledged write that is lost; a read of a value that is never written; a read
            of a value that is written later; alternating reads of two values, as from two leaders; two compare-and-sets
            that replaced the same value.
        key: The key's number.
        slot: The slot of its last operation.
    """

    kind: str
    key: int
    slot: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The properties of a history.

    Attributes:
        operations: The number of all operations, rounded to whole keys.
        keys: The number of keys.
        cas: The share of compare-and-sets.
        seed: The seed.
        planted: The anomalies, at most one for each key.
    """

    operations: int
    keys: int
    cas: float
    seed: int
    planted: Sequence[Planted]

    @property
    def per_key(self) -> int:
        """The number of operations of a key."""
        return self.operations // self.keys

    @property
    def duration_ns(self) -> int:
        """A time after the whole history."""
        return (self.per_key + 2 * SPREAD) * self.keys * SUBSLOTS * STEP_NS

    def indexes(self, planted: Planted) -> tuple[int, int]:
        """Returns the first and the last index of an anomaly's operations."""
        width = self.keys * SUBSLOTS
        return (planted.slot - 8 * SPREAD) * width, (planted.slot + 8 * SPREAD) * width


def plan(
    operations: int, *, one_key: bool, cas: float, seed: int, of_each: int = 3, kinds: Sequence[str] = KINDS
) -> Plan:
    """Returns a plan. One key has the first of `kinds` at three quarters of it; many keys have `of_each` anomalies of a kind.

    Raises:
        ValueError: There are fewer keys than anomalies, or a kind needs compare-and-sets and there are none.
    """
    wanted = [kind for kind in kinds if cas or kind != "cas"]
    if not wanted and kinds:
        raise ValueError(
            "expected a share of compare-and-sets, because an anomaly of them is to be planted; found none"
        )
    if one_key:
        planted = [Planted(kind=kind, key=0, slot=_clear(operations * 3 // 4)) for kind in wanted[:1]]
        return Plan(operations=operations, keys=1, cas=cas, seed=seed, planted=planted)
    keys = max(1, operations // KEY_OPERATIONS)
    all_kinds = [kind for kind in wanted for _ in range(of_each)]
    if len(all_kinds) > keys:
        raise ValueError(f"expected room for {len(all_kinds)} anomalies, found {keys} keys")
    planted = [
        Planted(kind=kind, key=index * keys // len(all_kinds), slot=300 + 37 * (index % 10))
        for index, kind in enumerate(all_kinds)
    ]
    return Plan(operations=keys * KEY_OPERATIONS, keys=keys, cas=cas, seed=seed, planted=planted)


def _clear(slot: int) -> int:
    """Moves a slot away from the edges of its chunk."""
    first = slot // CHUNK_OPERATIONS * CHUNK_OPERATIONS
    return first + max(slot - first, 100) if slot - first < CHUNK_OPERATIONS // 2 else slot - 100


def generate(spark: SparkSession, plan: Plan) -> DataFrame:
    """Returns the operations in the columns of `schema.OPERATIONS`. A task makes a group of keys, or a part of one."""
    length = min(plan.per_key, CHUNK_OPERATIONS)
    group = max(1, CHUNK_OPERATIONS // length)
    rows = [
        (key, min(group, plan.keys - key), base, min(length, plan.per_key - base))
        for key in range(0, plan.keys, group)
        for base in range(0, plan.per_key, length)
    ]
    tasks = max(spark.sparkContext.defaultParallelism, min(len(rows), plan.operations >> 21))
    chunks = spark.createDataFrame(rows, "key long, keys long, base long, length long").repartition(tasks)
    return chunks.mapInArrow(_maker(plan), struct_of(OPERATIONS))


def _maker(plan: Plan) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def make(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for row in batch.to_pylist():
                yield chunk(plan, **row)

    return make


def chunk(plan: Plan, *, key: int, keys: int, base: int, length: int) -> pa.RecordBatch:
    """Returns the operations of `keys` keys from `key` on, of `length` slots from `base` on, in order of their invokes."""
    random = np.random.default_rng([plan.seed, key, base])
    made = _Chunk(plan, random, key=key, base=base, shape=(keys, length))
    for planted in plan.planted:
        if key <= planted.key < key + keys and base <= planted.slot < base + length:
            made.plant(planted)
    made.play()
    return made.batch()


class _Chunk:
    """Some slots of some keys: a row for each key, a column for each slot."""

    def __init__(self, plan: Plan, random: np.random.Generator, *, key: int, base: int, shape: tuple[int, int]) -> None:
        self.plan, self.key, self.base = plan, key, base
        share = np.array([0.0, 0.3, plan.cas, plan.cas / 5, 0.003, 0.003])
        share[READ] = 1 - share.sum()
        self.kind = random.choice(6, size=shape, p=share).astype(np.int8)
        self.kind[:, 0] = WRITE
        self.before = random.integers(0, SPREAD, shape)
        self.after = random.integers(0, SPREAD, shape)
        self.slots = base + np.arange(shape[1], dtype=np.int64)
        # Values differ in all slots of a key.
        self.fresh = np.broadcast_to(self.slots + 1, shape)
        self.mutates = _MUTATES[self.kind]
        self.read: dict[tuple[int, int], int] = {}
        self.expects: dict[tuple[int, int], int] = {}

    def plant(self, planted: Planted) -> None:
        row, at = planted.key - self.key, planted.slot - self.base
        kind, first = self.kind[row], at - 3 * SPREAD
        if planted.kind == "cas":
            kind[at - SPREAD : at + 2] = READ
            kind[at - SPREAD] = WRITE
            kind[at : at + 2] = CAS
            self.expects[row, at + 1] = int(self.fresh[row, at - SPREAD])
        elif planted.kind == "stale":
            kind[first], kind[at] = WRITE, READ
            self.read[row, at] = int(self.fresh[row, 0])
        elif planted.kind == "lost":
            # The write before it has ended, so it cannot be the later one.
            kind[first - 2 * SPREAD : at + 1] = READ
            kind[first] = WRITE
        elif planted.kind == "phantom":
            kind[at] = READ
            self.read[row, at] = _NEVER_WRITTEN + planted.key
        elif planted.kind == "future":
            kind[at], kind[at + 3 * SPREAD] = READ, WRITE
            self.read[row, at] = int(self.fresh[row, at + 3 * SPREAD])
        else:
            first = at - 6 * SPREAD
            kind[first : at + 1] = READ
            kind[first : first + 2] = WRITE
            for column in (at - 4 * SPREAD, at):
                self.read[row, column] = int(self.fresh[row, first])
        self.mutates[row] = _MUTATES[kind]
        if planted.kind == "lost":
            self.mutates[row, first] = False

    def play(self) -> None:
        """Finds the value that each operation saw, after the last effect before it."""
        places = np.arange(self.slots.size)
        last = np.maximum.accumulate(np.where(self.mutates, places, 0), axis=1)
        seen = np.zeros_like(last)
        seen[:, 1:] = last[:, :-1]
        self.state = np.take_along_axis(self.fresh, seen, axis=1)

    def batch(self) -> pa.RecordBatch:
        import pyarrow as pa  # noqa: PLC0415 - the executors' alone
        import pyarrow.compute as pc  # noqa: PLC0415

        keys, width = self.plan.keys, self.plan.keys * SUBSLOTS
        numbers = (self.key + np.arange(self.kind.shape[0], dtype=np.int64))[:, None]
        kind = self.kind.ravel()

        def indexes(offset: NDArray[np.int64], sub: NDArray[np.int64]) -> NDArray[np.int64]:
            return (SPREAD * width + (self.slots + offset) * width + numbers * SUBSLOTS + sub).ravel()

        invoke = indexes(-self.before, self.before)
        complete = indexes(self.after, SPREAD + 1 + self.after)
        order = np.argsort(invoke)
        crashed = (kind == CRASHED) | (kind == LOST_CRASH)
        process = np.where(
            crashed.reshape(self.kind.shape),
            2 * SPREAD * keys + numbers * self.plan.per_key + self.slots,
            numbers * 2 * SPREAD + self.slots % (2 * SPREAD),
        ).ravel()
        seen, expected = self.state.copy(), self.state.copy()
        for position, value in self.read.items():
            seen[position] = value
        for position, value in self.expects.items():
            expected[position] = value
        expected[self.kind == FAILED] = _NEVER_WRITTEN - 1

        def column(values: NDArray[Any], mask: NDArray[np.bool_] | None = None) -> pa.Array:
            return pa.array(values[order], mask=None if mask is None else mask[order])

        def named(names: Sequence[str | None], places: NDArray[Any]) -> pa.Array:
            codes = pa.array(places[order].astype(np.int32))
            return pa.DictionaryArray.from_arrays(codes, pa.array(names, pa.string())).cast(pa.string())

        fresh = pc.cast(column(self.fresh.ravel()), pa.string())
        is_read = kind[order] == READ
        is_cas = np.isin(kind[order], (CAS, FAILED))
        pair = pc.binary_join_element_wise("[", pc.cast(column(expected.ravel()), pa.string()), ",", fresh, "]", "")
        nothing = pa.scalar(None, pa.string())
        value = pc.if_else(pa.array(is_read), nothing, pc.if_else(pa.array(is_cas), pair, fresh))
        result = pc.cast(column(seen.ravel(), kind != READ), pa.string())
        names = [f"k{number}" for number in numbers.ravel()]
        rows = np.repeat(np.arange(len(names)), self.slots.size)
        size = kind.size
        columns: Mapping[str, pa.Array] = {
            "run": pa.repeat(RUN, size),
            "key": named(names, rows),
            "process": column(process),
            "f": named(["read", "write", "cas", "cas", "write", "write"], kind),
            "type": named(["ok", "ok", "ok", "fail", "info", "info"], kind),
            "start_ns": column(invoke * STEP_NS),
            "end_ns": column(complete * STEP_NS),
            "value": value,
            "result": result,
            "node": named([f"n{number + 1}" for number in range(NODES)], process % NODES),
            "error": named([None, None, None, "mismatch", "timeout", "timeout"], kind),
            "scheduled_ns": pa.nulls(size, pa.int64()),
            "phase": pa.nulls(size, pa.string()),
            "invoke_index": column(invoke),
            "complete_index": column(complete),
            "via": pa.nulls(size, pa.string()),
            "order": pa.nulls(size, pa.int64()),
        }
        return pa.RecordBatch.from_arrays([columns[name] for name in OPERATIONS.names], names=OPERATIONS.names)
