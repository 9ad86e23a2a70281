"""Timelines of one run from arrays: the rows that `results.pipeline.measure.timelines` has of the same operations.

The law: each number is the one of that module, which says what the columns mean; a test holds the two to each other. The one
difference: quantiles here are of the nearest rank, however many operations a bucket has.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from harness.op import OpType
from harness.units import NS_PER_MS, NS_PER_S
from harness.verdict import Verdict
from harness.watch import Sighting
from results.availability import error_code
from results.leadership import Elections
from results.pipeline.measure.availability import slice_of
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
from results.pipeline.single.windows import BEFORE, DURING, SPAN_NS, Stretch, windows
from results.series import LEAST_MS, bucket_s

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    Row = dict[str, Any]
    Flags = NDArray[np.bool_]
    Integers = NDArray[np.int64]

_ABSENT: Final = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """A column of texts: for each operation the place of its text in `texts`, or -1 where it has none."""

    places: Integers
    texts: Sequence[str]

    def text(self, place: int) -> str | None:
        """Returns the text at a place; None for -1."""
        return None if place == _ABSENT else self.texts[place]

    def equal(self, text: str) -> Flags:
        """Says which operations have this text."""
        place = self.texts.index(text) if text in self.texts else len(self.texts)
        return np.equal(self.places, place)

    def among(self, texts: Sequence[str]) -> Flags:
        """Says which operations have one of these texts."""
        return np.isin(self.places, [place for place, text in enumerate(self.texts) if text in texts])


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The workload's own operations of one run, as arrays of one length.

    Attributes:
        f: The function of each.
        type: Its outcome.
        node: The node that it was asked of.
        key: Its key.
        code: The code of its error.
        start_ns: When it was invoked.
        end_ns: When it returned; -1 if it did not.
        wanted_ns: When a client wanted it.
        good: Whether it was answered.
        refused: Whether a node named another one.
        follows: Whether its client follows the leader.
        measures: Whether it measures the system.
        horizon_ns: Right after the last one was wanted.
        width_s: How wide a bucket of time is.
        time_s: In which bucket each was wanted, as its start.
    """

    f: Named
    type: Named
    node: Named
    key: Named
    code: Named
    start_ns: Integers
    end_ns: Integers
    wanted_ns: Integers
    good: Flags
    refused: Flags
    follows: Flags
    measures: Flags
    horizon_ns: int
    width_s: float
    time_s: NDArray[np.float64]


def asked_of(operations: pa.Table, answers: Sequence[str], refusals: Sequence[str]) -> Asked | None:
    """Returns the workload's own operations of a run; None if there are none.

    Args:
        operations: The columns of `schema.OPERATIONS`, of one run.
        answers: Codes of `fail` errors that are answers.
        refusals: Codes of `fail` errors that are refusals.
    """
    rows = operations.filter(pc.is_null(operations.column("phase")))
    if not rows.num_rows:
        return None
    rows = rows.sort_by([("invoke_index", "ascending")])
    type_ = _named(rows, "type")
    start_ns = _numbers(rows.column("start_ns"))
    wanted_ns = _numbers(pc.coalesce(rows.column("scheduled_ns"), rows.column("start_ns")))
    errors = _named(rows, "error")
    code = _recoded(errors)
    failed = type_.equal(OpType.FAIL)
    follows = rows.column("via").is_valid().to_numpy()
    horizon_ns = int(wanted_ns.max()) + 1
    width_s = bucket_s((horizon_ns - 1) / NS_PER_S)
    at_s = np.maximum(wanted_ns, 0) / NS_PER_S
    # As Python floors, where 1.0 // 0.1 is 9.
    time_s = np.round((at_s - np.fmod(at_s, width_s)) / width_s) * width_s
    return Asked(
        f=_named(rows, "f"),
        type=type_,
        node=_named(rows, "node"),
        key=_named(rows, "key"),
        code=code,
        start_ns=start_ns,
        end_ns=_numbers(pc.fill_null(rows.column("end_ns"), _ABSENT)),
        wanted_ns=wanted_ns,
        good=type_.equal(OpType.OK) | (failed & code.among(answers)),
        refused=failed & code.among(refusals),
        follows=follows,
        measures=follows | ~follows.any(),
        horizon_ns=horizon_ns,
        width_s=width_s,
        time_s=time_s,
    )


