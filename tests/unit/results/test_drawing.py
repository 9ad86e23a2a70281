"""Pictures are the same in any process, and an error in a process is an error of the command."""

from __future__ import annotations

import os
import signal
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pytest

from results.measure.series import Line
from results.page import drawing as module
from results.page.drawing import DrawingFailed, Picture, draw_all
from results.page.plots import rate

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def fails() -> Figure:
    """Raises."""
    raise LookupError("no such thing")


def dies() -> Figure:
    """Ends the process as the kernel does when memory is short."""
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("unreachable")


def line() -> Line:
    """A line of two points."""
    return Line(f="read", name="ok", time_s=np.array([0.5, 1.5]), value=np.array([1.0, 2.0]))


PICTURES = [Picture(name=f"p{number}", title="Rate <1>", figure=partial(rate, [line()], [])) for number in range(3)]


def test_processes_draw_what_one_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """Byte for byte, in order. An error in a picture is raised, and so is the end of a process."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    alone = draw_all(PICTURES)
    monkeypatch.setattr(module, "FEW_PICTURES", 1)
    assert draw_all(PICTURES) == alone
    with pytest.raises(LookupError, match="no such thing"):
        draw_all([Picture(name="bad", title="", figure=fails)])
    assert alone[0].svg.startswith("<?xml")
    assert 'id="p2-' in alone[2].element
    with pytest.raises(DrawingFailed, match="--no-pictures"):
        draw_all([Picture(name="dead", title="", figure=dies)])


def test_ctrl_c_is_not_for_the_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C reaches all processes of a terminal. The drawing processes leave it to their parent."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    before = signal.pthread_sigmask(signal.SIG_BLOCK, set())
    monkeypatch.setattr(module, "FEW_PICTURES", 1)
    assert len(draw_all([Picture(name="told", title="", figure=_interrupts_itself), *PICTURES])) == 4
    assert signal.pthread_sigmask(signal.SIG_BLOCK, set()) == before


def _interrupts_itself() -> Figure:
    os.kill(os.getpid(), signal.SIGINT)
    return rate([line()], [])
