"""Timelines of one run from arrays: the rows of `results.pipeline.measure.timelines` for the same operations.

The rule: each number equals the one of that module, which describes the columns; a test compares the two. The only difference:
quantiles here are always of the nearest rank.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from harness.op import OpType
from harness.units import NS_PER_MS, NS_PER_S
from harness.verdict import Verdict
from harness.watch import Sighting
from results.measure.leadership import Elections
from results.measure.op_outcomes import OUTCOMES
from results.measure.series import MIN_MS
from results.pipeline.measure.availability import BEFORE
from results.pipeline.measure.timelines import (
    AVAILABILITY,
    CONCURRENCY,
    HEAT,
    LATENCIES,
    LEADERS,
    QUANTILES,
    RATES,
    SHOWN_KEYS,
    TOTALS,
)
from results.pipeline.single.asked import ABSENT
from results.pipeline.single.availability import availability, windows

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from results.pipeline.single.asked import Asked, Flags, Integers
    from results.pipeline.single.availability import Stretch

    Row = dict[str, Any]


def timelines(
    asked: Asked | None,
    *,
    run: str,
    faults: Sequence[Mapping[str, Any]],
    sightings: Sequence[Mapping[str, Any]],
    verdicts: Mapping[str | None, str],
) -> dict[str, list[Row]]:
    """Returns the rows of all timelines of a run, by the name of the table.

    Args:
        asked: The operations; None for none.
        run: The run's name.
        faults: Rows of `schema.FAULTS`.
        sightings: Rows of `schema.SIGHTINGS`.
        verdicts: The verdict of each key.
    """
    stretches = list(windows(faults, 0 if asked is None else asked.horizon_ns))
    found: dict[str, list[Row]] = {
        LEADERS: list(_leaders(sightings, stretches)),
        AVAILABILITY: list(availability(asked, stretches)),
    }
    if asked is not None:
        found |= {
            RATES: list(_rates(asked)),
            LATENCIES: list(_latencies(asked)),
            TOTALS: list(_totals(asked)),
            CONCURRENCY: list(_concurrency(asked)),
            HEAT: list(_heat(asked, verdicts)),
        }
    return {name: [{"run": run, **row} for row in rows] for name, rows in found.items()}


def _groups(*columns: NDArray[Any], only: Flags | None = None) -> Iterator[tuple[tuple[Any, ...], Integers]]:
    """Yields the rows of each combination of values, sorted by the values."""
    rows = np.arange(len(columns[0])) if only is None else np.flatnonzero(only)
    order = rows[np.lexsort([column[rows] for column in reversed(columns)])]
    if not len(order):
        return
    new = np.logical_or.reduce([column[order][1:] != column[order][:-1] for column in columns])
    for low, high in pairwise([0, *(np.flatnonzero(new) + 1).tolist(), len(order)]):
        yield tuple(column[order[low]].item() for column in columns), order[low:high]


def _rates(asked: Asked) -> Iterator[Row]:
    for (f, outcome, node, time_s), rows in _groups(
        asked.f.places, asked.outcome.places, asked.node.places, asked.time_s
    ):
        yield {
            "f": asked.f.text(f),
            "type": asked.outcome.text(outcome),
            "node": asked.node.text(node),
            "time_s": time_s,
            "width_s": asked.width_s,
            "operations": len(rows),
        }


def _quantiles(asked: Asked, rows: Integers) -> Row:
    """Returns the quantiles of the latency of these ok operations."""
    took_ms = np.sort(np.maximum((asked.end_ns[rows] - asked.wanted_ns[rows]) / NS_PER_MS, MIN_MS))
    if not len(took_ms):
        return {**dict.fromkeys(QUANTILES), "max_ms": None}
    ranks = {name: max(int(np.ceil(share * len(took_ms))), 1) - 1 for name, share in QUANTILES.items()}
    return {**{name: float(took_ms[rank]) for name, rank in ranks.items()}, "max_ms": float(took_ms[-1])}


def _latencies(asked: Asked) -> Iterator[Row]:
    for (f, time_s), rows in _groups(asked.f.places, asked.time_s, only=asked.outcome.equal(OpType.OK)):
        yield {
            "f": asked.f.text(f),
            "time_s": time_s,
            "width_s": asked.width_s,
            "operations": len(rows),
            **_quantiles(asked, rows),
        }


def _totals(asked: Asked) -> Iterator[Row]:
    kinds = {kind: asked.outcome.equal(kind) for kind in OUTCOMES}
    measured = {
        "asked": asked.measures & ~asked.refused,
        "answered": asked.measures & ~asked.refused & asked.good,
    }
    for (f,), rows in _groups(asked.f.places):
        counts = {name: int(np.count_nonzero(flags[rows])) for name, flags in (kinds | measured).items()}
        yield {"f": asked.f.text(f), **counts, **_quantiles(asked, rows[kinds[OpType.OK][rows]])}


def _concurrency(asked: Asked) -> Iterator[Row]:
    width_ns = round(asked.width_s * NS_PER_S)
    last = (asked.horizon_ns - 1) // width_ns
    steps = np.zeros(last + 1, np.int64)
    for times, step in ((asked.start_ns, 1), (asked.end_ns[asked.end_ns != ABSENT], -1)):
        # The first bucket that begins at or after a time: there, a start counts, and an end no longer does.
        places = np.ceil(np.maximum(times, 0) / width_ns).astype(np.int64)
        steps += step * np.bincount(places[places <= last], minlength=last + 1)
    for place, count in enumerate(np.cumsum(steps).tolist()):
        yield {"time_s": place * asked.width_s, "width_s": asked.width_s, "open": count}


def _heat(asked: Asked, verdicts: Mapping[str | None, str]) -> Iterator[Row]:
    keyed = asked.key.places != ABSENT
    counts = np.bincount(asked.key.places[keyed], minlength=len(asked.key.texts)).tolist()

    def order(place: int) -> tuple[int, int, str]:
        key = asked.key.texts[place]
        return -Verdict(verdicts.get(key, Verdict.UNKNOWN)).severity, -counts[place], key

    present = [place for place, count in enumerate(counts) if count]
    shown = np.isin(asked.key.places, sorted(present, key=order)[:SHOWN_KEYS])
    for (key, time_s), rows in _groups(asked.key.places, asked.time_s, only=shown & ~asked.refused):
        yield {
            "key": asked.key.text(key),
            "time_s": time_s,
            "width_s": asked.width_s,
            "operations": len(rows),
            "answered": int(np.count_nonzero(asked.good[rows])),
        }


def _leaders(sightings: Sequence[Mapping[str, Any]], stretches: Sequence[Stretch]) -> Iterator[Row]:
    if not sightings:
        return
    elections = Elections([Sighting(**{name: row[name] for name in row if name != "run"}) for row in sightings])
    whole: list[tuple[Any, ...]] = [(None, None, None, None)]
    parts = [(each.fault, each.part, each.from_ns, each.to_ns) for each in stretches if each.part != BEFORE]
    for fault, part, from_ns, to_ns in [*parts, *whole]:
        led = elections.within(from_ns, to_ns)
        yield {
            "fault": fault,
            "part": part,
            "changes": led.changes,
            "leaders": list(led.leaders),
            "terms": list(led.terms),
        }
