"""Draws pictures as SVG. Many pictures are drawn in several processes.

A picture takes a quarter of a second, and threads cannot share the work. So the pictures of a dozen runs take half as long on
two processors. Equal pictures have equal bytes in every process.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing.connection import wait
from typing import TYPE_CHECKING, TypeAlias

from harness.errors import LabrysError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from matplotlib.figure import Figure

FEW_PICTURES = 8  # processes take longer to load the drawing library than one process takes to draw these
MOST_PROCESSES = 4


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
    processes = min(MOST_PROCESSES, len(os.sched_getaffinity(0)))
    if len(pictures) < FEW_PICTURES or processes == 1:
        return [draw(picture) for picture in pictures]
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, mp_context=context, initializer=_prepare) as pool:
        try:
            with _interrupts_held():  # the pool starts its processes when it gets pictures
                futures = [pool.submit(draw, picture) for picture in pictures]
            return [future.result() for future in futures]
        except BrokenProcessPool as error:
            message = (
                "a process that draws pictures has ended unexpectedly; --no-pictures does the job without pictures"
            )
            raise DrawingFailed(message) from error
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


@contextlib.contextmanager
def _interrupts_held() -> Iterator[None]:
    """Blocks Ctrl-C; processes that start meanwhile inherit this, and leave Ctrl-C to this process."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _prepare() -> None:
    """Loads the drawing library in a new process, and ends the process when its parent ends."""
    from results.page import overviews  # noqa: F401, PLC0415 - slow to import

    threading.Thread(target=_follow, daemon=True).start()


def _follow() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
