"""The rows between the steps: parts of transactions, and pieces of the graph with their words.

A row of the graph names transactions by their starts, which are unique in a history. The numbers of versions have a
meaning only within one key; the start and the place of the first access of a key name the key, and give its rank
among all keys.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from checker.formats.columns import INFO, OK

if TYPE_CHECKING:
    from checker.formats.columns import Int64s

LONG, INT, BYTE, TEXT = pa.int64(), pa.int32(), pa.int8(), pa.string()
NONE: Final = 2**32 - 1

# The micro-operations of one transaction on one key.
PARTS: Final = pa.schema(
    {
        "start": LONG,
        "end": LONG,
        "process": LONG,
        "kind": BYTE,
        "place": INT,  # of the first of them
        "places": pa.list_(INT),
        "key": TEXT,  # canonical JSON; null: the row tells what is wrong with a transaction, in `text`
        "text": TEXT,
        "address": pa.uint32(),  # of the key; it spreads keys over buckets
    }
)

# What a row of `PIECES` is.
EDGE: Final = 0  # from `a` to `b`
VERTEX: Final = 1  # `a` has no dependency on this key
READER: Final = 2  # `a` read the version `before`, and precedes each `WRITER` of the key
WRITER: Final = 3  # `a` wrote the version `after`
GROUP: Final = 4  # `a` wrote a version of the key without a known order
# Only if an anomaly that is searched on demand needs them:
READ: Final = 5  # `a` read the version `before`, and had not written the key before
WRITE: Final = 6  # `a` wrote the version `after`

_ENDS: Final = {
    f"{end}{name}": kind
    for end in "ab"
    for name, kind in (("", LONG), ("_end", LONG), ("_process", LONG), ("_kind", BYTE))
}
_NUMBERS: Final = {
    "what": BYTE,
    **_ENDS,
    "kind": BYTE,  # of an edge, as in the kernel
    "key_at": LONG,
    "key_place": INT,
    "before": LONG,
    "after": LONG,
    "at": INT,  # the place of the read of `EDGE`, `READER` and `READ`, or of `WRITE`, in its transaction; -1 for none
    "position": LONG,  # of `READ` and `WRITE` in the order of versions: the number of versions up to it, and of those before it
}
NUMBERS: Final = pa.schema(_NUMBERS)
WORDS: Final = pa.schema({"key": TEXT, "before_text": TEXT, "after_text": TEXT, "source": BYTE})
REF: Final = ("what", "a", "b", "kind", "key_at", "key_place", "before", "after")  # the numbers that name a piece

# Anomalies that are no cycles. The first four columns are their order.
FINDINGS: Final = pa.schema(
    {
        "step": BYTE,  # of the kernel, which finds them
        "at": LONG,
        "place": LONG,
        "number": LONG,
        "name": TEXT,
        "about": TEXT,  # JSON: the key, the starts, the places and the elements
    }
)

# What the row of a slice is.
WITHIN: Final = 0
BACK: Final = 1  # an edge whose origin is in this slice, and whose target is in the slice before
FORTH: Final = 2  # an edge whose target is in this slice, and whose origin is in the slice before
ENTRY: Final = 3
EXIT: Final = 4
OVER: Final = 5  # an edge that leads back over whole slices
SLICED: Final = pa.schema({"slice": LONG, "role": BYTE, **_NUMBERS})
Numbers = dict[str, Any]  # by column: an array


def numbers_of(table: pa.Table | pa.RecordBatch) -> Numbers:
    """Returns the columns of numbers as arrays; null is 0."""
    numbers = {}
    for name in table.schema.names:
        column = table.column(name)
        if pa.types.is_integer(column.type):
            numbers[name] = (
                column.fill_null(0).to_numpy(zero_copy_only=False) if column.null_count else column.to_numpy()
            )
    return numbers


def only(numbers: Numbers, rows: Any) -> Numbers:
    """Returns some rows."""
    return {name: column[rows] for name, column in numbers.items()}


def joined(parts: list[Numbers]) -> Numbers:
    """Returns the rows of all parts, which are not none."""
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


class Places:
    """The places of transactions in the order of completions.

    Transactions without an answer, on which others depend, come with the earliest completion of those.
    """

    def __init__(self, starts: Int64s, earliest: Int64s) -> None:
        """Takes the starts, in ascending order."""
        self._starts = starts
        self._places = np.maximum(starts, earliest)

    def of(self, start: Int64s, end: Int64s, kind: Any) -> tuple[Int64s, Any]:
        """Returns the places, and for each row whether it has one."""
        positions = end.astype(np.int64)
        placed = kind == OK
        open_ = np.flatnonzero(kind == INFO)
        if len(open_) and len(self._starts):
            at = np.minimum(np.searchsorted(self._starts, start[open_]), len(self._starts) - 1)
            known = self._starts[at] == start[open_]
            positions[open_[known]] = self._places[at[known]]
            placed[open_[known]] = True
        return positions, placed
