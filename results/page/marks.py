"""Reads the plots of marks over time from the details of the parts of a verdict; `checker.judging.marks` describes them.

Anyone may have written the file. So the type and range of every member and the size of a plot are checked before anything is
drawn.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final

import numpy as np
from msgspec import Meta, Struct

from checker.judging.marks import MAX_POINTS, TONES
from harness.console.documents import shown
from harness.console.members import MAX_S, Whole, read
from results.store.errors import BadRecord

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from harness.op import Value
    from harness.verdict import Part

MAX_PICTURES: Final = 8
MAX_SORTS: Final = 16
Height = Annotated[float, Meta(ge=-(2.0**63), le=2.0**63)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sort:
    """Marks of one sort; the arrays have the same length.

    Attributes:
        name: Their name.
        tone: One of `checker.judging.marks.TONES`.
        total: Their number; some of them may have been left out.
        time_s: The time of each.
        height: The height of each.
        until_s: The end of each stretch; equal to `time_s` for a point.
    """

    name: str
    tone: str
    total: int
    time_s: NDArray[np.float64]
    height: NDArray[np.float64]
    until_s: NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """A plot of one part.

    Attributes:
        title: Its title.
        y: The label of its vertical axis.
        key: The key whose object it shows; None if the run has only one object.
        sorts: The marks, in the order of drawing.
    """

    title: str
    y: str
    key: str | None
    sorts: Sequence[Sort]


class _Marks(Struct, frozen=True, kw_only=True):
    name: str
    tone: str
    total: Whole
    points: list[Annotated[list[Height], Meta(min_length=2, max_length=3)]]

    def __post_init__(self) -> None:
        if self.tone not in TONES:
            raise ValueError(f"expected one of {', '.join(TONES)} as its tone, found {shown(self.tone)}")


class _Plot(Struct, frozen=True, kw_only=True):
    title: str
    y: str
    key: str | None = None
    marks: Annotated[list[_Marks], Meta(max_length=MAX_SORTS)]


def pictures(parts: Sequence[Part]) -> list[Picture]:
    """Returns the plots of the parts that have one.

    Raises:
        BadRecord: The member `plot` of a part's details is not a plot.
    """
    return [
        _picture(part.details["plot"], f"parts.{part.name}.details.plot")
        for part in parts
        if part.details.get("plot") is not None
    ]


def _picture(value: Value, name: str) -> Picture:
    plot = read(value, _Plot, name, error=BadRecord)
    points = sum(len(marks.points) for marks in plot.marks)
    if points > MAX_POINTS:
        raise BadRecord(f"{name}: expected at most {MAX_POINTS} points, found {points}")
    return Picture(title=plot.title, y=plot.y, key=plot.key, sorts=[_sort(marks, name) for marks in plot.marks])


def _sort(marks: _Marks, name: str) -> Sort:
    """Returns marks of one sort; a point is a time, a height and perhaps a second time."""
    columns = np.array([(*point[:2], point[-1] if len(point) == 3 else point[0]) for point in marks.points], np.float64)
    columns = columns.reshape(-1, 3)
    if not (np.abs(columns[:, ::2]) <= MAX_S).all():
        raise BadRecord(f"{name}: expected a number of seconds of at most {MAX_S:g} as the time of each point")
    return Sort(
        name=marks.name,
        tone=marks.tone,
        total=marks.total,
        time_s=columns[:, 0],
        height=columns[:, 1],
        until_s=columns[:, 2],
    )
