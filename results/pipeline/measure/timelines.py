"""Timelines of one run: rates, latencies, concurrency, and availability around each fault, in a bounded number of rows.

The rule: `results.measure.availability` defines availability, `results.measure.leadership` defines leaders, and a bucket is
as wide as in the report. An operation belongs to the moment of its scheduled start. Final reads after healing are left out.
Quantiles are measured latencies of the nearest rank. Only for a whole run of more than one slice, the rank differs by at most a
ten-thousandth of the number of operations.

`part_of` measures one slice of a run, and `joined` makes the tables from the parts. Parts are JSON values, so a worker can send
them. `measured` does both in this process.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from harness.op import OpType
from harness.units import NS_PER_MS, NS_PER_S
from harness.verdict import Verdict
from harness.watch import Sighting
from results.measure.leadership import Elections
from results.measure.op_outcomes import OUTCOMES
from results.measure.series import MIN_MS
from results.pipeline.measure import availability
from results.pipeline.measure.asked import ABSENT, asked_of
from results.pipeline.measure.availability import BEFORE, windows
from results.pipeline.measure.spans import slices_of, span_of
from results.pipeline.schema import AVAILABILITY, CONCURRENCY, HEAT, LATENCIES, LEADERS, RATES, TOTALS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    from results.pipeline.measure.asked import Asked, Flags, Integers
    from results.pipeline.measure.availability import Stretch
    from results.pipeline.measure.spans import Span

    Row = dict[str, Any]

QUANTILES: Final = {"p50_ms": 0.5, "p95_ms": 0.95, "p99_ms": 0.99}
SHOWN_KEYS: Final = 40  # for how many keys of a run `heat` has rows
_SUMMARY_VALUES: Final = 10_000
_PARTS: Final = "parts"  # of availability
_OF_TOTALS: Final = (*OUTCOMES, "asked", "answered")


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A run to measure.

    Attributes:
        run: Its name.
        faults: Rows of `schema.FAULTS`.
        sightings: Rows of `schema.SIGHTINGS`.
        answers: Codes of `fail` errors that are answers.
        refusals: Codes of `fail` errors that are refusals.
        shown: The keys of `heat`; see `shown_keys`.
    """

    run: str
    faults: Sequence[Mapping[str, Any]] = ()
    sightings: Sequence[Mapping[str, Any]] = ()
    answers: Sequence[str] = ()
    refusals: Sequence[str] = ()
    shown: Sequence[str] = ()


def measured(subject: Subject, operations: pa.Table) -> dict[str, list[Row]]:
    """Returns the rows of all timelines of a run, by the name of the table.

    Args:
        subject: The run.
        operations: Its operations, in the columns of `schema.OPERATIONS`.
    """
    span = span_of(operations)
    slices = () if span is None else slices_of(operations, span)
    return joined(subject, span, [part_of(subject, span, number, rows) for number, rows in slices if span is not None])


def shown_keys(counts: Iterable[tuple[str, int]], verdicts: Mapping[str | None, str]) -> list[str]:
    """Returns the keys of `heat`: those with the worst verdicts, and among these those with the most operations.

    Args:
        counts: Each key with the number of its operations.
        verdicts: The verdict of each key; one that is missing is unknown, since nothing was judged.
    """

    def order(counted: tuple[str, int]) -> tuple[int, int, str]:
        key, count = counted
        return -Verdict(verdicts.get(key, Verdict.UNKNOWN)).severity, -count, key

    return [key for key, _ in sorted(counts, key=order)[:SHOWN_KEYS]]


def part_of(subject: Subject, span: Span, number: int, rows: pa.Table) -> dict[str, Any]:
    """Measures one slice of a run, and returns JSON values for `joined`.

    Args:
        subject: The run.
        span: Its span.
        number: The number of the slice.
        rows: The operations that `results.pipeline.measure.spans.slices_of` yields.
    """
    asked = asked_of(rows, number, span, answers=subject.answers, refusals=subject.refusals)
    bucket = _Buckets(span.width_s)
    stretches = list(windows(subject.faults, span.horizon_ns))
    return {
        RATES: list(_rates(asked, bucket)),
        LATENCIES: list(_latencies(asked, bucket)),
        TOTALS: list(_totals(asked, exact=span.slices == 1)),
        CONCURRENCY: list(_steps(asked, span)),
        HEAT: list(_heat(asked, bucket, subject.shown)),
        _PARTS: list(availability.measured(asked, stretches, span)),
    }


