"""The plots of latency and rate over time, with the faults shaded, as SVG.

matplotlib's own SVG writer draws them, without a window system and without global state. Equal input gives equal bytes: there
are no dates and no random ids. The SVG has fixed colours. `inlined` replaces them by the page's CSS variables, so one drawing
serves as a file and, in light or dark, inside a report.
"""

from __future__ import annotations

import io
import re
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
from markupsafe import escape
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import PathPatch
from matplotlib.path import Path
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

from results.measure.op_outcomes import OUTCOMES
from results.measure.series import Line, Points, Shade, thinned
from results.record.counterexample import cut
from results.words.bounds import label

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes

    from results.page.marks import Picture

WIDTH_IN = 9.6
PANEL_IN = 1.75
LANE_IN = 0.19
MAX_KIND = 26  # characters of the name of a kind, left of its lane
KIND_CHARACTER_IN = 0.06
LEFT_IN, RIGHT_IN, TOP_IN, BOTTOM_IN, GAP_IN = 0.62, 0.16, 0.05, 0.47, 0.33  # around the panels, and above each
PAPER, INK, FAINT, GRID = "#fefefe", "#3d4552", "#6d7582", "#dfe3e8"
OPERATION_COLOURS = {"ok": "#2f7fd6", "info": "#e08a00", "fail": "#d6307f", "refused": "#b9c0cc"}
QUANTILE_COLOURS = {"p50": "#8fc1f5", "p95": "#4d97e0", "p99": "#1f6abf", "max": "#123f78"}
VERDICT_COLOURS = {"valid": "#1a8a58", "unknown": "#a87408", "invalid": "#c4222d"}
FAULT_COLOURS = ("#8b6fc9", "#2a9d8f", "#c9794a", "#7a8b2f", "#5f7fa8", "#b05f8f")
TONE_COLOURS = {
    "good": OPERATION_COLOURS["ok"],
    "odd": OPERATION_COLOURS["info"],
    "bad": VERDICT_COLOURS["invalid"],
    "quiet": FAINT,
}
NOTHING: Mapping[str, str] = MappingProxyType({})
_PLAIN_TONES = {"good", "quiet"}
_SHAPES = ("x", "v", "D", "s", "^", "P", "*")
_VARIABLES = {
    PAPER: "none",
    INK: "var(--ink)",
    FAINT: "var(--faint)",
    GRID: "var(--line)",
    **{colour: f"var(--{name})" for name, colour in OPERATION_COLOURS.items()},
    **{colour: f"var(--{name})" for name, colour in VERDICT_COLOURS.items()},
    **{colour: f"var(--q-{name})" for name, colour in QUANTILE_COLOURS.items()},
    **{colour: f"var(--fault-{number})" for number, colour in enumerate(FAULT_COLOURS)},
}
STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "path.simplify": False,
    "font.family": "sans-serif",
    "font.sans-serif": ["system-ui", "Segoe UI", "Helvetica", "Arial", "DejaVu Sans"],
    "font.size": 9,
    "text.color": INK,
    "axes.edgecolor": FAINT,
    "axes.labelcolor": FAINT,
    "axes.facecolor": "none",
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "xtick.color": FAINT,
    "ytick.color": FAINT,
    "xtick.minor.visible": False,
    "ytick.minor.visible": False,
    "legend.frameon": False,
    "figure.facecolor": PAPER,
    # Names come from histories, so a dollar sign must stay a dollar sign.
    "text.parse_math": False,
}


def kinds_of(shades: Sequence[Shade]) -> list[str]:
    """Returns the kinds of fault in the order of their first start; the place of a kind determines its colour."""
    return list(dict.fromkeys(shade.kind for shade in sorted(shades, key=lambda shade: shade.start_s)))


def latency_points_svg(points: Sequence[Points], shades: Sequence[Shade]) -> str:
    """Draws a dot for each operation: latency over time on a log scale, coloured by outcome, with a panel for each function."""
    functions = sorted({group.f for group in points})
    span_s = _span_s([float(group.time_s.max()) for group in points if group.time_s.size], shades)
    with mpl.rc_context(STYLE):
        figure, panels = _figure("latency", [f"{label(f)} (ms)" for f in functions] or ["ms"], PANEL_IN, shades, span_s)
        for kind in OUTCOMES:
            for group in points:
                if group.outcome == kind:
                    _dots(panels[functions.index(group.f)], thinned(group, span_s=span_s))
        for axes in panels:
            _log_scale(axes)
        kinds = [kind for kind in OUTCOMES if any(group.outcome == kind for group in points)]
        _legend(panels[0], {kind: OPERATION_COLOURS[kind] for kind in kinds})
        return _svg(figure, "latency")


