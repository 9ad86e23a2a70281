"""Availability around each fault of a run, from arrays; see `results.pipeline.measure.availability`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from harness.units import NS_PER_S
from results.pipeline.measure.availability import AFTER, BEFORE, BEFORE_NS, DURING, SPAN_NS, slice_of
from results.pipeline.single.asked import ABSENT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from results.pipeline.single.asked import Asked

    Row = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """A stretch of time around a fault.

    Attributes:
        fault: The fault's number.
        kind: Its kind.
        part: `before`, `during` or `after`.
        from_ns: Its start.
        to_ns: Its end, after its start.
        overlaps: The other faults in `during` or `after`.
    """

    fault: int
    kind: str
    part: str
    from_ns: int
    to_ns: int
    overlaps: Sequence[int]

    @property
    def length_ns(self) -> int:
        """Its length in ns."""
        return self.to_ns - self.from_ns


def windows(faults: Sequence[Mapping[str, Any]], horizon_ns: int) -> Iterator[Stretch]:
    """Yields the stretches around the faults of a run.

    Args:
        faults: Rows of `schema.FAULTS`.
        horizon_ns: The time right after the last operation.
    """
    spans = [(row["fault"], row["kind"], row["start_ns"], _end_ns(row, horizon_ns)) for row in faults]
    for fault, kind, start_ns, end_ns in spans:
        if end_ns <= start_ns:
            continue
        others = [
            (begin_ns, until_ns) for other, _, begin_ns, until_ns in spans if other != fault and until_ns > begin_ns
        ]
        next_ns = min((begin_ns for _, _, begin_ns, _ in spans if begin_ns >= end_ns), default=horizon_ns)
        later_ns = min(next_ns, horizon_ns)
        healed_ns = max((until_ns for _, until_ns in others if until_ns <= start_ns), default=0)
        within = any(begin_ns <= start_ns < until_ns for begin_ns, until_ns in others)
        overlaps = sorted(
            other
            for other, _, begin_ns, until_ns in spans
            if other != fault and begin_ns < max(later_ns, end_ns) and until_ns > start_ns
        )
        before_ns = start_ns if within else max(healed_ns, start_ns - BEFORE_NS, 0)
        for part, from_ns, to_ns in (
            (BEFORE, before_ns, start_ns),
            (DURING, start_ns, end_ns),
            (AFTER, end_ns, later_ns),
        ):
            if to_ns > from_ns:
                yield Stretch(fault=fault, kind=kind, part=part, from_ns=from_ns, to_ns=to_ns, overlaps=overlaps)


def _end_ns(row: Mapping[str, Any], horizon_ns: int) -> int:
    end_ns: int | None = row["end_ns"]
    return max(row["start_ns"], horizon_ns) if end_ns is None else end_ns


def availability(asked: Asked | None, stretches: Sequence[Stretch]) -> Iterator[Row]:
    """Yields the rows of `availability`, without the run: for each stretch one of the system, of each node and each function.

    Args:
        asked: The operations; None for none.
        stretches: The stretches of `windows`.
    """
    measured = None if asked is None else _Measured(asked)
    before: dict[int, float] = {}
    for each in stretches:
        if each.part == BEFORE and measured is not None:
            before[each.fault] = measured.within(each)["answered"] / (each.length_ns / NS_PER_S)
    whose: list[tuple[str | None, str | None]] = [(None, None)]
    if measured is not None:
        whose += [*((node, None) for node in measured.nodes), *((None, f) for f in measured.functions)]
    for each in stretches:
        if each.part == BEFORE:
            continue
        for node, f in whose:
            measures = measured.within(each, node, f) if measured is not None else _nothing(each)
            of_system = node is None and f is None and each.part == DURING
            rate_before = before.get(each.fault) if of_system else None
            rate = measures["answered"] / (each.length_ns / NS_PER_S)
            yield {
                "fault": each.fault,
                "kind": each.kind,
                "node": node,
                "f": f,
                "part": each.part,
                "start_s": each.from_ns / NS_PER_S,
                "end_s": each.to_ns / NS_PER_S,
                **measures,
                "rate_before": rate_before,
                "rate_share": rate / rate_before if rate_before else None,
                "overlaps": list(each.overlaps),
            }


def _nothing(stretch: Stretch) -> Row:
    """Returns the measures of a stretch without operations."""
    counts = dict.fromkeys(("operations", "answered", "refused"), 0)
    times = {"first_ok_s": None, "sustained_ok_s": None, "longest_gap_s": stretch.length_ns / NS_PER_S}
    return {**counts, **times, "errors": []}


class _Measured:
    """Operations in the order of their times, and measures of stretches."""

    def __init__(self, asked: Asked) -> None:
        self._asked = asked
        self._order = np.argsort(asked.wanted_ns, kind="stable")
        self._times = asked.wanted_ns[self._order]
        stay = np.unique(asked.node.places[~asked.follows & (asked.node.places != ABSENT)])
        self.nodes = sorted(asked.node.texts[place] for place in stay.tolist())
        self.functions = sorted(asked.f.texts[place] for place in np.unique(asked.f.places[asked.measures]).tolist())

    def within(self, stretch: Stretch, node: str | None = None, f: str | None = None) -> Row:
        """Measures one stretch: of the system, of the clients of a node, or of a function."""
        asked = self._asked
        low, high = np.searchsorted(self._times, (stretch.from_ns, stretch.to_ns))
        rows = self._order[low:high]
        whose = asked.measures if node is None else ~asked.follows & asked.node.equal(node)
        if f is not None:
            whose = whose & asked.f.equal(f)
        rows = rows[whose[rows]]
        codes = asked.code.places[rows]
        counts = np.bincount(codes[codes != ABSENT], minlength=len(asked.code.texts))
        kept = rows[~asked.refused[rows]]
        times = asked.wanted_ns[kept]
        inside = np.ones(len(kept), np.bool_)
        slice_ = slice_of(times, asked.good[kept], inside, times + SPAN_NS <= stretch.to_ns)
        first_ns, last_ns, sustained_ns = (slice_[name] for name in ("first_ns", "last_ns", "sustained_ns"))
        gaps_ns = [slice_["gap_ns"] or 0, stretch.to_ns - (stretch.from_ns if last_ns is None else last_ns)]
        if first_ns is not None:
            gaps_ns.append(first_ns - stretch.from_ns)
        return {
            "operations": slice_["operations"],
            "answered": slice_["answered"],
            "refused": len(rows) - len(kept),
            "first_ok_s": None if first_ns is None else (first_ns - stretch.from_ns) / NS_PER_S,
            "sustained_ok_s": None if sustained_ns is None else (sustained_ns - stretch.from_ns) / NS_PER_S,
            "longest_gap_s": max(gaps_ns) / NS_PER_S,
            "errors": [(asked.code.texts[place], int(counts[place])) for place in np.flatnonzero(counts).tolist()],
        }
