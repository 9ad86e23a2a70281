"""The latencies of several runs in one plot, for the page that compares runs.

The rule: a run that is not in the plot is named with the reason. Runs may come from anyone, so only histories of a bounded size
are read, by the reader that every report uses.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from markupsafe import Markup

from harness.console import below
from harness.errors import InputError
from harness.op import OpType
from results.measure.series import bucket_s, latency_points, main_phase, quantile_lines
from results.stored.load import load_record
from results.words.bounds import busiest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from results.measure.series import Points
    from results.store.store import Run

MAX_BYTES = 32 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlay:
    """The latencies of runs in one plot.

    Attributes:
        drawing: The plot, an element of an HTML page; None if no operation of any run was ok.
        width_s: The width of a bucket of time.
        problems: A sentence for each run that is not in the plot.
        bounded: A note if functions are left out; else empty.
    """

    drawing: Markup | None
    width_s: float
    problems: Sequence[str]
    bounded: str


def overlay(runs: Sequence[Run], names: Sequence[str]) -> Overlay:
    """Draws the quantiles of the latency of ok operations over time: a panel for each function, two lines for each run.

    Args:
        runs: The runs, at most as many as `results.page.plots` has colours for.
        names: The short name of each run, for the legend.
    """
    from results.page import plots  # noqa: PLC0415 - slow to import

    problems = []
    points_of: dict[str, list[Points]] = {}
    for run, name in zip(runs, names, strict=True):
        try:
            points = _points(run)
        except (InputError, OSError) as error:
            problems.append(f"{name} is not drawn: {error}.")
            continue
        if points:
            points_of[name] = points
        else:
            problems.append(f"{name} is not drawn: no operation was ok.")
    every = [group for points in points_of.values() for group in points]
    if not every:
        return Overlay(drawing=None, width_s=0.0, problems=problems, bounded="")
    shown, bounded = busiest(every)
    functions = {group.f for group in shown}
    width_s = bucket_s(max(float(group.time_s.max()) for group in every))
    lines = []
    for name, points in points_of.items():
        kept = [group for group in points if group.f in functions]
        of_run = {"p99": name, "p50": f"{name} p50"}
        quantiles = quantile_lines(kept, width_s)
        lines += [replace(line, name=of_run[line.name]) for line in quantiles if line.name in of_run]
    svg = plots.inlined(
        plots.compared_latency_svg(lines, list(points_of)), prefix="compared", title="Latency over time"
    )
    drawing = Markup(svg)  # noqa: S704 - our own SVG; the drawing library has escaped its texts
    return Overlay(drawing=drawing, width_s=width_s, problems=problems, bounded=bounded)


def _points(run: Run) -> list[Points]:
    """Returns the latencies of the ok operations of a run.

    Raises:
        InputError: A file is missing, malformed or too large; the message names the file.
    """
    if run.has(run.history_jsonl):
        with below.open_file(run.path, run.history_jsonl) as file:
            size = file.seek(0, os.SEEK_END)
        if size > MAX_BYTES:
            raise InputError(f"{run.history_jsonl} exceeds the maximum size of {MAX_BYTES >> 20} MiB")
    record = load_record(run)
    points = latency_points(main_phase(record.operations), record.test.codes)
    return [group for group in points if group.outcome == OpType.OK]