def _dots(axes: Axes, points: Points) -> None:
    """Draws points as lines of length zero with round ends; markers make the SVG ten times as large."""
    gaps = np.full(points.time_s.size, np.nan)
    axes.plot(
        np.column_stack((points.time_s, points.time_s, gaps)).ravel(),
        np.column_stack((points.latency_ms, points.latency_ms, gaps)).ravel(),
        linewidth=2.2 if points.outcome == "ok" else 3.2,
        solid_capstyle="round",
        color=OPERATION_COLOURS[points.outcome],
        alpha=0.6 if points.outcome == "ok" else 0.9,
    )


def marks_svg(picture: Picture, shades: Sequence[Shade]) -> str:
    """Draws marks over time: dots for the tones `good` and `quiet`, and another shape for each other sort."""
    span_s = _span_s([float(sort.until_s.max()) for sort in picture.sorts if sort.until_s.size], shades)
    shapes = iter(_SHAPES * len(picture.sorts))
    handles = []
    with mpl.rc_context(STYLE):
        figure, (axes,) = _figure("marks", [label(picture.y)], 2 * PANEL_IN, shades, span_s)
        for sort in picture.sorts:
            colour = TONE_COLOURS[sort.tone]
            shape = "o" if sort.tone in _PLAIN_TONES else next(shapes)
            style: dict[str, Any] = {"color": colour, "marker": shape, "markersize": 2 if shape == "o" else 4}
            stretch = sort.until_s > sort.time_s
            gaps = np.full(int(stretch.sum()), np.nan)
            axes.plot(
                np.column_stack((sort.time_s[stretch], sort.until_s[stretch], gaps)).ravel(),
                np.column_stack((sort.height[stretch], sort.height[stretch], gaps)).ravel(),
                linewidth=1.2, color=colour, alpha=0.6,
            )  # fmt: skip
            axes.plot(sort.time_s, sort.height, linestyle="", alpha=0.8, **style)
            few = f", {sort.time_s.size:,} drawn" if sort.time_s.size < sort.total else ""
            handles.append(Line2D([], [], linestyle="", label=f"{label(sort.name)} {sort.total:,}{few}", **style))
        axes.set_ylim(bottom=min(0, *(float(sort.height.min()) for sort in picture.sorts if sort.height.size), 0))
        axes.yaxis.set_major_locator(MaxNLocator(6, integer=True))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
        figure.legend(
            handles=handles, loc="outside lower left", ncols=4, fontsize=8, handlelength=1.2, labelcolor=INK
        )  # fmt: skip
        return _svg(figure, "marks")


def latency_quantiles(lines: Sequence[Line], shades: Sequence[Shade]) -> Figure:
    """Draws quantiles of the latency of ok operations over time, on a log scale, with a panel for each function."""
    return _panels("quantiles", lines, shades, QUANTILE_COLOURS, unit="ms", log=True)


def latency_quantiles_svg(lines: Sequence[Line], shades: Sequence[Shade]) -> str:
    """Draws the quantiles as SVG."""
    return _svg(latency_quantiles(lines, shades), "quantiles")


def compared_latency_svg(lines: Sequence[Line], names: Sequence[str]) -> str:
    """Draws the latency of several runs over each other, with a panel for each function.

    Args:
        lines: A line with the name of its run is its p99. A dashed line, with `p50` after the name, is its median.
        names: The names of the runs, in the order of their colours.
    """
    runs = dict(zip(names, FAULT_COLOURS, strict=False))
    medians = {f"{name} p50": colour for name, colour in runs.items()}
    return _svg(_panels("compared", lines, (), runs, unit="ms", log=True, dashed=medians), "compared")


def rate(lines: Sequence[Line], shades: Sequence[Shade]) -> Figure:
    """Draws operations per second by outcome over time, with a panel for each function."""
    return _panels("rate", lines, shades, OPERATION_COLOURS, unit="1/s", log=False)


def rate_svg(lines: Sequence[Line], shades: Sequence[Shade]) -> str:
    """Draws the rates as SVG."""
    return _svg(rate(lines, shades), "rate")


