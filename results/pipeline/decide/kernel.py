"""Decides keys of registers by the native kernel, from coded operations.

The rows of a key come together. They come as Arrow batches of integers and go to the kernel as they are, without a Python
object for an operation. The kernel's near-linear analyzer decides many keys in one call. A key that it does not suit gets a
search of its own, within the limits of a key.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from checker.decide.coding import Arrays, KernelColumns
from checker.decide.concluding import contradiction
from checker.decide.deciding import decide_all
from checker.decide.excerpts import OBJECTS, likely_invalid
from checker.models.opcodes import CAS, READ
from checker.search.solving import AUTO, solve
from harness.verdict import Verdict
from results.pipeline.decide.coding import ADDRESS, CODED, GENERAL

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from checker._kernel import Outcome
    from results.pipeline.decide.asked import Asked
    from results.pipeline.decide.coding import RegisterCoding

_WHOLE, _WHOLES, _TEXT = pa.int64(), pa.list_(pa.int64()), pa.string()
# The answer for a key; `results.pipeline.decide.details` makes a row of verdicts from it.
ANSWER: Final = pa.schema(
    {
        ADDRESS: _WHOLE,
        "verdict": _TEXT,  # or `TO_GENERAL`
        "analyzer": _TEXT,
        "engine": _TEXT,
        "cause": _TEXT,
        "kind": _TEXT,  # the kind of the violation
        "op_start": _WHOLE,  # the invoke of the operation at whose return no linearization is left
        "op_end": _WHOLE,  # the return of this operation
        "core": _WHOLES,  # the invokes of the operations that the explanation names
        "tied": pa.bool_(),  # whether two operations start at one index, so that invokes do not identify them
        "unsuited": _TEXT,  # why the near-linear analyzer does not suit the key
        "part": _WHOLES,  # the invokes of the operations that replace the whole key in the explanation
        "observed": _WHOLES,  # the values that these observed; the explanation names operations that make them
    }
)
KERNEL: Final = "kernel"  # the column `engine`
TO_GENERAL: Final = "general"
_COLUMNS: Final = CODED.names
# The measured maximum memory of an operation: 41 bytes for its columns, and the rest for the analyzers and the allocator.
BYTES_PER_OPERATION: Final = 120
_ROWS_PER_CALL: Final = 1 << 19


def decide(batches: Iterator[pa.RecordBatch], asked: Asked, coding: RegisterCoding) -> Iterator[pa.RecordBatch]:
    """Yields the answers (`ANSWER`) for keys.

    Args:
        batches: Their rows in the columns `CODED`, sorted by `address`.
        asked: What is asked about each key.
        coding: How integers represent the operations.
    """
    memory_limit = asked.memory_limit
    pending: list[list[Any]] = []
    rows = 0
    too_large: int | None = None
    for batch in batches:
        # The columns are copied, so that the memory of the batch can be freed.
        columns = [batch.column(name).to_numpy().copy() for name in _COLUMNS]
        if too_large is not None:
            columns = _without(columns, too_large)
        if not len(columns[0]):
            continue
        pending.append(columns)
        rows += len(columns[0])
        if rows < _ROWS_PER_CALL and rows * BYTES_PER_OPERATION <= memory_limit:
            continue
        last = int(columns[0][-1])
        if pending[0][0][0] != last:
            # All keys but the last are whole.
            joined = _joined(pending)
            cut = int(np.searchsorted(joined[0], last))
            whole, pending = [column[:cut] for column in joined], [[column[cut:].copy() for column in joined]]
            del joined
            rows = len(pending[0][0])
            yield _answers(_decided(whole, asked, coding))
        if rows * BYTES_PER_OPERATION > memory_limit:
            too_large = last
            yield _answers([_unknown(too_large)])
            pending, rows = [], 0
    if rows:
        yield _answers(_decided(_joined(pending), asked, coding))


def _joined(parts: Sequence[list[Any]]) -> list[Any]:
    """Concatenates parts, and clears their columns one by one, so that only one column exists twice at a time."""
    if len(parts) == 1:
        return parts[0]
    joined = []
    for index in range(len(_COLUMNS)):
        joined.append(np.concatenate([part[index] for part in parts]))
        for part in parts:
            part[index] = None
    return joined


def _without(columns: list[Any], key: int) -> list[Any]:
    others = columns[0] != key
    return [column[others] for column in columns]


def _unknown(key: int) -> dict[str, Any]:
    return {ADDRESS: key, "verdict": "unknown", "analyzer": "none", "cause": "out-of-memory", "core": [], "tied": False}


def _in_order(columns: list[Any]) -> None:
    """Sorts rows in place by key, start and end, one column after the other."""
    address, start, end = (columns[_COLUMNS.index(name)] for name in (ADDRESS, "start", "end"))
    # Most histories come in the order in which they were written.
    if not ((address[1:] > address[:-1]) | ((address[1:] == address[:-1]) & (start[1:] > start[:-1]))).all():
        order = np.lexsort((end, start, address))
        del address, start, end
        for index in range(len(columns)):
            columns[index] = columns[index][order]


def _decided(columns: list[Any], asked: Asked, coding: RegisterCoding) -> list[dict[str, Any]]:
    """Returns the answers for the keys of these rows; clears the list of columns."""
    _in_order(columns)
    address, opcode, first_argument, second_argument, start, end = columns
    opcode = opcode.view(np.uint8)
    new = address[1:] != address[:-1]
    bounds = [0, *(np.flatnonzero(new) + 1).tolist(), len(address)]
    general = np.logical_or.reduceat(opcode >= GENERAL, bounds[:-1])
    ties = np.concatenate([[False], (start[1:] == start[:-1]) & ~new])
    tied = np.logical_or.reduceat(ties, bounds[:-1])
    names = address[bounds[:-1]].tolist()
    # Frees memory for the analyzers.
    del address, new, ties
    columns.clear()
    answers = [_general(name) for name, whole in zip(names, general, strict=True) if whole]
    places = np.flatnonzero(~general).tolist()
    coded = (opcode, first_argument, second_argument, start, end)
    parts = [KernelColumns(*(column[bounds[i] : bounds[i + 1]] for column in coded)) for i in places]
    keys = [Arrays("register", part, [coding.initial]) for part in parts]
    for i, part, key, outcome in zip(places, parts, keys, _outcomes(keys, asked), strict=True):
        if asked.question.cross_check and _contradiction(key, outcome, asked) is not None:
            answers.append(_general(names[i]))  # whole operations say it in words
        else:
            answers.append(_answer(names[i], outcome, part, tied=bool(tied[i])))
    return answers


def _outcomes(keys: Sequence[Arrays], asked: Asked) -> list[Outcome]:
    """Returns the outcome of each key, within limits of its own."""
    limits = asked.question.limits
    if limits.algorithm != AUTO:
        return [decide_all([key], limits)[0] for key in keys]
    near = solve([key.problem for key in keys], replace(limits, algorithm="zones", time_limit_s=None))
    return [
        first if first.unsuited is None else decide_all([key], limits)[0] for key, first in zip(keys, near, strict=True)
    ]


def _contradiction(key: Arrays, outcome: Outcome, asked: Asked) -> str | None:
    question = asked.question
    verdict = Verdict(outcome.verdict)
    return contradiction(question.model, key.problem, verdict, outcome.analyzer, question.limits)


def _general(key: int) -> dict[str, Any]:
    return {ADDRESS: key, "verdict": TO_GENERAL, "analyzer": "none", "core": [], "tied": True}


def _answer(key: int, outcome: Outcome, part: KernelColumns, *, tied: bool) -> dict[str, Any]:
    op = outcome.op if outcome.verdict != "valid" else None
    answer = {
        ADDRESS: key,
        "verdict": outcome.verdict,
        "analyzer": outcome.analyzer,
        "cause": outcome.cause,
        "kind": outcome.kind,
        "op_start": None if op is None else int(part.s[op]),
        "op_end": None if op is None else int(part.e[op]),
        "core": part.s[outcome.core].tolist(),
        "tied": tied,
        "unsuited": outcome.unsuited,
    }
    if outcome.verdict == "invalid" and len(part.s) > OBJECTS:
        rows = likely_invalid(part, outcome)
        answer["part"] = part.s[rows].tolist()
        answer["observed"] = np.unique(part.a[rows][np.isin(part.f[rows], (READ, CAS))]).tolist()
    return answer


def _answers(rows: list[dict[str, Any]]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([{**row, "engine": KERNEL} for row in rows], schema=ANSWER)
