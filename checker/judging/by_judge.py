"""Checks histories with the judge of a workload: histories read as operations, and tables as arrays.

The result is the part that the same judge gives in a run. Only the operations of the result become objects, never all rows of a
table. A row that breaks a rule of histories is an error before the check.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from checker.consistency import Asking
from checker.errors import Unsuited
from checker.formats.columns import OPTIONAL, ColumnReader, Columns, batches_of, joined, of_operations
from checker.formats.parquet import open_parquet, read_rows_of
from checker.formats.read import History
from checker.formats.readers import PARQUET
from checker.formats.row_rules import Rules
from checker.formats.transaction_texts import INITIAL
from checker.judging import composed, judge_keys
from checker.judging.judged import Judged
from harness.console.documents import shown
from harness.errors import InputError, LabrysError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from checker.formats.columns import Int64s
    from checker.judging import Judge, Judgement
    from harness.op import Operation
    from harness.verdict import Verdict

MAX_NAMES = 8  # of clients, in a warning


def judge_history(history: History, judge: Judge, *, empty: Verdict, read_s: float) -> Judged:
    """Decides a history that was read as operations.

    Args:
        history: The history.
        judge: The workload.
        empty: The verdict on a history without operations.
        read_s: Seconds that reading took.

    Raises:
        InputError: The judge does not know an operation.
    """
    began_s = time.perf_counter()
    own = history.conventions.get(INITIAL)
    if own is not None and isinstance(judge, Asking) and judge.question().initial is not None:
        raise InputError(
            f"{history.name}: in this form, {own} is the initial value of each register; leave initial out"
        )
    operations = history.operations
    if history.plain is not None:  # its clients have numbers, and its operations are made one at a time
        columns = history.plain.columns
    else:
        history, numbered = _numbered(history)
        columns = of_operations(numbered, history.name)
    if history.lacks:
        columns = replace(columns, lacks=history.lacks)
    judgements = judge_keys(judge, columns)
    return _judged(
        history, judge, columns, judgements, operations.__getitem__, empty=empty, began_s=began_s, read_s=read_s
    )


def _numbered(history: History) -> tuple[History, Sequence[Operation]]:
    """Returns a history with a warning if its clients have names, and its operations with numbers in place of the names."""
    names = dict.fromkeys(operation.process for operation in history.operations if isinstance(operation.process, str))
    if not names:
        return history, history.operations
    most = max(
        (operation.process for operation in history.operations if isinstance(operation.process, int)), default=-1
    )
    numbers = {name: most + 1 + index for index, name in enumerate(names)}
    some = ", ".join(f"{numbers[name]} is {shown(name)}" for name in list(names)[:MAX_NAMES])
    more = f", and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
    told = f"clients have names, and sentences about them have numbers: {some}{more}"
    return replace(history, warnings=[*history.warnings, told]), [
        replace(operation, process=numbers[operation.process]) if isinstance(operation.process, str) else operation
        for operation in history.operations
    ]


def judge_table(path: Path, name: str, judge: Judge, *, empty: Verdict) -> Judged | None:
    """Decides the history in a Parquet file of one run from arrays; None if only objects can report its error.

    Args:
        path: The file.
        name: Its name for messages.
        judge: The workload.
        empty: The verdict on a history without operations.

    Raises:
        InputError: The file has another format, or the judge does not know an operation.
    """
    began_s = time.perf_counter()
    rules, reader, parts = Rules(), ColumnReader(name), []
    file = open_parquet(path, name=name)
    try:
        hints = [name for name in file.schema_arrow.names if name in OPTIONAL]
        for batch, some in batches_of(file, reader, more=["run", *hints]):
            parts.append(some)
            rules.add(some, batch)
        rules.finish()
    except (Unsuited, LabrysError):
        return None
    columns = joined(parts, reader)
    history = History(
        name=name,
        format=PARQUET,
        operations=(),
        events=rules.events,
        timed=True,
        keyed=any(key is not None for key in columns.keys),
        warnings=(),
    )
    read_s, began_s = time.perf_counter() - began_s, time.perf_counter()
    judgements = judge_keys(judge, columns)
    shown = _shown(path, columns, judgements)
    return _judged(
        history,
        judge,
        columns,
        judgements,
        lambda row: shown[int(columns.start[row])],
        empty=empty,
        began_s=began_s,
        read_s=read_s,
    )


def _shown(
    path: Path, columns: Columns, judgements: Mapping[str | None, tuple[Judgement, Int64s]]
) -> dict[int, Operation]:
    """Returns the operations of anomalies by the index of their invoke, from one pass over the file."""
    rows = {
        int(of_key[row])
        for judgement, of_key in judgements.values()
        for anomaly in judgement.anomalies
        for row in (*anomaly.rows, *(() if anomaly.decisive is None else (anomaly.decisive,)))
    }
    if not rows:
        return {}
    return {op.invoke_index: op for op in read_rows_of(path, columns.start[np.array(sorted(rows), np.int64)])}


def _judged(
    history: History,
    judge: Judge,
    columns: Columns,
    judgements: Mapping[str | None, tuple[Judgement, Int64s]],
    operation: Callable[[int], Operation],
    *,
    empty: Verdict,
    began_s: float,
    read_s: float,
) -> Judged:
    part = composed(judge.name, judgements, len(columns), operation=operation)
    if not len(columns):
        part = replace(part, verdict=empty)
    return Judged(
        history=history,
        part=part,
        operations=len(columns),
        seconds=time.perf_counter() - began_s,
        read_s=read_s,
    )
