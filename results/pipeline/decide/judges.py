"""Verdicts of workloads that have a checker of their own (judges), for each run and key.

The rule: each verdict, explanation and counterexample is the one that `labrys check` gives for a history of the same operations
alone, or `unknown` with its cause. The rows of a key become arrays, many short keys at once.
Only rows that are shown become objects. A key that does not fit into its memory limit is unknown. If a judge fails on a key,
that key is unknown with the error, and the judge decides the other keys.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from checker.formats.columns import ColumnReader
from checker.judging import UNTESTED, composed, operation_at
from harness.errors import LabrysError, sentence
from harness.verdict import Verdict
from results.pipeline.decide.coding import ADDRESS
from results.pipeline.decide.whole import stretches
from results.pipeline.schema import VERDICTS, storable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from checker.formats.columns import Columns, Int64s
    from checker.judging import Judge, Judgement

ARRAYS: Final = "arrays"  # the column `engine`
ROWS_AT_ONCE: Final = 1 << 16  # how many rows of short keys become arrays together
# The memory of an operation in arrays, with temporary copies and a few sorts; the bytes of texts are added.
BYTES_PER_OPERATION: Final = 400
_TEXTS: Final = ("value", "result")


@dataclass(slots=True, kw_only=True)
class _Key:
    """The rows of one run and key that have arrived so far.

    Attributes:
        address: The number of the run and key.
        run: The run.
        key: The key.
        rows: How many rows there are.
        bytes: Their memory.
        parts: The rows; none if they need more memory than the limit.
    """

    address: int
    run: str
    key: str | None
    rows: int = 0
    bytes: int = 0
    parts: list[pa.RecordBatch] = field(default_factory=list)

    def add(self, batch: pa.RecordBatch, limit: int) -> None:
        """Adds the next rows."""
        self.rows += batch.num_rows
        self.bytes += batch.num_rows * BYTES_PER_OPERATION + sum(batch.column(name).nbytes for name in _TEXTS)
        self.parts.append(batch)
        if self.bytes > limit:
            self.parts.clear()


def decide(batches: Iterator[pa.RecordBatch], judge: Judge, memory_limit: int) -> Iterator[pa.RecordBatch]:
    """Decides keys; yields rows of `schema.VERDICTS`.

    Args:
        batches: The run, the address and the columns `NEEDED`, sorted by address and invoke.
        judge: The checker.
        memory_limit: Bytes for one key.
    """
    waiting: list[_Key] = []
    for key in _keys(batches, memory_limit):
        waiting.append(key)
        if sum(key.rows for key in waiting) >= ROWS_AT_ONCE:
            yield _verdict_rows(waiting, judge, memory_limit)
            waiting = []
    if waiting:
        yield _verdict_rows(waiting, judge, memory_limit)


def _keys(batches: Iterator[pa.RecordBatch], limit: int) -> Iterator[_Key]:
    """Yields each key with all its rows."""
    current: _Key | None = None
    for batch in batches:
        addresses = batch.column(ADDRESS).to_numpy()
        for low, high in stretches(addresses):
            rows = batch.slice(low, high - low)
            if current is None or current.address != addresses[low]:
                if current is not None:
                    yield current
                run, key = (rows.column(name)[0].as_py() for name in ("run", "key"))
                current = _Key(address=int(addresses[low]), run=run, key=key)
            current.add(rows, limit)
    if current is not None:
        yield current


def _verdict_rows(keys: Sequence[_Key], judge: Judge, limit: int) -> pa.RecordBatch:
    """Returns the rows of verdicts of some keys."""
    read = [key for key in keys if key.parts]
    try:
        columns = iter(_columns(read))
    except LabrysError:  # an unreadable value of one of the keys; each key by itself reports its own error
        rows = [_row(key, judge, None, limit) for key in keys]
    else:
        rows = [_row(key, judge, next(columns) if key.parts else None, limit) for key in keys]
    return pa.RecordBatch.from_pylist([storable(row) for row in rows], schema=VERDICTS)


def _columns(keys: Sequence[_Key]) -> list[Columns]:
    """Returns the rows of each key as arrays.

    Raises:
        BadHistory: A value of one of them cannot be read.
    """
    if not keys:
        return []
    table = pa.Table.from_batches([part for key in keys for part in key.parts]).combine_chunks()
    reader = ColumnReader(keys[0].run)
    [batch] = table.to_batches()
    columns = reader.of_batch(batch)
    if len(keys) == 1:
        return [columns]
    bounds = np.cumsum([0, *(key.rows for key in keys)])
    return [columns.only(np.arange(bounds[index], bounds[index + 1])) for index in range(len(keys))]


def _row(key: _Key, judge: Judge, columns: Columns | None, limit: int) -> dict[str, Any]:
    """Returns the row of verdicts of a key."""
    about = {
        "run": key.run,
        "key": key.key,
        "model": judge.name,
        "analyzer": judge.name,
        "engine": ARRAYS,
        "operations": key.rows,
    }
    if not key.parts:
        why = f"The key's {key.rows} operations take more memory than its limit of {limit} bytes; raise it with --memory-limit."
        return {**about, "verdict": str(Verdict.UNKNOWN), "cause": "out-of-memory", "explanation": why}
    try:
        decided = _verdict(judge, columns or _columns([key])[0])
    except LabrysError as error:
        decided = _unknown(str(error))
    except Exception as error:  # noqa: BLE001 - a plug-in's mistake becomes its key's verdict, and the other keys are judged
        decided = _unknown(
            f"The checker of the workload {judge.name} failed: {type(error).__name__}: {sentence(error)}"
        )
    return {**about, **decided}


def _unknown(why: str) -> dict[str, Any]:
    return {"verdict": str(Verdict.UNKNOWN), "cause": "error", "explanation": why}


def _verdict(judge: Judge, columns: Columns) -> dict[str, Any]:
    """Returns the judge's verdict on one key."""
    return row_of(judge.name, judge.judge(columns), columns, len(columns))


def row_of(name: str, judgement: Judgement, columns: Columns, operations: int) -> dict[str, Any]:
    """Returns what a row of verdicts says of a judgement.

    Args:
        name: The judge's name.
        judgement: The judgement of one key.
        columns: The operations that its anomalies refer to.
        operations: The number of operations of the key.
    """
    judgements: dict[str | None, tuple[Judgement, Int64s]] = {
        None: (judgement, np.arange(len(columns), dtype=np.int64))
    }
    part = composed(name, judgements, operations, operation=lambda row: operation_at(columns, row))
    row: dict[str, Any] = {"verdict": str(part.verdict), "explanation": part.reason}
    if part.verdict is Verdict.UNKNOWN:
        row["cause"] = part.details.get("cause", UNTESTED)
    example = part.details.get("counterexample")
    if example:
        decisive = example["op"] or {}
        row |= {
            "kind": example["kind"],
            "op_invoke_index": decisive.get("invoke_index"),
            "op_complete_index": decisive.get("complete_index"),
            "counterexample": json.dumps(example["operations"], ensure_ascii=False, sort_keys=True),
        }
    return row
