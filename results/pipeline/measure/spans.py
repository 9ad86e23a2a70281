"""What must be known of a whole run before its operations are measured, and the slices of time in which they are measured.

The rule: a slice is some whole buckets of time, so counts and quantiles of a bucket need only one slice. A run of up to
`SLICE_ROWS` operations is one slice. A longer run has several, so a worker holds the operations of one slice, whatever the size
of the run. A slice also has the operations of the two seconds after it, which decide whether answers were sustained.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from harness.units import NS_PER_S
from results.measure.availability import SUSTAINED_S
from results.measure.series import bucket_s

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    Integers = NDArray[np.int64]

SPAN_NS: Final = int(SUSTAINED_S * NS_PER_S)
SLICE_ROWS: Final = 1 << 21
_ROUNDING_NS: Final = 1000  # more than the rounding of a bucket's start in seconds

# The columns that a span needs, and those that measuring needs.
SPANNED: Final = ("run", "f", "node", "phase", "via", "start_ns", "scheduled_ns")
MEASURED: Final = ("key", "type", "end_ns", "error", "invoke_index", *SPANNED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """The workload's own operations of a run, as a whole.

    Attributes:
        operations: How many there are.
        horizon_ns: The time right after the last one.
        functions: Their functions.
        followed: The functions of clients that follow the leader. If there are any, only these measure the system.
        nodes: The nodes with clients that stay there.
        buckets: How many buckets of time make a slice.
    """

    operations: int
    horizon_ns: int
    functions: Sequence[str]
    followed: Sequence[str]
    nodes: Sequence[str]
    buckets: int

    @property
    def measuring(self) -> Sequence[str]:
        """The functions of the operations that measure the system."""
        return self.followed or self.functions

    @property
    def width_s(self) -> float:
        """The width of a bucket of time."""
        return bucket_s((self.horizon_ns - 1) / NS_PER_S)

    @property
    def slices(self) -> int:
        """How many slices there are."""
        return int(self.place(np.array([self.horizon_ns - 1]))[0]) // self.buckets + 1

    def place(self, times_ns: Integers) -> Integers:
        """Returns the number of the bucket of each time."""
        width_s = self.width_s
        at_s = np.maximum(times_ns, 0) / NS_PER_S
        # As `//` in Python, where 1.0 // 0.1 is 9.
        places: Integers = np.round((at_s - np.fmod(at_s, width_s)) / width_s).astype(np.int64)
        return places

    def document(self) -> dict[str, Any]:
        """Returns the span as JSON values."""
        return asdict(self)


def wanted_ns(rows: pa.Table) -> Integers:
    """Returns the scheduled time of each operation, or else the time of its invoke."""
    times: Integers = pc.coalesce(rows.column("scheduled_ns"), rows.column("start_ns")).to_numpy()
    return times.astype(np.int64, copy=False)


def in_order(rows: pa.Table) -> pa.Table:
    """Returns operations in the order of their invokes."""
    invokes = rows.column("invoke_index").to_numpy()
    # Most tables come in this order, and sorting copies all columns.
    return rows if (invokes[1:] >= invokes[:-1]).all() else rows.sort_by("invoke_index")


def own(rows: pa.Table) -> pa.Table:
    """Returns the workload's own operations; final reads after healing are left out."""
    phase = rows.column("phase")
    return rows if phase.null_count == rows.num_rows else rows.filter(pc.is_null(phase))


def span_of(rows: pa.Table) -> Span | None:
    """Returns the span of a run; None if it has no operations of the workload's own."""
    rows = own(rows)
    if not rows.num_rows:
        return None
    follows = rows.column("via").is_valid()
    part = Span(
        operations=rows.num_rows,
        horizon_ns=int(wanted_ns(rows).max()) + 1,
        functions=_names(rows.column("f")),
        followed=_names(rows.column("f").filter(follows)),
        nodes=_names(rows.column("node").filter(pc.invert(follows))),
        buckets=1,
    )
    return joined([part])


def _names(column: pa.ChunkedArray) -> list[str]:
    return sorted(name for name in pc.unique(column).to_pylist() if name is not None)


def joined(parts: Sequence[Span]) -> Span:
    """Returns the span of a run from those of its parts, of which there is at least one."""

    def every(name: str) -> list[str]:
        return sorted({row for part in parts for row in getattr(part, name)})

    whole = Span(
        operations=sum(part.operations for part in parts),
        horizon_ns=max(part.horizon_ns for part in parts),
        functions=every("functions"),
        followed=every("followed"),
        nodes=every("nodes"),
        buckets=1,
    )
    buckets = math.ceil(whole.slices / math.ceil(whole.operations / SLICE_ROWS))
    return replace(whole, buckets=max(buckets, math.ceil(SUSTAINED_S / whole.width_s)))


def slices_of(rows: pa.Table, span: Span) -> Iterator[tuple[int, pa.Table]]:
    """Yields the number of each slice with its operations, and with those of the two seconds after it.

    Args:
        rows: Some or all operations of a run.
        span: The span of the run.
    """
    rows = own(rows)
    if span.slices == 1:
        yield 0, rows
        return
    times = wanted_ns(rows)
    numbers = span.place(times) // span.buckets
    begins_ns = np.arange(span.slices) * span.buckets * span.width_s * NS_PER_S
    ahead = (numbers > 0) & (times < begins_ns[numbers] + SPAN_NS + _ROUNDING_NS)
    for number in np.unique(np.concatenate([numbers, numbers[ahead] - 1])).tolist():
        yield number, rows.filter(pa.array((numbers == number) | (ahead & (numbers == number + 1))))