def _panels(
    name: str,
    lines: Sequence[Line],
    shades: Sequence[Shade],
    colours: Mapping[str, str],
    *,
    unit: str,
    log: bool,
    dashed: Mapping[str, str] = NOTHING,
) -> Figure:
    """Draws lines over time, with a panel for each function.

    Args:
        name: The name of the figure.
        lines: The lines.
        shades: The faults.
        colours: The colour of each line, by its name; these names are in the legend.
        unit: The unit of the values.
        log: Whether the scale of the values is logarithmic.
        dashed: The colour of each dashed line, by its name.
    """
    functions = sorted({line.f for line in lines})
    span_s = _span_s([float(line.time_s[-1]) for line in lines if line.time_s.size], shades)
    with mpl.rc_context(STYLE):
        figure, panels = _figure(name, [f"{label(f)} ({unit})" for f in functions] or [unit], PANEL_IN, shades, span_s)
        for line in lines:
            few = np.count_nonzero(np.isfinite(line.value)) < 3
            panels[functions.index(line.f)].plot(
                line.time_s,
                line.value,
                color={**colours, **dashed}[line.name],
                linestyle="dashed" if line.name in dashed else "solid",
                linewidth=1.3,
                marker="o" if few else None,
                markersize=3,
            )
        for axes in panels:
            if log:
                _log_scale(axes)
            else:
                axes.set_ylim(bottom=0)
                axes.yaxis.set_major_locator(MaxNLocator(4))
        names = {line.name for line in lines}
        _legend(panels[0], {key: colour for key, colour in colours.items() if key in names})
        return figure


def _log_scale(axes: Axes) -> None:
    axes.set_yscale("log")
    low, high = axes.get_ylim()
    if high > 5 * low:
        axes.yaxis.set_major_locator(LogLocator(subs=(1,) if high > 200 * low else (1, 2, 5)))
    else:  # less than a decade: a log scale would have one tick
        axes.yaxis.set_major_locator(MaxNLocator(4))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def _span_s(ends_s: Sequence[float], shades: Sequence[Shade]) -> float:
    return max([*ends_s, *(shade.end_s for shade in shades)], default=1.0) * 1.005 or 1.0


def _figure(
    name: str, titles: Sequence[str], panel_in: float, shades: Sequence[Shade], span_s: float
) -> tuple[Figure, list[Axes]]:
    """Makes a figure of panels above one another; a strip of lanes above them has the faults, by kind."""
    kinds = kinds_of(shades)
    names = [cut(label(kind), MAX_KIND) for kind in kinds]
    left_in = max(LEFT_IN, 0.12 + KIND_CHARACTER_IN * max(map(len, names), default=0))
    heights = [max(LANE_IN * len(kinds), 0.02), *(panel_in for _ in titles)]
    height_in = TOP_IN + sum(heights) + GAP_IN * len(titles) + BOTTOM_IN
    # Fixed margins: computing them takes as long as the drawing.
    figure = Figure(figsize=(WIDTH_IN, height_in))
    figure.set_gid(name)
    places = {
        "left": left_in / WIDTH_IN,
        "right": 1 - RIGHT_IN / WIDTH_IN,
        "top": 1 - TOP_IN / height_in,
        "bottom": BOTTOM_IN / height_in,
        "hspace": GAP_IN * len(heights) / sum(heights),
    }
    strip, *panels = figure.subplots(len(heights), 1, sharex=True, gridspec_kw={"height_ratios": heights, **places})
    strip.set_axis_off()
    strip.set_ylim(len(kinds) or 1, 0)
    for kind, effective in dict.fromkeys((shade.kind, shade.effective) for shade in shades):
        lane = kinds.index(kind)
        colour = FAULT_COLOURS[lane % len(FAULT_COLOURS)]
        own = [(shade.start_s, shade.end_s) for shade in shades if (shade.kind, shade.effective) == (kind, effective)]
        left, right = np.array(own, float).T
        bars(
            strip, left, right, lane + 0.15, lane + 0.85, facecolor=colour if effective else "none",
            edgecolor=colour, linewidth=0.8, linestyle="solid" if effective else "dashed",
        )  # fmt: skip
        for axes in panels:
            bars(
                axes, left, right, 0, 1, transform=axes.get_xaxis_transform(), facecolor=colour,
                alpha=0.13 if effective else 0.05, linewidth=0, zorder=0.5,
            )  # fmt: skip
    for lane, shown in enumerate(names):
        strip.annotate(
            shown, (0, lane + 0.5), (-5, 0), textcoords="offset points", fontsize=8, color=INK, ha="right", va="center"
        )
    for axes, title in zip(panels, titles, strict=True):
        axes.set_title(title, loc="left", fontsize=9, color=INK, pad=4)
        axes.set_xlim(0, span_s)
        axes.tick_params(length=2.5)
    panels[-1].set_xlabel("seconds since the workload began")
    return figure, panels


