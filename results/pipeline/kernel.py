"""Decides keys of registers by the native kernel, in Spark's Python workers, from coded operations.

A partition holds whole keys. Its rows come as Arrow batches of integers and go to the kernel as they are: there is no Python
object for an operation. The kernel's near-linear analyzer looks at many keys in one call; a key that it does not suit is
searched by itself, within the limits of a key.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from checker._kernel import Problem
from checker.solving import Limits, solve
from results.pipeline.coding import GENERAL

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from checker._kernel import Outcome

# What the kernel's answer for a key is called on its way; `details` turns it into a row of verdicts.
ANSWER: Final = (
    "h bigint, verdict string, analyzer string, cause string, kind string, op_s bigint, op_e bigint, core array<bigint>, "
    "tied boolean, unsuited string"
)
_ANSWER_TYPES: Final = pa.schema(
    [
        ("h", pa.int64()),
        ("verdict", pa.string()),
        ("analyzer", pa.string()),
        ("cause", pa.string()),
        ("kind", pa.string()),
        ("op_s", pa.int64()),
        ("op_e", pa.int64()),
        ("core", pa.list_(pa.int64())),
        ("tied", pa.bool_()),
        ("unsuited", pa.string()),
    ]
)
TO_GENERAL: Final = "general"
_COLUMNS: Final = ("h", "f", "a", "b", "s", "e")
# What a key's operation takes: its columns twice, while they are put in order, and what the analyzers keep.
BYTES_PER_OPERATION: Final = 160
_ROWS_PER_CALL: Final = 1 << 19


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What the check of one key may use.

    Attributes:
        initial: The number of the register's initial value.
        time_limit_s: Wall time of a search; None for no limit.
        memory_limit: Bytes.
    """

    initial: int
    time_limit_s: float | None
    memory_limit: int


def decide(batches: Iterator[pa.RecordBatch], budget: Budget) -> Iterator[pa.RecordBatch]:
    """Answers for each key of a partition, whose rows are sorted by `h`."""
    pending: list[list[Any]] = []
    rows, due = 0, _ROWS_PER_CALL
    too_large: int | None = None
    for batch in batches:
        columns = [batch.column(name).to_numpy() for name in _COLUMNS]
        if too_large is not None:
            columns = _without(columns, too_large)
        if not len(columns[0]):
            continue
        pending.append(columns)
        rows += len(columns[0])
        if rows < due and rows * BYTES_PER_OPERATION <= budget.memory_limit:
            continue
        # All keys but the last are whole.
        joined = _joined(pending)
        last = joined[0][-1]
        cut = int(np.searchsorted(joined[0], last))
        if cut:
            yield _answers(_decided([column[:cut] for column in joined], budget))
        pending, rows = [[column[cut:] for column in joined]], len(joined[0]) - cut
        if rows * BYTES_PER_OPERATION > budget.memory_limit:
            too_large = int(last)
            yield _answers([_unknown(too_large)])
            pending, rows = [], 0
        # Doubled, so that the parts of one large key are not joined again for each batch.
        due = max(_ROWS_PER_CALL, 2 * rows)
    if rows:
        yield _answers(_decided(_joined(pending), budget))


def _joined(parts: Sequence[list[Any]]) -> list[Any]:
    return parts[0] if len(parts) == 1 else [np.concatenate(columns) for columns in zip(*parts, strict=True)]


def _without(columns: list[Any], key: int) -> list[Any]:
    others = columns[0] != key
    return [column[others] for column in columns]


def _unknown(key: int) -> dict[str, Any]:
    return {"h": key, "verdict": "unknown", "analyzer": "none", "cause": "out-of-memory", "core": [], "tied": False}


def _decided(columns: list[Any], budget: Budget) -> list[dict[str, Any]]:
    """Answers for the keys whose rows these are."""
    h, f, a, b, s, e = columns
    order = np.lexsort((e, s, h))
    h, a, b, s, e = (np.ascontiguousarray(column[order]) for column in (h, a, b, s, e))
    f = f[order].astype(np.uint8)
    bounds = [0, *(np.flatnonzero(h[1:] != h[:-1]) + 1).tolist(), len(h)]
    spans = list(pairwise(bounds))
    general = np.logical_or.reduceat(f >= GENERAL, bounds[:-1])
    ties = np.zeros(len(h), bool)
    ties[1:] = (s[1:] == s[:-1]) & (h[1:] == h[:-1])
    tied = np.logical_or.reduceat(ties, bounds[:-1])
    answers = [
        {"h": int(h[low]), "verdict": TO_GENERAL, "analyzer": "none", "core": [], "tied": True}
        for (low, _), whole in zip(spans, general, strict=True)
        if whole
    ]
    places = np.flatnonzero(~general).tolist()
    problems = [
        Problem("register", *(column[slice(*spans[i])] for column in (f, a, b, s, e)), initial=[budget.initial])
        for i in places
    ]
    near = Limits(algorithm="zones", memory_limit=budget.memory_limit, threads=1)
    searched = replace(near, algorithm="auto", time_limit_s=budget.time_limit_s)
    for i, problem, first in zip(places, problems, solve(problems, near), strict=True):
        outcome = first if first["unsuited"] is None else solve([problem], searched)[0]
        low = spans[i][0]
        answers.append(_answer(int(h[low]), outcome, s[low:], e[low:], tied=bool(tied[i])))
    return answers


def _answer(key: int, outcome: Outcome, s: Any, e: Any, *, tied: bool) -> dict[str, Any]:
    op = outcome["op"] if outcome["verdict"] != "valid" else None
    return {
        "h": key,
        "verdict": outcome["verdict"],
        "analyzer": outcome["analyzer"],
        "cause": outcome["cause"],
        "kind": outcome["kind"],
        "op_s": None if op is None else int(s[op]),
        "op_e": None if op is None else int(e[op]),
        "core": [int(s[i]) for i in outcome["core"]],
        "tied": tied,
        "unsuited": outcome["unsuited"],
    }


def _answers(rows: list[dict[str, Any]]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(rows, schema=_ANSWER_TYPES)