def _numbers(column: pa.ChunkedArray) -> Integers:
    numbers: Integers = column.to_numpy()
    return numbers.astype(np.int64, copy=False)


def _named(rows: pa.Table, name: str) -> Named:
    encoded = rows.column(name).combine_chunks().dictionary_encode()
    places = pc.fill_null(encoded.indices, _ABSENT).to_numpy(zero_copy_only=False).astype(np.int64)
    return Named(places=places, texts=encoded.dictionary.to_pylist())


def _recoded(errors: Named) -> Named:
    """Returns the codes of errors, of which several have one code."""
    codes = [error_code(text) or "" for text in errors.texts]
    texts = list(dict.fromkeys(codes))
    places = np.array([*(texts.index(code) for code in codes), _ABSENT], np.int64)
    return Named(places=places[errors.places], texts=texts)


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
        asked: What was asked; None for nothing.
        run: The run's name.
        faults: Rows of `schema.FAULTS`.
        sightings: Rows of `schema.SIGHTINGS`.
        verdicts: The verdict of each key.
    """
    stretches = list(windows(faults, 0 if asked is None else asked.horizon_ns))
    found: dict[str, list[Row]] = {LEADERS: list(_leaders(sightings, stretches))}
    found[AVAILABILITY] = [] if asked is None and not stretches else list(_availability(asked, stretches))
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
    """Yields the rows of each combination of values, in the order of these."""
    rows = np.arange(len(columns[0])) if only is None else np.flatnonzero(only)
    order = rows[np.lexsort([column[rows] for column in reversed(columns)])]
    if not len(order):
        return
    new = np.logical_or.reduce([column[order][1:] != column[order][:-1] for column in columns])
    for low, high in pairwise([0, *(np.flatnonzero(new) + 1).tolist(), len(order)]):
        yield tuple(column[order[low]].item() for column in columns), order[low:high]


def _rates(asked: Asked) -> Iterator[Row]:
    for (f, type_, node, time_s), rows in _groups(asked.f.places, asked.type.places, asked.node.places, asked.time_s):
        yield {
            "f": asked.f.text(f),
            "type": asked.type.text(type_),
            "node": asked.node.text(node),
            "time_s": time_s,
            "width_s": asked.width_s,
            "operations": len(rows),
        }


def _quantiles(asked: Asked, rows: Integers) -> Row:
    """Returns the quantiles of the latency of those operations that were ok."""
    took_ms = np.sort(np.maximum((asked.end_ns[rows] - asked.wanted_ns[rows]) / NS_PER_MS, LEAST_MS))
    if not len(took_ms):
        return {**dict.fromkeys(QUANTILES), "max_ms": None}
    ranks = {name: max(int(np.ceil(share * len(took_ms))), 1) - 1 for name, share in QUANTILES.items()}
    return {**{name: float(took_ms[rank]) for name, rank in ranks.items()}, "max_ms": float(took_ms[-1])}


def _latencies(asked: Asked) -> Iterator[Row]:
    for (f, time_s), rows in _groups(asked.f.places, asked.time_s, only=asked.type.equal(OpType.OK)):
        yield {
            "f": asked.f.text(f),
            "time_s": time_s,
            "width_s": asked.width_s,
            "operations": len(rows),
            **_quantiles(asked, rows),
        }


def _totals(asked: Asked) -> Iterator[Row]:
    kinds = {str(kind): asked.type.equal(kind) for kind in (OpType.OK, OpType.INFO, OpType.FAIL)}
    measured = {
        "asked": asked.measures & ~asked.refused,
        "answered": asked.measures & ~asked.refused & asked.good,
        "refused": asked.measures & asked.refused,
    }
    for (f,), rows in _groups(asked.f.places):
        counts = {name: int(np.count_nonzero(flags[rows])) for name, flags in (kinds | measured).items()}
        yield {"f": asked.f.text(f), **counts, **_quantiles(asked, rows[kinds["ok"][rows]])}


def _concurrency(asked: Asked) -> Iterator[Row]:
    width_ns = round(asked.width_s * NS_PER_S)
    last = (asked.horizon_ns - 1) // width_ns
    steps = np.zeros(last + 1, np.int64)
    for times, step in ((asked.start_ns, 1), (asked.end_ns[asked.end_ns != _ABSENT], -1)):
        # The first bucket that begins at or after a time: what began then counts there, and what ended does not.
        places = np.ceil(np.maximum(times, 0) / width_ns).astype(np.int64)
        steps += step * np.bincount(places[places <= last], minlength=last + 1)
    for place, count in enumerate(np.cumsum(steps).tolist()):
        yield {"time_s": place * asked.width_s, "width_s": asked.width_s, "open": count}


def _heat(asked: Asked, verdicts: Mapping[str | None, str]) -> Iterator[Row]:
    keyed = asked.key.places != _ABSENT
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


def _availability(asked: Asked | None, stretches: Sequence[Stretch]) -> Iterator[Row]:
    measured = None if asked is None else _Measured(asked)
    before: dict[int, float] = {}
    for each in stretches:
        if each.part == BEFORE and measured is not None:
            before[each.fault] = measured.within(each, None)["answered"] / (each.length_ns / NS_PER_S)
    nodes = [] if measured is None else measured.nodes
    for each in stretches:
        if each.part == BEFORE:
            continue
        for node in [None, *nodes]:
            told = measured.within(each, node) if measured is not None else _nothing(each)
            of_system = node is None and each.part == DURING
            rate_before = before.get(each.fault) if of_system else None
            rate = told["answered"] / (each.length_ns / NS_PER_S)
            yield {
                "fault": each.fault,
                "kind": each.kind,
                "node": node,
                "part": each.part,
                "start_s": each.from_ns / NS_PER_S,
                "end_s": each.to_ns / NS_PER_S,
                **told,
                "rate_before": rate_before,
                "rate_share": rate / rate_before if rate_before else None,
                "overlaps": list(each.overlaps),
            }


def _nothing(stretch: Stretch) -> Row:
    """Returns what is measured where nothing was asked."""
    counts = dict.fromkeys(("operations", "answered", "refused"), 0)
    times = {"first_ok_s": None, "sustained_ok_s": None, "longest_gap_s": stretch.length_ns / NS_PER_S}
    return {**counts, **times, "errors": []}


class _Measured:
    """Operations in the order in which they were wanted, to be measured in stretches of time."""

    def __init__(self, asked: Asked) -> None:
        self._asked = asked
        self._order = np.argsort(asked.wanted_ns, kind="stable")
        self._times = asked.wanted_ns[self._order]
        stay = np.unique(asked.node.places[~asked.follows & (asked.node.places != _ABSENT)])
        self.nodes = sorted(asked.node.texts[place] for place in stay.tolist())

    def within(self, stretch: Stretch, node: str | None) -> Row:
        """Measures one stretch, of the system or of the clients that stay at a node."""
        asked = self._asked
        low, high = np.searchsorted(self._times, (stretch.from_ns, stretch.to_ns))
        rows = self._order[low:high]
        whose = asked.measures if node is None else ~asked.follows & asked.node.equal(node)
        rows = rows[whose[rows]]
        codes = asked.code.places[rows]
        counts = np.bincount(codes[codes != _ABSENT], minlength=len(asked.code.texts))
        kept = rows[~asked.refused[rows]]
        times = asked.wanted_ns[kept]
        inside = np.ones(len(kept), np.bool_)
        told = slice_of(times, asked.good[kept], inside, times + SPAN_NS <= stretch.to_ns)
        first_ns, last_ns, sustained_ns = (told[name] for name in ("first_ns", "last_ns", "sustained_ns"))
        gaps_ns = [told["gap_ns"] or 0, stretch.to_ns - (stretch.from_ns if last_ns is None else last_ns)]
        if first_ns is not None:
            gaps_ns.append(first_ns - stretch.from_ns)
        return {
            "operations": told["operations"],
            "answered": told["answered"],
            "refused": len(rows) - len(kept),
            "first_ok_s": None if first_ns is None else (first_ns - stretch.from_ns) / NS_PER_S,
            "sustained_ok_s": None if sustained_ns is None else (sustained_ns - stretch.from_ns) / NS_PER_S,
            "longest_gap_s": max(gaps_ns) / NS_PER_S,
            "errors": [(asked.code.texts[place], int(counts[place])) for place in np.flatnonzero(counts).tolist()],
        }
