"""Draws the faults that were on during a counterexample, as bands behind its operations.

The time axis of a counterexample shows ranks and not lengths. So an edge of a band lies between the two events that the fault's
own edge lies between, and the name of the band has the true times.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Final

from markupsafe import Markup

from results.measure.circumstances import at, named, on_during
from results.page.bounds import label

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness.counterexample import Counterexample
    from harness.faults import FaultRecord

ROW: Final = 22  # the height of the name of a band
OVER: Final = 24.0  # how far a band reaches beyond the operations if the fault was on before or after them
MAX_BANDS: Final = 4
_COLOURS: Final = 6


def bands(example: Counterexample, faults: Sequence[FaultRecord]) -> Sequence[FaultRecord]:
    """Returns the faults to draw: those that were on during the counterexample, the longest ones if there are many."""
    first_ns = min(op.start_ns for op in example.operations)
    last_ns = max(op.last_ns for op in example.operations)
    on = sorted(on_during(faults, first_ns, last_ns), key=lambda fault: fault.start_ns - fault.end_ns)
    return sorted(on[:MAX_BANDS], key=lambda fault: fault.start_ns)


def drawn(faults: Sequence[FaultRecord], columns: Mapping[int, float], height: float) -> list[Markup]:
    """Draws bands from the top to the height; each has its name in a row of its own at the top.

    Args:
        faults: The faults.
        columns: The place of each instant, in nanoseconds, in the picture.
        height: The lower end of the bands.
    """
    instants = sorted(columns)
    parts = []
    for number, fault in enumerate(faults):
        left, right = (_place(edge, instants, columns) for edge in (fault.start_ns, fault.end_ns))
        parts.append(
            Markup(
                '<rect class="fault" style="fill:var(--fault-{colour})" x="{x:.1f}" y="{y}" width="{w:.1f}" height="{h}"/>'
                '<text class="fault-name" x="{tx:.1f}" y="{ty}">{text}</text>'
            ).format(
                colour=fault.planned.id % _COLOURS,
                x=left,
                y=number * ROW + 4,
                w=max(2.0, right - left),
                h=height - number * ROW - 4,
                tx=left + 4,
                ty=number * ROW + 18,
                text=f"{label(named(fault))}, {at(fault.start_ns)} to {at(fault.end_ns)}",
            )
        )
    return parts


def _place(edge_ns: int, instants: Sequence[int], columns: Mapping[int, float]) -> float:
    after = bisect_right(instants, edge_ns)
    if after == 0:
        return columns[instants[0]] - OVER
    if after == len(instants):
        return columns[instants[-1]] + OVER
    before_ns, after_ns = instants[after - 1], instants[after]
    share = (edge_ns - before_ns) / (after_ns - before_ns)
    return columns[before_ns] + share * (columns[after_ns] - columns[before_ns])