def joined(subject: Subject, span: Span | None, parts: Sequence[Mapping[str, Any]]) -> dict[str, list[Row]]:
    """Returns the rows of all timelines of a run, by the name of the table.

    Args:
        subject: The run.
        span: Its span; None if it has no operations of the workload's own.
        parts: The parts of its slices, in the order of time.
    """
    stretches = list(windows(subject.faults, 0 if span is None else span.horizon_ns))

    def every(name: str) -> Iterator[Row]:
        return (row for part in parts for row in part[name])

    tables = {
        LEADERS: list(_leaders(subject.sightings, stretches)),
        AVAILABILITY: list(availability.rows_of(every(_PARTS), stretches, span)),
    }
    if span is not None:
        tables |= {name: list(every(name)) for name in (RATES, LATENCIES, HEAT)}
        tables |= {TOTALS: list(_summed(every(TOTALS))), CONCURRENCY: list(_concurrency(every(CONCURRENCY), span))}
    return {name: [{"run": subject.run, **row} for row in rows] for name, rows in tables.items()}


class _Buckets:
    """The columns of a bucket of time."""

    def __init__(self, width_s: float) -> None:
        self._width_s = width_s

    def __call__(self, number: int) -> Row:
        return {"time_s": number * self._width_s, "width_s": self._width_s}


def _groups(*columns: NDArray[Any], only: Flags) -> Iterator[tuple[tuple[Any, ...], Integers]]:
    """Yields the rows of each combination of values, sorted by the values."""
    rows = np.flatnonzero(only)
    order = rows[np.lexsort([column[rows] for column in reversed(columns)])]
    if not len(order):
        return
    new = np.logical_or.reduce([column[order][1:] != column[order][:-1] for column in columns])
    for low, high in pairwise([0, *(np.flatnonzero(new) + 1).tolist(), len(order)]):
        yield tuple(column[order[low]].item() for column in columns), order[low:high]


def _rates(asked: Asked, bucket: _Buckets) -> Iterator[Row]:
    columns = (asked.f.places, asked.outcome.places, asked.node.places, asked.place)
    for (f, outcome, node, number), rows in _groups(*columns, only=asked.own):
        yield {
            "f": asked.f.text(f),
            "type": asked.outcome.text(outcome),
            "node": asked.node.text(node),
            **bucket(number),
            "operations": len(rows),
        }


def _took_ms(asked: Asked, rows: Integers) -> NDArray[np.float64]:
    """Returns the latencies of these ok operations, ascending."""
    took_ms: NDArray[np.float64] = np.maximum((asked.end_ns[rows] - asked.wanted_ns[rows]) / NS_PER_MS, MIN_MS)
    return np.sort(took_ms)


def _quantiles(took_ms: NDArray[np.float64], weights: Integers) -> Row:
    """Returns quantiles of latencies, which are ascending; a weight is how many operations a latency stands for."""
    if not len(took_ms):
        return {**dict.fromkeys(QUANTILES), "max_ms": None}
    upto = np.cumsum(weights)
    ranks = [max(int(np.ceil(share * upto[-1])), 1) for share in QUANTILES.values()]
    places = np.searchsorted(upto, ranks)
    return {**dict(zip(QUANTILES, took_ms[places].tolist(), strict=True)), "max_ms": float(took_ms[-1])}


def _latencies(asked: Asked, bucket: _Buckets) -> Iterator[Row]:
    ok = asked.own & asked.outcome.equal(OpType.OK)
    for (f, number), rows in _groups(asked.f.places, asked.place, only=ok):
        quantiles = _quantiles(_took_ms(asked, rows), np.ones(len(rows), np.int64))
        yield {"f": asked.f.text(f), **bucket(number), "operations": len(rows), **quantiles}


