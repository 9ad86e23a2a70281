"""Histories of transactions of any size, made from a few blocks, and the cost of their verdicts in Spark.

A block is a short history of `list-append` with keys of its own: 320 transactions of four micro-operations, ten at a time. One
in ten micro-operations reads a key of the block before. An ok transaction takes effect at its completion, so a history is
strictly serializable. Only the numbers of keys, processes and events differ between two blocks of one kind. So a block is
made by replacing text, and a history as fast as it can be written.

The floor reads the same Parquet, divides the transactions into micro-operations in the kernel, and sorts these by key and
start, without output.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from checker.consistency import Question
from checker.deciders import of_workload
from checker.formats.columns import NEEDED
from checker.formats.parquet import schema as file_schema
from checker.values import json_text
from results.pipeline.spark.large_transactions import by_key
from results.pipeline.spark.types import struct_of
from results.pipeline.spark.verdicts import judged

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame

SIZE: Final = 320
KEYS: Final = 20
_MODEL: Final = "strict-serializable"
_AT_ONCE: Final = 10
MICRO: Final = 4
_KINDS: Final = 64  # of blocks
_PARTITIONS: Final = 200  # Spark's default
_FILE: Final = 1 << 20  # transactions
_GROUP: Final = 400  # blocks in a row group
_NOW, _BEFORE = b"k9999999", b"k8888888"  # stand for the names of two blocks, which are as long
_FIRST: Final = 1_000_000
_PROCESSES: Final = 64  # of a block, more than it has
_SORTED: Final = pa.schema({"key": pa.string(), "start": pa.int64(), "text": pa.string()})


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A block; its events begin with 1, its processes with 0.

    Attributes:
        columns: `invoke_index`, `complete_index` (0 for none), `process` and `type`, by transaction.
        value: The requests, one after the other.
        result: The answers likewise; nothing for a transaction without one.
        ends: The ends of the requests and those of the answers.
        lists: The last list of each key.
        events: The number of events.
    """

    columns: dict[str, Any]
    value: bytes
    result: bytes
    ends: tuple[Any, Any]
    lists: dict[str, list[int]]
    events: int


