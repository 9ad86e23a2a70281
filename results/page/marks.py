"""Reads the plots of marks over time from the details of the parts of a verdict; `checker.judging.marks` describes them.

Anyone may have written the file. So the type and range of every member and the size of a plot are checked before anything is
drawn.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from checker.judging.marks import MAX_POINTS, TONES
from results.store import members as must
from results.store.errors import BadRecord

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from harness.op import Value
    from harness.verdict import Part

MAX_PICTURES: Final = 8
MAX_SORTS: Final = 16
_MAX_HEIGHT: Final = 2.0**63


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


def pictures(parts: Sequence[Part]) -> list[Picture]:
    """Returns the plots of the parts that have one.

    Raises:
        BadRecord: The member `plot` of a part's details is not a plot.
    """
    return [
        _picture(must.mapping(part.details["plot"], name), name)
        for part, name in ((part, f"parts.{part.name}.details.plot") for part in parts)
        if part.details.get("plot") is not None
    ]


def _picture(plot: Mapping[str, Value], name: str) -> Picture:
    listed = must.listed(must.member(plot, "marks"), f"{name}.marks")
    if len(listed) > MAX_SORTS:
        raise BadRecord(f"expected at most {MAX_SORTS} sorts of marks in {name}, found {len(listed)}")
    sorts = [_sort(must.mapping(sort, f"{name}.marks"), f"{name}.marks") for sort in listed]
    points = sum(sort.time_s.size for sort in sorts)
    if points > MAX_POINTS:
        raise BadRecord(f"expected at most {MAX_POINTS} points in {name}, found {points}")
    return Picture(
        title=must.text(must.member(plot, "title"), f"{name}.title"),
        y=must.text(must.member(plot, "y"), f"{name}.y"),
        key=must.text_or_none(plot.get("key"), f"{name}.key"),
        sorts=sorts,
    )


def _sort(sort: Mapping[str, Value], name: str) -> Sort:
    tone = must.text(must.member(sort, "tone"), f"{name}.tone")
    if tone not in TONES:
        raise BadRecord(f"expected one of {', '.join(TONES)} in {name}.tone, found another")
    points = [_point(point, f"{name}.points") for point in must.listed(must.member(sort, "points"), f"{name}.points")]
    columns = np.array(points, np.float64).reshape(-1, 3)
    return Sort(
        name=must.text(must.member(sort, "name"), f"{name}.name"),
        tone=tone,
        total=must.whole(must.member(sort, "total"), f"{name}.total"),
        time_s=columns[:, 0],
        height=columns[:, 1],
        until_s=columns[:, 2],
    )


def _point(point: Value, name: str) -> tuple[float, float, float]:
    listed = must.listed(point, name)
    if len(listed) not in {2, 3}:
        raise BadRecord(f"expected a time, a height and perhaps a second time in {name}, found {len(listed)} members")
    height = listed[1]
    if isinstance(height, bool) or not isinstance(height, int | float) or not abs(height) <= _MAX_HEIGHT:
        raise BadRecord(f"expected a number as a height in {name}, found {type(height).__name__}")
    return (
        must.seconds(listed[0], name),
        float(height),
        must.seconds(listed[-1] if len(listed) == 3 else listed[0], name),
    )