def _totals(asked: Asked, *, exact: bool) -> Iterator[Row]:
    """Yields the counts of each function in a slice, and its latencies or a summary of them, each with its weight."""
    measures = asked.measures & ~asked.refused
    flags = {kind: asked.outcome.equal(kind) for kind in OUTCOMES}
    flags |= {"asked": measures, "answered": measures & asked.good}
    for (f,), rows in _groups(asked.f.places, only=asked.own):
        took_ms = _took_ms(asked, rows[flags[OpType.OK][rows]])
        counts = {name: int(np.count_nonzero(flagged[rows])) for name, flagged in flags.items()}
        known = _quantiles(took_ms, np.ones(len(took_ms), np.int64)) if exact else _summary(took_ms)
        yield {"f": asked.f.text(f), **counts, **known}


def _summary(took_ms: NDArray[np.float64]) -> Row:
    """Returns at most `_SUMMARY_VALUES` of some latencies, which are ascending, with how many each stands for."""
    many = min(len(took_ms), _SUMMARY_VALUES)
    upto = -(-np.arange(1, many + 1) * len(took_ms) // max(many, 1))
    return {"took_ms": took_ms[upto - 1].tolist(), "weights": np.diff(upto, prepend=0).tolist()}


def _summed(parts: Iterable[Row]) -> Iterator[Row]:
    """Yields the rows of whole runs from those of slices."""
    by_f: dict[str, list[Row]] = {}
    for part in parts:
        by_f.setdefault(part["f"], []).append(part)
    for f in sorted(by_f):
        its = by_f[f]
        if "took_ms" in its[0]:
            took_ms, weights = (
                np.concatenate([np.array(part[name]) for part in its]) for name in ("took_ms", "weights")
            )
            order = np.argsort(took_ms, kind="stable")
            quantiles = _quantiles(took_ms[order], weights[order].astype(np.int64))
        else:
            quantiles = {name: its[0][name] for name in (*QUANTILES, "max_ms")}
        yield {"f": f, **{name: sum(part[name] for part in its) for name in _OF_TOTALS}, **quantiles}


def _steps(asked: Asked, span: Span) -> Iterator[tuple[int, int]]:
    """Yields buckets with the change of the number of open operations at their start."""
    width_ns = round(span.width_s * NS_PER_S)
    last = (span.horizon_ns - 1) // width_ns
    steps = np.zeros(last + 1, np.int64)
    ended = asked.own & (asked.end_ns != ABSENT)
    for times, step in ((asked.start_ns[asked.own], 1), (asked.end_ns[ended], -1)):
        # The first bucket that begins at or after a time: there, a start counts, and an end no longer does.
        places = np.ceil(np.maximum(times, 0) / width_ns).astype(np.int64)
        steps += step * np.bincount(places[places <= last], minlength=last + 1)
    changed = np.flatnonzero(steps)
    return zip(changed.tolist(), steps[changed].tolist(), strict=True)


def _concurrency(steps: Iterable[Any], span: Span) -> Iterator[Row]:
    width_ns = round(span.width_s * NS_PER_S)
    at: Counter[int] = Counter()
    for number, step in steps:
        at[number] += step
    count = 0
    for number in range((span.horizon_ns - 1) // width_ns + 1):
        count += at[number]
        yield {"time_s": number * span.width_s, "width_s": span.width_s, "open": count}


def _heat(asked: Asked, bucket: _Buckets, shown: Sequence[str]) -> Iterator[Row]:
    counted = asked.own & ~asked.refused & asked.key.among(frozenset(shown))
    for (key, number), rows in _groups(asked.key.places, asked.place, only=counted):
        answered = int(np.count_nonzero(asked.good[rows]))
        yield {"key": asked.key.text(key), **bucket(number), "operations": len(rows), "answered": answered}


def _leaders(sightings: Sequence[Mapping[str, Any]], stretches: Sequence[Stretch]) -> Iterator[Row]:
    if not sightings:
        return
    elections = Elections([Sighting(**{name: row[name] for name in row if name != "run"}) for row in sightings])
    whole: list[tuple[Any, ...]] = [(None, None, None, None)]
    parts = [
        (stretch.fault, stretch.part, stretch.from_ns, stretch.to_ns) for stretch in stretches if stretch.part != BEFORE
    ]
    for fault, part, from_ns, to_ns in [*parts, *whole]:
        led = elections.within(from_ns, to_ns)
        yield {
            "fault": fault,
            "part": part,
            "changes": led.changes,
            "leaders": list(led.leaders),
            "terms": list(led.terms),
        }
