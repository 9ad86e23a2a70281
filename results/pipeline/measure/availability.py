"""Availability around each fault of a run, measured slice by slice.

The rule: each number equals the one of `results.measure.availability`. `measured` measures the part of each stretch that lies
in a slice, and `rows_of` combines the parts.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from harness.units import NS_PER_S
from results.measure.availability import BEFORE_S, SUSTAINED_RATIO
from results.pipeline.measure.asked import ABSENT
from results.pipeline.measure.spans import SPAN_NS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from results.pipeline.measure.asked import Asked, Integers
    from results.pipeline.measure.spans import Span

    Row = dict[str, Any]

BEFORE_NS: Final = int(BEFORE_S * NS_PER_S)
BEFORE, DURING, AFTER = "before", "during", "after"
_SUMS: Final = ("operations", "answered", "refused")


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
    """Yields the stretches around the faults of a run; none ends after the last operation.

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
            (DURING, start_ns, min(end_ns, horizon_ns)),
            (AFTER, end_ns, later_ns),
        ):
            if to_ns > from_ns:
                yield Stretch(fault=fault, kind=kind, part=part, from_ns=from_ns, to_ns=to_ns, overlaps=overlaps)


def _end_ns(row: Mapping[str, Any], horizon_ns: int) -> int:
    end_ns: int | None = row["end_ns"]
    return max(row["start_ns"], horizon_ns) if end_ns is None else end_ns


def _whose(span: Span) -> Iterator[tuple[str | None, str | None]]:
    """Yields node and function of each row of a stretch: those of the system, of each node, and of each function."""
    yield None, None
    yield from ((node, None) for node in span.nodes)
    yield from ((None, f) for f in span.measuring)


def measured(asked: Asked, stretches: Sequence[Stretch], span: Span) -> Iterator[Row]:
    """Yields the part of each stretch in a slice, for the system, for the clients of each node, and for each function.

    A row has `stretch` (its number), `node`, `f`, and the members that `_combined` takes. A part without operations has no row.
    """
    order = np.argsort(asked.wanted_ns, kind="stable")
    for node, f in _whose(span):
        whose = asked.measures if node is None else ~asked.follows & asked.node.equal(node)
        theirs = _Theirs(asked, order[(whose if f is None else whose & asked.f.equal(f))[order]])
        its = [pair for pair in enumerate(stretches) if (node, f) == (None, None) or pair[1].part != BEFORE]
        for (number, _), part in zip(its, theirs.parts([stretch for _, stretch in its]), strict=True):
            if part["operations"] or part["refused"]:
                yield {"stretch": number, "node": node, "f": f, **part}


class _Theirs:
    """The operations of the system, of the clients of a node, or of a function, in the order of their times.

    The arrays are made once, because there are many stretches, and most are short.
    """

    def __init__(self, asked: Asked, rows: Integers) -> None:
        times, own, refused, code = (
            column[rows] for column in (asked.wanted_ns, asked.own, asked.refused, asked.code.places)
        )
        self._refused_ns = times[own & refused]
        failed = own & (code != ABSENT)
        self._error_ns, self._errors, self._texts = times[failed], code[failed], asked.code.texts
        kept = ~refused
        kept_ns, own, good = times[kept], own[kept], asked.good[rows[kept]]
        self._own_ns = kept_ns[own]
        places = np.flatnonzero(good & own)
        self._good_ns = kept_ns[places]
        self._gaps_ns = np.diff(self._good_ns)
        sums = np.concatenate(([0], np.cumsum(good)))
        until = np.searchsorted(kept_ns, self._good_ns + SPAN_NS, side="right")
        self._sustained_ns = self._good_ns[sums[until] - sums[places] >= SUSTAINED_RATIO * (until - places)]

    def parts(self, stretches: Sequence[Stretch]) -> Iterator[Row]:
        """Yields the measures of each stretch, as `results.measure.availability` defines them."""
        edges_ns = np.array([(stretch.from_ns, stretch.to_ns) for stretch in stretches], np.int64).reshape(-1, 2)
        times = (self._own_ns, self._good_ns, self._refused_ns, self._error_ns)
        bounds = [np.searchsorted(series, edges_ns).tolist() for series in times]
        # A stretch lasts for `SPAN_NS` after an answer that is sustained in it.
        lasting = np.searchsorted(self._sustained_ns, edges_ns - [0, SPAN_NS - 1]).tolist()
        for own, (low, high), refused, errors, (first, last) in zip(*bounds, lasting, strict=True):
            counted = Counter(self._errors[slice(*errors)].tolist())
            yield {
                "operations": own[1] - own[0],
                "answered": high - low,
                "first_ns": int(self._good_ns[low]) if low < high else None,
                "last_ns": int(self._good_ns[high - 1]) if low < high else None,
                "gap_ns": int(self._gaps_ns[low : high - 1].max()) if high - low > 1 else None,
                "sustained_ns": int(self._sustained_ns[first]) if first < last else None,
                "refused": refused[1] - refused[0],
                "errors": [(self._texts[index], count) for index, count in sorted(counted.items())],
            }