def block(random: Random, before: dict[str, list[int]], *, stale: bool = False) -> Block:
    """Returns a block after one with these lists; with one stale read if wanted."""
    lists: dict[str, list[int]] = {}
    free, process = list(range(_AT_ONCE)), list(range(_AT_ONCE))
    open_: dict[int, tuple[int, list[Any]]] = {}
    rows: list[tuple[int, int, int, str, str, str | None]] = []
    begun = event = 0
    while begun < SIZE or open_:
        event += 1
        if free and begun < SIZE and (not open_ or random.random() < 0.5):
            slot = free.pop(random.randrange(len(free)))
            open_[slot] = (event, [_micro(random, begun * MICRO + index, before) for index in range(MICRO)])
            begun += 1
            continue
        slot = random.choice(sorted(open_))
        start, micro = open_.pop(slot)
        free.append(slot)
        kind = random.choices(("ok", "fail", "info"), (98, 1, 1))[0]
        answer = []
        for name, key, value in micro:
            if name == "append":
                if kind == "ok" or (kind == "info" and start % 2):
                    lists.setdefault(key, []).append(value)
                answer.append([name, key, value])
            else:
                seen = before[key] if key in before else lists.get(key)
                late = stale and kind == "ok" and key not in before and len(seen or ()) > 8
                stale = stale and not late
                answer.append([name, key, list(seen[: len(seen) // 2] if late else seen) if seen else None])
        request = [[name, key, None if name == "r" else value] for name, key, value in micro]
        texts = (json_text(request) or "", json_text(answer) if kind == "ok" else None)
        rows.append((start, 0 if kind == "info" else event, process[slot], kind, *texts))
        if kind == "info":
            process[slot] = max(process) + 1
    rows.sort()
    columns = [np.array(column) for column in zip(*(row[:4] for row in rows), strict=True)]
    values, results = [row[4] for row in rows], [row[5] or "" for row in rows]
    ends = tuple(np.cumsum([len(text) for text in texts]) for texts in (values, results))
    return Block(
        columns=dict(zip(("invoke_index", "complete_index", "process", "type"), columns, strict=True)),
        value="".join(values).encode(), result="".join(results).encode(), ends=(ends[0], ends[1]),
        lists={key.replace(_NOW.decode(), _BEFORE.decode()): some for key, some in lists.items()}, events=event,
    )  # fmt: skip


def _micro(random: Random, number: int, before: dict[str, list[int]]) -> list[Any]:
    if before and random.random() < 0.1:
        return ["r", random.choice(sorted(before)), None]
    key = f"{_NOW.decode()}-{random.randrange(KEYS):02}"
    return ["r", key, None] if random.random() < 0.5 else ["append", key, number]


def write(folder: Path, transactions: int, *, seed: int = 1, stale: bool = False) -> int:
    """Writes a history as a folder of Parquet; returns the number of transactions, rounded to whole blocks.

    Args:
        folder: Where.
        transactions: How many, about.
        seed: Another one makes another history.
        stale: Whether one read in the middle is stale.
    """
    random = Random(seed)
    blocks = [block(random, {})]  # it reads no other, so it can follow any
    while len(blocks) < _KINDS:
        blocks.append(block(random, blocks[-1].lists))
    count = max(1, transactions // SIZE)
    wrong = -1
    if stale:
        # The next block is of the first kind, and reads none of it.
        wrong = min(count - 1, count // 2 // _KINDS * _KINDS + _KINDS - 1)
        bad = block(random, blocks[wrong % _KINDS - 1].lists, stale=True)
    folder.mkdir(parents=True)
    layout = file_schema()
    event = 0
    for first in range(0, count, _FILE // SIZE):
        with parquet.ParquetWriter(folder / f"{first:09}.parquet", layout, compression="zstd") as writer:
            for begin in range(first, min(count, first + _FILE // SIZE), _GROUP):
                batches = []
                for number in range(begin, min(count, first + _FILE // SIZE, begin + _GROUP)):
                    made = bad if number == wrong else blocks[number % _KINDS]
                    batches.append(_rows(made, number, event))
                    event += made.events
                writer.write_table(pa.Table.from_batches(batches).cast(layout))
    return count * SIZE


def _rows(made: Block, number: int, event: int) -> pa.RecordBatch:
    """Returns the rows of a block in a history."""
    now, before = (f"k{_FIRST + number_of_key}".encode() for number_of_key in (number, number - 1))

    def texts(content: bytes, ends: Any, valid_rows: Any) -> pa.Array:
        text = content.replace(_NOW, now).replace(_BEFORE, before)
        bounds = np.concatenate([[0], ends]).astype(np.int32)
        valid = pa.py_buffer(np.packbits(valid_rows, bitorder="little"))
        return pa.Array.from_buffers(pa.string(), len(ends), [valid, pa.py_buffer(bounds), pa.py_buffer(text)])

    columns = made.columns
    start, done, kind = columns["invoke_index"] + event, columns["complete_index"], columns["type"]
    end = np.where(done > 0, done + event, 0)
    known = {
        "run": pa.array(["large"] * SIZE), "f": pa.array(["txn"] * SIZE), "type": pa.array(kind.tolist()),
        "process": columns["process"] + number * _PROCESSES, "start_ns": start * 1000, "invoke_index": start,
        "end_ns": pa.array(end * 1000, mask=done == 0), "complete_index": pa.array(end, mask=done == 0),
        "value": texts(made.value, made.ends[0], np.ones(SIZE, bool)),
        "result": texts(made.result, made.ends[1], kind == "ok"),
    }  # fmt: skip
    plain = {field.name: pa.string() if pa.types.is_dictionary(field.type) else field.type for field in file_schema()}
    arrays = [pa.array(known[name]) if name in known else pa.nulls(SIZE, kind) for name, kind in plain.items()]
    return pa.RecordBatch.from_arrays(arrays, names=list(plain))


def floor(rows: DataFrame) -> None:
    """Reads, divides and sorts."""
    question = Question(workload="list-append", model=_MODEL)

    def divided(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for part in by_key.parts(batches, question):
            yield part.select(["key", "start", "text"]).cast(_SORTED)

    parts = rows.select(*NEEDED).mapInArrow(divided, struct_of(_SORTED))
    # A sort of all rows would read and divide them twice, to find the bounds of its partitions.
    spread = parts.repartition(_PARTITIONS, "key").sortWithinPartitions("key", "start")
    spread.write.format("noop").mode("overwrite").save()


def decided(rows: DataFrame, memory_limit: int) -> dict[str, Any]:
    """Returns the verdict of the history."""
    judge = of_workload("list-append", settings=(f"consistency-model={_MODEL}",)).judge
    assert judge is not None  # noqa: S101 - the workload has one
    [row] = judged(rows, judge, memory_limit).collect()
    answer: dict[str, Any] = row.asDict()
    return answer
