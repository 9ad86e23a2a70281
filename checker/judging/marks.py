"""The data of a plot of marks over time: the findings of a judge for each element, offset or token, in bounded size.

A part of a verdict has it as `plot` in its details, and the report draws it with the faults shaded:

    {"title": "Elements of the set", "y": "element, by the order of adds", "key": null,
     "marks": [{"name": "lost", "tone": "bad", "total": 4217, "points": [[12.5, 300], [12.5, 301, 14.0], ...]}]}

A point is a time in seconds and a height; a third number makes it a stretch that lasts until then. `tone` is one of `TONES`.
If there are too many points to draw, `points` has some of them, evenly chosen, with the first and the last. `total` is the
number of all points.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import numpy as np

from harness.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from checker.formats.columns import Int64s
    from harness.op import Value

Tone: TypeAlias = Literal["good", "odd", "bad", "quiet"]
TONES: Final = ("good", "odd", "bad", "quiet")
MAX_POINTS: Final = 2_000  # of all marks of a plot together


@dataclass(frozen=True, slots=True, kw_only=True)
class Marks:
    """Marks of one sort.

    Attributes:
        name: Their name.
        tone: `good`, `bad`, `odd` for what may be either, or `quiet` for neutral marks.
        time_ns: The time of each.
        height: The height of each, of the same length.
        until_ns: The end of each stretch, of the same length; None: they are points.
    """

    name: str
    tone: Tone
    time_ns: Int64s
    height: Int64s
    until_ns: Int64s | None = None


def plot(title: str, y: str, marks: Sequence[Marks]) -> dict[str, Value]:
    """Returns the data of a plot, in the form that this module describes.

    Args:
        title: Its title.
        y: The label of its vertical axis.
        marks: All marks, in the order of time; empty sorts are left out.
    """
    filled = [mark for mark in marks if len(mark.time_ns)]
    shares = _shares([len(mark.time_ns) for mark in filled])
    return {
        "title": title,
        "y": y,
        "marks": [
            {"name": mark.name, "tone": mark.tone, "total": len(mark.time_ns), "points": _points(mark, share)}
            for mark, share in zip(filled, shares, strict=True)
        ],
    }


def _shares(sizes: Sequence[int]) -> list[int]:
    """Returns the number of points of each sort: small sorts get all points, the others equal shares of the rest."""
    shares, left = [0] * len(sizes), MAX_POINTS
    for done, index in enumerate(sorted(range(len(sizes)), key=lambda index: sizes[index])):
        shares[index] = min(sizes[index], left // (len(sizes) - done))
        left -= shares[index]
    return shares


def _points(marks: Marks, most: int) -> list[list[float]]:
    kept: NDArray[np.int64] = np.unique(np.linspace(0, len(marks.time_ns) - 1, most).round().astype(np.int64))
    columns = [marks.time_ns[kept] / NS_PER_S, marks.height[kept]]
    if marks.until_ns is not None:
        columns.append(marks.until_ns[kept] / NS_PER_S)
    return [list(point) for point in zip(*(column.tolist() for column in columns), strict=True)]
