"""The pictures of many keys and many runs: strips, a matrix, trends. Drawn in the look and with the colours of `results.plots`.

The law is that of `results.plots`: equal input gives equal bytes, and no colour is written that a page could not theme. What is
drawn is bounded by who calls: a row for each key or run that is given.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import PathPatch
from matplotlib.path import Path
from matplotlib.ticker import MaxNLocator

from harness.plain import one_line
from results.plots import FAINT, GRID, INK, STYLE, TYPE_COLOURS, VERDICT_COLOURS, WIDTH_IN
from results.spoken import percent

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes

ROW_IN = 0.17
NAME_CHARACTERS = 22
LEVELS = 5
_LEGEND: Mapping[str, Any] = MappingProxyType(
    {"fontsize": 8, "handlelength": 1.0, "columnspacing": 1.2, "borderaxespad": 0.1, "labelcolor": INK}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Strip:
    """The operations of one key over time.

    Attributes:
        name: The key.
        verdict: What was found of it; None if nothing is known.
        cells: For each bucket that has any: its number, how many operations were wanted in it, and how many were answered.
    """

    name: str
    verdict: str | None
    cells: Sequence[tuple[int, int, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """Runs of one workload under one kind of fault.

    Attributes:
        row: The fault.
        column: The workload.
        verdict: The worst verdict of the runs; None if none was judged.
        runs: How many runs.
        invalid: How many of them are invalid.
        availability: The share answered under the fault; None if nothing was asked.
    """

    row: str
    column: str
    verdict: str | None
    runs: int
    invalid: int
    availability: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Trend:
    """One figure of the runs of one test.

    Attributes:
        title: What it is.
        values: For each run, in order; None where there is none.
        regressions: The places of those that became worse.
    """

    title: str
    values: Sequence[float | None]
    regressions: Sequence[int]


def short(name: str, characters: int = NAME_CHARACTERS) -> str:
    """Returns a foreign name fit to stand beside an axis."""
    line = one_line(name)
    return line if len(line) <= characters else f"{line[: characters - 1]}…"


def heat(strips: Sequence[Strip], width_s: float) -> Figure:
    """Draws a strip for each key: the more was asked, the stronger, and what was not answered in the colour of failures."""
    greatest = max((asked for strip in strips for _, asked, _ in strip.cells), default=1)
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(WIDTH_IN, 0.75 + ROW_IN * max(len(strips), 2)), layout="constrained")
        figure.set_gid("heat")
        axes = figure.subplots()
        busy: list[list[tuple[int, int]]] = [[] for _ in range(LEVELS + 1)]
        lost: list[list[tuple[int, int]]] = [[] for _ in range(LEVELS + 1)]
        for row, strip in enumerate(strips):
            for at, asked, answered in sorted(strip.cells):
                busy[_level(asked / greatest)].append((row, at))
                lost[_level(1 - answered / max(asked, 1))].append((row, at))
        for level in range(1, LEVELS + 1):
            _cells(axes, busy[level], width_s, colour=TYPE_COLOURS["ok"], alpha=0.12 + 0.78 * level / LEVELS)
        for level in range(1, LEVELS + 1):
            _cells(axes, lost[level], width_s, colour=TYPE_COLOURS["fail"], alpha=level / LEVELS)
        axes.set_ylim(max(len(strips), 1) - 0.5, -0.5)
        last = max((at for strip in strips for at, _, _ in strip.cells), default=0)
        axes.set_xlim(0, (last + 1) * width_s)
        axes.set_yticks(range(len(strips)), [short(strip.name) for strip in strips], fontsize=7)
        for label, strip in zip(axes.get_yticklabels(), strips, strict=True):
            if strip.verdict in {"invalid", "unknown"}:
                label.set_color(VERDICT_COLOURS[strip.verdict])
                label.set_fontweight("bold")
        axes.grid(visible=False)
        axes.spines["left"].set_visible(False)
        axes.tick_params(length=0)
        axes.set_xlabel("seconds since the workload began")
        legend = {"asked and answered": TYPE_COLOURS["ok"], "not answered": TYPE_COLOURS["fail"]}
        _legend(axes, legend)
        return figure


def _level(share: float) -> int:
    return min(LEVELS, -int(-share * LEVELS // 1)) if share > 0 else 0


def _cells(axes: Axes, places: Sequence[tuple[int, int]], width_s: float, *, colour: str, alpha: float) -> None:
    """Draws cells, given by row and bucket in order, as one shape, which is drawn much faster than a shape for each.

    Cells that touch are one bar.
    """
    bars: list[list[int]] = []
    for row, at in places:
        if bars and bars[-1][0] == row and bars[-1][2] == at:
            bars[-1][2] = at + 1
        else:
            bars.append([row, at, at + 1])
    if not bars:
        return
    row, first, last = np.array(bars, float).T
    low, high, left, right = row - 0.42, row + 0.42, first * width_s, last * width_s
    corners = [(left, low), (left, high), (right, high), (right, low), (left, low)]
    vertices = np.stack([np.stack(corner, axis=-1) for corner in corners], axis=1).reshape(-1, 2)
    codes = np.tile([Path.MOVETO, Path.LINETO, Path.LINETO, Path.LINETO, Path.CLOSEPOLY], len(bars))
    # Not as a patch, because the limits of the axes are known, and to find them from it is slow.
    axes.add_artist(PathPatch(Path(vertices, codes), facecolor=colour, alpha=alpha, linewidth=0))


def matrix(cells: Sequence[Cell]) -> Figure:
    """Draws a cell for each fault and workload: its verdict as colour, how many runs, and what was answered."""
    rows = sorted({cell.row for cell in cells})
    columns = sorted({cell.column for cell in cells})
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(WIDTH_IN, 0.7 + 0.46 * max(len(rows), 1)), layout="constrained")
        figure.set_gid("matrix")
        axes = figure.subplots()
        for cell in cells:
            x, y = columns.index(cell.column), rows.index(cell.row)
            colour = VERDICT_COLOURS.get(cell.verdict or "", FAINT)
            axes.broken_barh([(x + 0.03, 0.94)], (y + 0.06, 0.88), facecolor=colour, alpha=0.17, linewidth=0)
            axes.broken_barh([(x + 0.03, 0.008)], (y + 0.06, 0.88), facecolor=colour, linewidth=0)
            runs = f"{cell.runs} run{'' if cell.runs == 1 else 's'}"
            bad = f"{cell.invalid} of {runs} invalid" if cell.invalid else f"{runs} {cell.verdict or 'not judged'}"
            axes.text(x + 0.06, y + 0.36, bad, va="center", fontsize=8.5, color=INK)
            bore = "" if cell.availability is None else f"{percent(cell.availability, 1)} answered"
            axes.text(x + 0.06, y + 0.7, bore, va="center", fontsize=7.5, color=FAINT)
        axes.set_xlim(0, max(len(columns), 1))
        axes.set_ylim(max(len(rows), 1), 0)
        axes.set_xticks([x + 0.5 for x in range(len(columns))], [short(name, 30) for name in columns])
        axes.set_yticks([y + 0.5 for y in range(len(rows))], [short(name, 34) for name in rows])
        axes.xaxis.tick_top()
        axes.grid(visible=False)
        for spine in axes.spines.values():
            spine.set_visible(False)
        axes.tick_params(length=0, labelcolor=INK)
        return figure


def trend(
    verdicts: Sequence[str | None], names: Sequence[str], trends: Sequence[Trend], marked: Sequence[int] = ()
) -> Figure:
    """Draws the runs of one test from left to right: a row of verdicts, and a panel for each figure.

    Args:
        verdicts: Each run's verdict.
        names: What stands below each run: its day, and its version.
        trends: The figures.
        marked: The places of runs whose verdict became worse.
    """
    with mpl.rc_context(STYLE):
        heights = [0.22, *(0.95 for _ in trends)]
        size = (WIDTH_IN, sum(heights) + 0.3 * len(trends) + 0.95)
        figure = Figure(figsize=size, layout="constrained")
        figure.set_gid("trend")
        strip, *panels = figure.subplots(
            len(heights), 1, sharex=True, squeeze=False, gridspec_kw={"height_ratios": heights}
        )[:, 0]
        strip.set_axis_off()
        strip.set_ylim(0, 1)
        for place, verdict in enumerate(verdicts):
            colour = VERDICT_COLOURS.get(verdict or "", GRID)
            strip.broken_barh([(place - 0.42, 0.84)], (0.1, 0.7), facecolor=colour, linewidth=0)
        if marked:  # a line without a point has no place, and with one of these no layout is found
            strip.plot(marked, [1.02] * len(marked), "v", color=VERDICT_COLOURS["invalid"], markersize=5, clip_on=False)
        for axes, each in zip(panels, trends, strict=True):
            _trend(axes, each)
        for axes in panels[-1:] or [strip]:
            some = range(0, len(names), -(-len(names) // 12) or 1)
            axes.set_xticks(list(some), [short(names[place]) for place in some], fontsize=7, rotation=30, ha="right")
        strip.set_xlim(-0.6, len(verdicts) - 0.4)
        known = [name for name in VERDICT_COLOURS if name in verdicts]
        handles = _handles({name: VERDICT_COLOURS[name] for name in known})
        # Above all panels: within the strip, which is lower than a line of text, no layout would be found.
        figure.legend(handles=handles, loc="outside upper right", ncols=max(1, len(handles)), **_LEGEND)
        return figure


def _trend(axes: Axes, trend: Trend) -> None:
    there = [(place, value) for place, value in enumerate(trend.values) if value is not None]
    axes.plot([place for place, _ in there], [value for _, value in there], color=TYPE_COLOURS["ok"], marker="o",
        markersize=3.2, linewidth=1.2)  # fmt: skip
    bad = [(place, value) for place, value in there if place in set(trend.regressions)]
    axes.plot([place for place, _ in bad], [value for _, value in bad], "o", color=VERDICT_COLOURS["invalid"],
        markersize=7, markerfacecolor="none", markeredgewidth=1.6)  # fmt: skip
    axes.set_title(trend.title, loc="left", fontsize=9, color=INK, pad=4)
    axes.yaxis.set_major_locator(MaxNLocator(3))
    axes.margins(y=0.18)
    axes.tick_params(length=2.5)


def _handles(colours: Mapping[str, str]) -> list[Line2D]:
    return [Line2D([], [], color=colour, linewidth=5, label=name) for name, colour in colours.items()]


def _legend(axes: Axes, colours: Mapping[str, str]) -> None:
    handles = _handles(colours)
    axes.legend(handles=handles, loc="lower right", bbox_to_anchor=(1, 1), ncols=max(1, len(handles)), **_LEGEND)
