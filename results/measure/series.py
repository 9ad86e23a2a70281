"""Reduces operations to the arrays of a plot, a table, or a page of many runs.

This is the interface between counting and drawing. `results.page.plots` uses only these arrays, so it draws the same
pictures from the operations of one run and from the aggregates of Spark over thousands of runs. Latency counts from the
scheduled time of an operation in an open loop, so it includes waiting. Times are seconds since the start of the workload,
and latencies are milliseconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from harness.op import OpType
from harness.units import NS_PER_MS, NS_PER_S
from results.measure.availability import wanted_ns
from results.measure.op_outcomes import OUTCOMES, outcome

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from harness.faults import FaultRecord
    from harness.op import Operation
    from results.measure.op_outcomes import Codes

QUANTILES = (0.5, 0.95, 0.99, 1.0)
NICE_S = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600)
MAX_BUCKETS = 90
MIN_MS = 0.001


@dataclass(frozen=True, slots=True, kw_only=True)
class Shade:
    """A stretch of time with a fault.

    Attributes:
        kind: The fault's kind.
        start_s: Its start.
        end_s: Its end.
        effective: Whether its effect is proven.
    """

    kind: str
    start_s: float
    end_s: float
    effective: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Points:
    """The latencies of one function and outcome.

    Attributes:
        f: The function.
        outcome: One of `results.measure.op_outcomes.OUTCOMES`.
        time_s: The time of each.
        latency_ms: The latency of each; of the same length.
    """

    f: str
    outcome: str
    time_s: NDArray[np.float64]
    latency_ms: NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of a plot: a value for each bucket of time, or NaN if there is none.

    Attributes:
        f: The function; it has a panel of its own.
        name: An outcome, or the name of a quantile.
        time_s: The middle of each bucket.
        value: The value of each bucket; of the same length.
    """

    f: str
    name: str
    time_s: NDArray[np.float64]
    value: NDArray[np.float64]


def shades(faults: Sequence[FaultRecord]) -> list[Shade]:
    """Returns the stretches of time with a fault."""
    return [
        Shade(
            kind=fault.planned.kind,
            start_s=fault.start_ns / NS_PER_S,
            end_s=fault.end_ns / NS_PER_S,
            effective=fault.proof is not None and fault.proof.effective,
        )
        for fault in faults
        if fault.end_ns > fault.start_ns
    ]


def main_phase(operations: Sequence[Operation]) -> list[Operation]:
    """Returns the workload's own operations, without the reads after healing."""
    return [operation for operation in operations if operation.phase is None]


def latency_points(operations: Sequence[Operation], codes: Codes) -> list[Points]:
    """Returns the latencies of all operations that ended, by function and outcome."""
    groups: dict[tuple[str, str], list[tuple[int, int]]] = {}
    for operation in operations:
        if operation.end_ns is not None:
            wanted = wanted_ns(operation)
            group = operation.f, outcome(operation.type, operation.error, codes)
            groups.setdefault(group, []).append((wanted, operation.end_ns - wanted))
    made = []
    for f, kind in sorted(groups, key=lambda group: (group[0], OUTCOMES.index(group[1]))):
        columns = np.asarray(groups[f, kind], dtype=np.float64)
        made.append(
            Points(
                f=f,
                outcome=kind,
                time_s=columns[:, 0] / NS_PER_S,
                latency_ms=np.maximum(columns[:, 1] / NS_PER_MS, MIN_MS),
            )
        )
    return made


def bucket_s(duration_s: float) -> float:
    """Returns a round width of buckets, so that at most `MAX_BUCKETS` of them cover `duration_s`."""
    return next((float(width) for width in NICE_S if duration_s <= MAX_BUCKETS * width), duration_s / MAX_BUCKETS)


def quantile_lines(points: Sequence[Points], width_s: float) -> list[Line]:
    """Returns, for each function, a line for each quantile of the latency of its ok operations.

    The quantile of a bucket is the nearest rank, which is a measured latency.
    """
    lines = []
    for group in points:
        if group.outcome != OpType.OK or not group.time_s.size:
            continue
        order = np.argsort(group.time_s, kind="stable")
        buckets = (group.time_s[order] // width_s).astype(np.int64)
        latencies = group.latency_ms[order]
        first, last = int(buckets[0]), int(buckets[-1])
        edges = np.searchsorted(buckets, np.arange(first, last + 2))
        values = np.full((len(QUANTILES), last - first + 1), np.nan)
        for column, (low, high) in enumerate(pairwise(edges)):
            if high > low:
                values[:, column] = _ranks(np.sort(latencies[low:high]))
        time_s = _middles(first, last, width_s)
        lines += [
            Line(f=group.f, name=quantile_name(q), time_s=time_s, value=values[row]) for row, q in enumerate(QUANTILES)
        ]
    return lines


def _middles(first: int, last: int, width_s: float) -> NDArray[np.float64]:
    return (np.arange(first, last + 1, dtype=np.float64) + 0.5) * width_s


def _ranks(ordered: NDArray[np.float64]) -> list[float]:
    return [float(ordered[max(0, int(np.ceil(q * ordered.size)) - 1)]) for q in QUANTILES]


def quantile_name(q: float) -> str:
    """Returns the name of a quantile: p50, p99, max."""
    return "max" if q >= 1 else f"p{q * 100:g}"


def rate_lines(points: Sequence[Points], width_s: float) -> list[Line]:
    """Returns operations per second over the whole run: for each function a line for each of its outcomes."""
    if not points:
        return []
    last = max(int(group.time_s.max() // width_s) for group in points if group.time_s.size)
    time_s = _middles(0, last, width_s)
    lines = []
    for group in points:
        buckets = np.maximum((group.time_s // width_s).astype(np.int64), 0)
        counted = np.bincount(buckets, minlength=last + 1) / width_s
        lines.append(Line(f=group.f, name=group.outcome, time_s=time_s, value=counted))
    return lines


def latency_table(points: Sequence[Points]) -> Mapping[str, Mapping[str, float]]:
    """Returns, for each function, the quantiles of its ok operations' latency in ms over the whole run."""
    table = {}
    for group in points:
        if group.outcome == OpType.OK and group.latency_ms.size:
            values = _ranks(np.sort(group.latency_ms))
            table[group.f] = {
                f"{quantile_name(q)}_ms": round(value, 3) for q, value in zip(QUANTILES, values, strict=True)
            }
    return table


def thinned(points: Points, *, span_s: float, columns: int = 900, rows: int = 260) -> Points:
    """Returns one point for each non-empty cell of a fine grid over time and the logarithm of latency.

    The picture looks the same, and its file stays small for any number of operations.
    """
    if points.time_s.size <= columns:
        return points
    across = np.floor(points.time_s / max(span_s, 1e-9) * columns).astype(np.int64)
    up = np.floor(np.log10(points.latency_ms) * rows / 8).astype(np.int64)
    _, kept = np.unique(across * 1_000_003 + up, return_index=True)
    kept.sort()
    return Points(f=points.f, outcome=points.outcome, time_s=points.time_s[kept], latency_ms=points.latency_ms[kept])
