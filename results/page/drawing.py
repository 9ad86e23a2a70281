"""Draws pictures as SVG. Many pictures are drawn in several processes.

A picture takes a quarter of a second, and threads cannot share the work. So the pictures of a dozen runs take half as long on
two processors. Equal pictures have equal bytes in every process.
"""

from __future__ import annotations

from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from harness.errors import LabrysError
from harness.pool import Pool, processes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from matplotlib.figure import Figure

FEW_PICTURES = 8  # processes take longer to load the drawing library than one process takes to draw these


class DrawingFailed(LabrysError):  # noqa: N818 - the name states the problem
    """A drawing process has ended unexpectedly."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """A picture.

    Attributes:
        name: Its file name without an ending.
        title: Its title.
        figure: Draws it; must be picklable.
    """

    name: str
    title: str
    figure: Callable[[], Figure]


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """A drawn picture.

    Attributes:
        svg: An SVG file.
        element: An element for an HTML page.
    """

    svg: str
    element: str


Draw: TypeAlias = "Callable[[Sequence[Picture]], Sequence[Drawn]]"


def draw(picture: Picture) -> Drawn:
    """Draws a picture in this process."""
    from results.page import plots  # noqa: PLC0415 - slow to import

    figure = picture.figure()
    svg = plots.svg(figure)
    return Drawn(svg=svg, element=plots.inlined(svg, prefix=picture.name, title=picture.title))


def draw_all(pictures: Sequence[Picture]) -> list[Drawn]:
    """Draws pictures, and returns them in their order. This process draws a few pictures by itself.

    Raises:
        DrawingFailed: A drawing process has ended, e.g. because the machine has no memory left.
    """
    if len(pictures) < FEW_PICTURES or processes() == 1:
        return [draw(picture) for picture in pictures]
    with Pool(processes(), _prepare) as pool:
        try:
            return list(pool.map(draw, pictures))
        except BrokenProcessPool as error:
            message = (
                "a process that draws pictures has ended unexpectedly; --no-pictures does the job without pictures"
            )
            raise DrawingFailed(message) from error


def _prepare() -> None:
    """Loads the drawing library in a new process."""
    from results.page import overviews  # noqa: F401, PLC0415 - slow to import
