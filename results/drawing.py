"""Draws pictures as SVG and as PNG. Many pictures are drawn in several processes.

A picture takes a quarter of a second, and threads cannot share the work. The processes load the drawing library while the job
reads. So the pictures of a dozen runs take half as long on two processors. Equal pictures have equal bytes in every process.
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

FEW_RUNS = 3
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
        png: A PNG file.
        element: An element for an HTML page.
    """

    svg: str
    png: bytes
    element: str


Draw: TypeAlias = "Callable[[Sequence[Picture]], Sequence[Drawn]]"


def draw(picture: Picture) -> Drawn:
    """Draws a picture in this process."""
    from results import plots  # noqa: PLC0415 - slow to import

    figure = picture.figure()
    svg = plots.svg(figure)
    return Drawn(svg=svg, png=plots.png(figure), element=plots.inlined(svg, prefix=picture.name, title=picture.title))


@contextlib.contextmanager
def drawing(runs: int) -> Iterator[Draw]:
    """Yields a function that draws pictures, and returns them in their order.

    Args:
        runs: The number of runs to draw; this process draws a few runs by itself.

    Raises:
        DrawingFailed: A drawing process has ended, e.g. because the machine has no memory left.
    """
    processes = min(MOST_PROCESSES, len(os.sched_getaffinity(0)))
    if runs < FEW_RUNS or processes == 1:
        yield lambda pictures: [draw(picture) for picture in pictures]
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, mp_context=context, initializer=_prepare) as pool:
        try:
            with _interrupts_held():
                for _ in range(processes):
                    pool.submit(os.getpid)  # each starts a process
            yield lambda pictures: _drawn(pool, pictures)
        except BrokenProcessPool as error:
            message = (
                "a process that draws pictures has ended unexpectedly; --no-pictures does the job without pictures"
            )
            raise DrawingFailed(message) from error
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _drawn(pool: ProcessPoolExecutor, pictures: Sequence[Picture]) -> list[Drawn]:
    """Draws pictures in processes; the pool may start a process when it gets a picture."""
    with _interrupts_held():
        futures = [pool.submit(draw, picture) for picture in pictures]
    return [future.result() for future in futures]


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
    from results import overviews  # noqa: F401, PLC0415 - slow to import

    threading.Thread(target=_follow, daemon=True).start()


def _follow() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