def bars(axes: Axes, left: Any, right: Any, low: Any, high: Any, **style: Any) -> None:
    """Draws rectangles, given as columns of their edges, as one shape: much faster and smaller than one shape for each."""
    left, right, low, high = np.broadcast_arrays(*(np.asarray(edge, float) for edge in (left, right, low, high)))
    corners = [(left, low), (left, high), (right, high), (right, low), (left, low)]
    vertices = np.stack([np.stack(corner, axis=-1) for corner in corners], axis=1).reshape(-1, 2)
    codes = np.tile([Path.MOVETO, Path.LINETO, Path.LINETO, Path.LINETO, Path.CLOSEPOLY], len(left))
    # Not added as a patch: that would compute the limits of the axes from it, which is slow, and they are known.
    axes.add_artist(PathPatch(Path(vertices, codes), **style))


def _legend(axes: Axes, colours: Mapping[str, str]) -> None:
    handles = [Line2D([], [], color=colour, linewidth=2.2, label=name) for name, colour in colours.items()]
    axes.legend(
        handles=handles,
        loc="lower right",
        bbox_to_anchor=(1, 1),
        ncols=max(1, len(handles)),
        fontsize=8,
        handlelength=1.2,
        columnspacing=1.2,
        borderaxespad=0.1,
        labelcolor=INK,
    )


def svg(figure: Figure) -> str:
    """Returns a figure as an SVG file."""
    return _svg(figure, figure.get_gid() or "figure")


def _svg(figure: Figure, salt: str) -> str:
    text = io.StringIO()
    with mpl.rc_context({**STYLE, "svg.hashsalt": f"labrys-{salt}"}):
        canvas: Any = FigureCanvasSVG(figure)  # its printing has no types
        canvas.print_svg(text, metadata={"Date": None, "Creator": None})
    return re.sub(r'\b(d|x|y|width|height|transform)="[^"]*"', _shortened, _with_stable_clips(text.getvalue()))


def _with_stable_clips(svg: str) -> str:
    """Names clip paths by their order of use, equal ones alike: matplotlib names them by addresses in memory."""
    clips = dict(re.findall(r'<clipPath id="(\w+)">(.*?)</clipPath>', svg, flags=re.DOTALL))
    names: dict[str, str] = {}
    for used in re.findall(r"url\(#(\w+)\)", svg):
        if used in clips:
            names.setdefault(clips[used], f"clip{len(names)}")
    svg = re.sub(r"url\(#(\w+)\)", lambda used: f"url(#{names.get(clips.get(used[1], ''), used[1])})", svg)
    kept = "".join(f'<clipPath id="{name}">{shape}</clipPath>\n' for shape, name in names.items())
    svg = re.sub(r'\s*<clipPath id="\w+">.*?</clipPath>', "", svg, flags=re.DOTALL)
    return svg.replace("</svg>", f"<defs>{kept}</defs></svg>")


def _shortened(attribute: re.Match[str]) -> str:
    """Rounds the numbers of a drawing to a hundredth of a point, and writes a dot as `M x y h 0`."""
    rounded = re.sub(r"-?\d+\.\d{3,}", lambda number: f"{float(number[0]):.2f}", attribute[0])
    return re.sub(r"M (\S+) (\S+) \s*L \1 \2 \s*", r"M\1 \2h0", rounded)


def inlined(svg: str, *, prefix: str, title: str) -> str:
    """Returns a drawing as an element of an HTML page: themed by CSS variables, with ids of its own, scaled to its container.

    Args:
        svg: The result of a function of this module.
        prefix: A prefix for all ids, so that a page can have several drawings.
        title: The title, for screen readers.
    """
    element = svg[svg.index("<svg") :]
    element = re.sub(r"<metadata>.*?</metadata>", "", element, flags=re.DOTALL)
    element = re.sub(r'(url\(|href=")#', rf"\1#{prefix}-", element)
    element = re.sub(r'\bid="', f'id="{prefix}-', element)
    for colour, variable in _VARIABLES.items():
        element = element.replace(colour, variable)
    return re.sub(
        r'<svg [^>]*?viewBox="([^"]+)"[^>]*>',
        lambda match: (
            f'<svg xmlns:xlink="http://www.w3.org/1999/xlink" viewBox="{match[1]}" role="img" aria-label="{escape(title)}">'
        ),
        element,
        count=1,
        flags=re.DOTALL,
    )