def rows_of(parts: Iterable[Row], stretches: Sequence[Stretch], span: Span | None) -> Iterator[Row]:
    """Yields the rows of `schema.AVAILABILITY_COLUMNS`, without the run.

    Args:
        parts: The rows of `measured` of all slices, in the order of time.
        stretches: The stretches of the run.
        span: The span of the run; None if it has no operations.
    """
    by_stretch: dict[tuple[int, str | None, str | None], list[Row]] = {}
    for part in parts:
        by_stretch.setdefault((part["stretch"], part["node"], part["f"]), []).append(part)
    before = {
        stretch.fault: sum(part["answered"] for part in by_stretch.get((number, None, None), ()))
        / (stretch.length_ns / NS_PER_S)
        for number, stretch in enumerate(stretches)
        if stretch.part == BEFORE and span is not None
    }
    whose = [(None, None)] if span is None else list(_whose(span))
    for number, stretch in enumerate(stretches):
        if stretch.part == BEFORE:
            continue
        for node, f in whose:
            measures = _combined(by_stretch.get((number, node, f), ()), stretch)
            of_system = node is None and f is None and stretch.part == DURING
            rate_before = before.get(stretch.fault) if of_system else None
            rate = measures["answered"] / (stretch.length_ns / NS_PER_S)
            yield {
                "fault": stretch.fault,
                "kind": stretch.kind,
                "node": node,
                "f": f,
                "part": stretch.part,
                "start_s": stretch.from_ns / NS_PER_S,
                "end_s": stretch.to_ns / NS_PER_S,
                **measures,
                "rate_before": rate_before,
                "rate_share": rate / rate_before if rate_before else None,
                "overlaps": list(stretch.overlaps),
            }


def _combined(parts: Sequence[Row], stretch: Stretch) -> Row:
    """Returns the measures of a stretch from those of its parts."""
    last_ns = stretch.from_ns
    gaps_ns = []
    errors: Counter[str] = Counter()
    for part in parts:
        errors.update(dict(part["errors"]))
        if part["first_ns"] is not None:
            gaps_ns += [part["gap_ns"] or 0, part["first_ns"] - last_ns]
            last_ns = part["last_ns"]

    def since_s(name: str) -> float | None:
        first_ns = min((part[name] for part in parts if part[name] is not None), default=None)
        return None if first_ns is None else (first_ns - stretch.from_ns) / NS_PER_S

    return {
        **{name: sum(part[name] for part in parts) for name in _SUMS},
        "first_ok_s": since_s("first_ns"),
        "sustained_ok_s": since_s("sustained_ns"),
        "longest_gap_s": max([*gaps_ns, stretch.to_ns - last_ns]) / NS_PER_S,
        "errors": sorted(errors.items()),
    }
