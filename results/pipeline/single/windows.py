"""The stretches of time before, during and after each fault of a run; see `results.pipeline.measure.availability.windows`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from results.pipeline.measure.availability import AFTER, BEFORE, BEFORE_NS, DURING, SPAN_NS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

__all__ = ["AFTER", "BEFORE", "DURING", "SPAN_NS", "Stretch", "windows"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """A stretch of time around a fault.

    Attributes:
        fault: The fault's number.
        kind: Its kind.
        part: `before`, `during` or `after`.
        from_ns: Its start.
        to_ns: Its end, after its start.
        overlaps: Which other faults were on in `during` or `after`.
    """

    fault: int
    kind: str
    part: str
    from_ns: int
    to_ns: int
    overlaps: Sequence[int]

    @property
    def length_ns(self) -> int:
        """How long it is."""
        return self.to_ns - self.from_ns


def windows(faults: Sequence[Mapping[str, Any]], horizon_ns: int) -> Iterator[Stretch]:
    """Yields the stretches around the faults of a run.

    Args:
        faults: Rows of `schema.FAULTS`.
        horizon_ns: Right after the last operation was wanted.
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
