"""The pictures of many keys and many runs: strips, a matrix, and trends, in the style and colours of `results.page.plots`.

The rule is that of `results.page.plots`: equal input gives equal bytes, and a page can theme every colour. The caller bounds
the size: there is a row for each key or run.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from harness.console.plain import counted, counted_of
from results.page.plots import FAINT, GRID, INK, OPERATION_COLOURS, STYLE, VERDICT_COLOURS, WIDTH_IN, bars
from results.page.rows import NOT_JUDGED, Cell, Strip, Trend, TrendRun, short
from results.words.formatting import percent

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes

ROW_IN = 0.17
LINE_IN = 0.16  # a line of a cell
RIGHT_IN = 0.16
LEVELS = 5
EM = 0.62  # the width of a letter, as a share of the font size
POINTS_PER_IN = 72.0
# By the names of `harness.suites.expectation.CaseOutcome`. A known failure has no colour of a verdict.
OUTCOME_COLOURS: Mapping[str, str] = MappingProxyType(
    {
        "as-expected": VERDICT_COLOURS["valid"],
        "known-failure": FAINT,
        "undecided": VERDICT_COLOURS["unknown"],
        "unexpected": VERDICT_COLOURS["invalid"],
    }
)
_LEGEND: Mapping[str, Any] = MappingProxyType(
    {"fontsize": 8, "handlelength": 1.0, "columnspacing": 1.2, "borderaxespad": 0.1, "labelcolor": INK}
)


def heat(strips: Sequence[Strip], width_s: float) -> Figure:
    """Draws a strip for each key: blue for operations, the stronger the more, and the failure colour for unanswered ones."""
    greatest = max((asked for strip in strips for _, asked, _ in strip.cells), default=1)
    with mpl.rc_context(STYLE):
        names = [short(strip.name) for strip in strips]
        figure, (axes,) = _figure(
            "heat", [ROW_IN * max(len(strips), 2)], left_in=_room_in(names, 7), top_in=0.27, bottom_in=0.45
        )
        busy: list[list[tuple[int, int]]] = [[] for _ in range(LEVELS + 1)]
        lost: list[list[tuple[int, int]]] = [[] for _ in range(LEVELS + 1)]
        for row, strip in enumerate(strips):
            for at, asked, answered in sorted(strip.cells):
                busy[_level(asked / greatest)].append((row, at))
                lost[_level(1 - answered / max(asked, 1))].append((row, at))
        for level in range(1, LEVELS + 1):
            _cells(axes, busy[level], width_s, colour=OPERATION_COLOURS["ok"], alpha=0.12 + 0.78 * level / LEVELS)
        for level in range(1, LEVELS + 1):
            _cells(axes, lost[level], width_s, colour=OPERATION_COLOURS["fail"], alpha=level / LEVELS)
        axes.set_ylim(max(len(strips), 1) - 0.5, -0.5)
        last = max((at for strip in strips for at, _, _ in strip.cells), default=0)
        axes.set_xlim(0, (last + 1) * width_s)
        axes.set_yticks(range(len(strips)), names, fontsize=7)
        for label, strip in zip(axes.get_yticklabels(), strips, strict=True):
            if strip.verdict in {"invalid", "unknown"}:
                label.set_color(VERDICT_COLOURS[strip.verdict])
                label.set_fontweight("bold")
        axes.grid(visible=False)
        axes.spines["left"].set_visible(False)
        axes.tick_params(length=0)
        axes.set_xlabel("seconds since the workload began")
        legend = {"asked and answered": OPERATION_COLOURS["ok"], "not answered": OPERATION_COLOURS["fail"]}
        _legend(axes, legend)
        return figure


def _level(share: float) -> int:
    return min(LEVELS, -int(-share * LEVELS // 1)) if share > 0 else 0


def _cells(axes: Axes, places: Sequence[tuple[int, int]], width_s: float, *, colour: str, alpha: float) -> None:
    """Draws cells, given as sorted pairs of row and bucket; adjacent ones become one bar."""
    joined: list[list[int]] = []
    for row, at in places:
        if joined and joined[-1][0] == row and joined[-1][2] == at:
            joined[-1][2] = at + 1
        else:
            joined.append([row, at, at + 1])
    if not joined:
        return
    row, first, last = np.array(joined, float).T
    bars(axes, first * width_s, last * width_s, row - 0.42, row + 0.42, facecolor=colour, alpha=alpha, linewidth=0)


def matrix(cells: Sequence[Cell]) -> Figure:
    """Draws a cell for each fault and workload: the colour of its worst outcome, the runs by outcome, and its availability."""
    rows = sorted({cell.row for cell in cells})
    columns = sorted({cell.column for cell in cells})
    with mpl.rc_context(STYLE):
        names = [short(name, 34) for name in rows]
        most = max((len(cell.outcomes) for cell in cells), default=1) + 1
        figure, (axes,) = _figure(
            "matrix", [LINE_IN * (most + 1) * max(len(rows), 1)], left_in=_room_in(names, 9), top_in=0.3, bottom_in=0.05
        )
        for cell in cells:
            x, y = columns.index(cell.column), rows.index(cell.row)
            colour = OUTCOME_COLOURS[next(iter(cell.outcomes)) or "undecided"]
            axes.broken_barh([(x + 0.03, 0.94)], (y + 0.06, 0.88), facecolor=colour, alpha=0.17, linewidth=0)
            axes.broken_barh([(x + 0.03, 0.008)], (y + 0.06, 0.88), facecolor=colour, linewidth=0)
            worst, *others = _counted(cell.outcomes)
            answered = [] if cell.availability is None else [f"{percent(cell.availability, 1)} answered"]
            texts = [(worst, 8.5, INK), *((text, 7.5, FAINT) for text in [*others, *answered])]
            for line, (text, size, ink) in enumerate(texts):
                at = y + 0.5 + (line - (len(texts) - 1) / 2) / (most + 1)
                axes.text(x + 0.06, at, text, va="center", fontsize=size, color=ink)
        axes.set_xlim(0, max(len(columns), 1))
        axes.set_ylim(max(len(rows), 1), 0)
        axes.set_xticks([x + 0.5 for x in range(len(columns))], [short(name, 30) for name in columns])
        axes.set_yticks([y + 0.5 for y in range(len(rows))], names)
        axes.xaxis.tick_top()
        axes.grid(visible=False)
        for spine in axes.spines.values():
            spine.set_visible(False)
        axes.tick_params(length=0, labelcolor=INK)
        return figure


def _counted(outcomes: Mapping[str | None, int]) -> list[str]:
    """Returns the runs with each outcome in words; the first text has the number of all runs."""
    runs = sum(outcomes.values())
    first, *others = outcomes.items()
    whole = counted(runs, "run") if len(outcomes) == 1 else counted_of(first[1], runs, "run")
    return [f"{whole} {_outcome(first[0])}", *(f"{number} {_outcome(outcome)}" for outcome, number in others)]


def trend(runs: Sequence[TrendRun], trends: Sequence[Trend]) -> Figure:
    """Draws the runs of one line from left to right: a row of outcomes, and a panel for each figure.

    Args:
        runs: The runs, in order; each links to its report if it has one.
        trends: The figures.
    """
    with mpl.rc_context(STYLE):
        figure, (strip, *panels) = _figure(
            "trend", [0.22, *(0.95 for _ in trends)], left_in=0.8, top_in=0.27, bottom_in=0.7, gap_in=0.33
        )
        strip.set_axis_off()
        strip.set_ylim(0, 1)
        for index, run in enumerate(runs):
            colour = OUTCOME_COLOURS.get(run.outcome or "", GRID)
            bar = strip.broken_barh([(index - 0.42, 0.84)], (0.1, 0.7), facecolor=colour, linewidth=0)
            if run.link is not None:
                bar.set_urls([run.link])
        marked = [index for index, run in enumerate(runs) if run.marked]
        if marked:  # matplotlib cannot place a line without points
            strip.plot(marked, [1.02] * len(marked), "v", color=VERDICT_COLOURS["invalid"], markersize=5, clip_on=False)
        for axes, one_trend in zip(panels, trends, strict=True):
            _trend(axes, one_trend, runs)
        for axes in panels[-1:] or [strip]:
            some = range(0, len(runs), -(-len(runs) // 12) or 1)
            names = [short(runs[index].label) for index in some]
            axes.set_xticks(list(some), names, fontsize=7, rotation=30, ha="right")
        for axes in (strip, *panels):
            axes.set_xlim(-0.6, len(runs) - 0.4)
        known = {
            _outcome(name): colour for name, colour in OUTCOME_COLOURS.items() if name in {r.outcome for r in runs}
        }
        handles = _handles(known)
        figure.legend(handles=handles, loc="upper right", bbox_to_anchor=(1, 1), ncols=max(1, len(handles)), **_LEGEND)
        return figure


def _outcome(outcome: str | None) -> str:
    return NOT_JUDGED if outcome is None else outcome.replace("-", " ")


def _trend(axes: Axes, trend: Trend, runs: Sequence[TrendRun]) -> None:
    known = [(index, value) for index, value in enumerate(trend.values) if value is not None]
    places, values = [index for index, _ in known], [value for _, value in known]
    axes.plot(places, values, color=OPERATION_COLOURS["ok"], linewidth=1.2)
    points = axes.scatter(places, values, s=11, color=OPERATION_COLOURS["ok"], linewidths=0, zorder=3)
    points.set_urls([runs[index].link for index in places])
    bad = [(index, value) for index, value in known if index in set(trend.regressions)]
    axes.plot([index for index, _ in bad], [value for _, value in bad], "o", color=VERDICT_COLOURS["invalid"],
        markersize=7, markerfacecolor="none", markeredgewidth=1.6)  # fmt: skip
    axes.set_title(trend.title, loc="left", fontsize=9, color=INK, pad=4)
    axes.yaxis.set_major_locator(MaxNLocator(3))
    axes.margins(y=0.18)
    axes.tick_params(length=2.5)


def _figure(
    name: str, heights_in: Sequence[float], *, left_in: float, top_in: float, bottom_in: float, gap_in: float = 0.0
) -> tuple[Figure, list[Axes]]:
    """Makes a figure of axes above one another with fixed margins; computing margins takes as long as the drawing."""
    height_in = top_in + sum(heights_in) + gap_in * (len(heights_in) - 1) + bottom_in
    figure = Figure(figsize=(WIDTH_IN, height_in))
    figure.set_gid(name)
    places = {
        "left": left_in / WIDTH_IN,
        "right": 1 - RIGHT_IN / WIDTH_IN,
        "top": 1 - top_in / height_in,
        "bottom": bottom_in / height_in,
        "hspace": gap_in * len(heights_in) / sum(heights_in),
    }
    grid = {"height_ratios": heights_in, **places}
    return figure, list(figure.subplots(len(heights_in), 1, sharex=True, squeeze=False, gridspec_kw=grid)[:, 0])


def _room_in(names: Sequence[str], size: float) -> float:
    """Returns the width for names beside an axis, in inches, for a font size in points."""
    return 0.12 + EM * size / POINTS_PER_IN * max(map(len, names), default=0)


def _handles(colours: Mapping[str, str]) -> list[Line2D]:
    return [Line2D([], [], color=colour, linewidth=5, label=name) for name, colour in colours.items()]


def _legend(axes: Axes, colours: Mapping[str, str]) -> None:
    handles = _handles(colours)
    axes.legend(handles=handles, loc="lower right", bbox_to_anchor=(1, 1), ncols=max(1, len(handles)), **_LEGEND)
