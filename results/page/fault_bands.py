"""Draws the faults that were on during a counterexample, as bands behind its operations.

The time axis of a counterexample shows ranks and not lengths. So an edge of a band lies between the two events that the fault's
own edge lies between, and the name of the band has the true times. The names stand in rows above all bands, because a band may
be narrower than its name, or lie behind the name of another one.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Final

from markupsafe import Markup

from results.circumstances.faults import at, named, on_during
from results.record.counterexample import cut
from results.words.bounds import label

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness.counterexample import Counterexample
    from harness.faults import FaultRecord

ROW: Final = 18  # the height of the name of a band
NAME_X: Final = 19
OVER: Final = 24.0  # how far a band reaches beyond the operations if the fault was on before or after them
MAX_BANDS: Final = 4
_CHARACTER: Final = 6.4  # the mean width of a character of a name


def bands(example: Counterexample, faults: Sequence[FaultRecord]) -> Sequence[FaultRecord]:
    """Returns the faults to draw: those that were on during the counterexample, the longest ones if there are many."""
    first_ns = min(op.start_ns for op in example.operations)
    last_ns = max(op.last_ns for op in example.operations)
    on = sorted(on_during(faults, first_ns, last_ns), key=lambda fault: fault.start_ns - fault.end_ns)
    return sorted(on[:MAX_BANDS], key=lambda fault: fault.start_ns)


def drawn(
    faults: Sequence[FaultRecord], columns: Mapping[int, float], *, top: float, height: float, width: float
) -> list[Markup]:
    """Draws a band for each fault, and above them, each in a row of its own, their names.

    Args:
        faults: The faults, at most `MAX_BANDS`, so that no two have one colour.
        columns: The place of each instant, in nanoseconds, in the picture.
        top: The upper end of the bands.
        height: Their lower end.
        width: The width of the picture.
    """
    instants = sorted(columns)
    most = int((width - NAME_X) / _CHARACTER)
    parts = []
    for number, fault in enumerate(faults):
        left, right = (_place(edge, instants, columns) for edge in (fault.start_ns, fault.end_ns))
        times = f", {at(fault.start_ns)} to {at(fault.end_ns)}"
        parts.append(
            Markup(
                '<rect class="fault" style="fill:var(--fault-{number})" x="{x:.1f}" y="{top}" width="{w:.1f}" height="{h}"/>'
                '<rect class="fault-chip" style="fill:var(--fault-{number})" x="4" y="{cy}" width="9" height="9" rx="3"/>'
                '<text class="fault-name" x="{tx}" y="{ty}">{text}</text>'
            ).format(
                number=number,
                x=left,
                top=top,
                w=max(2.0, right - left),
                h=height - top,
                cy=number * ROW + 5,
                tx=NAME_X,
                ty=number * ROW + 13,
                text=f"{cut(label(named(fault)), most - len(times))}{times}",
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
