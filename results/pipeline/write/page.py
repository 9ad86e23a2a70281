"""`index.html` of an analysis, and its pictures as files: the first thing that a user opens.

The page is one file that loads nothing and runs no script. Names and explanations come from histories, which are hostile input:
the template engine escapes them, and so does the drawing library.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from markupsafe import Markup

from harness.console.plain import plain
from harness.suites.expectation import CaseOutcome
from harness.verdict import Verdict
from results.page.pages import environment
from results.pipeline.measure.trends import DEVIATIONS, HISTORY, verdict_of
from results.pipeline.write.pictures import SHOWN_RUNS, chosen, lines_of, needs_pictures, of_faults, of_lines, of_runs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from results.page.drawing import Draw, Picture
    from results.pipeline.write.gathered import Gathered
    from results.pipeline.write.summary import Summary

PAGE = "index.html"
SHOWN_ROWS = 100
SHOWN_DOTS = 40
_FILE = "file:"
_LINK = re.compile(r'<a xlink:href="([^"]*)"')


def render(
    summary: Summary,
    trends: Sequence[Mapping[str, Any]],
    gather: Callable[[Sequence[str]], Gathered],
    draw: Draw,
) -> dict[str, bytes]:
    """Draws an analysis.

    Args:
        summary: The summary.
        trends: The rows of `trends.trends`.
        gather: Returns the input of the pictures, given the names of the shown runs.
        draw: Draws pictures; `results.page.drawing.draw_all`.

    Returns:
        Files by name: the page, and each of its pictures.
    """
    rows = chosen(trends, SHOWN_ROWS)
    links = _links(summary.out, trends)
    drawn_rows = [row for row in rows if needs_pictures(row, links)][:SHOWN_RUNS]
    gathered = gather([row["run"] for row in drawn_rows])
    pictured = of_runs(drawn_rows, gathered.runs)
    lines = lines_of(trends)
    by_line, by_fault = of_lines(lines, links), of_faults(trends, gathered.kinds)
    pictures = [*by_line, *by_fault, *(picture for run in pictured for picture in run.pictures)]
    drawn = {picture.name: drawing for picture, drawing in zip(pictures, draw(pictures), strict=True)}
    files: dict[str, bytes] = {}
    for name, drawing in drawn.items():
        files[f"{name}.svg"] = _LINK.sub(r'<a xlink:href="../\1"', drawing.svg).encode()
    pages = environment(finalize=lambda value: plain(value) if type(value) is str else value)

    def shown(pictures: Sequence[Picture]) -> list[dict[str, Any]]:
        # Our own SVG; the drawing library has escaped its texts.
        return [{"title": picture.title, "svg": Markup(drawn[picture.name].element)} for picture in pictures]  # noqa: S704

    page = pages.get_template("analysis.html").render(
        verdict=str(summary.outcome),
        runs=summary.runs,
        operations=summary.operations,
        counts={name: summary.counts.get(name, 0) for name in ("valid", "invalid", "unknown")},
        outcomes=summary.outcomes,
        quarantined=summary.quarantined,
        history=HISTORY,
        deviations=f"{DEVIATIONS:g}",
        verdict_of=verdict_of,
        notes=_notes,
        lines=lines[:SHOWN_ROWS],
        more_lines=max(len(lines) - SHOWN_ROWS, 0),
        shown_dots=SHOWN_DOTS,
        links=links,
        trends=shown(by_line),
        faults=shown(by_fault),
        rows=rows,
        refuted=summary.refuted,
        undecided=summary.undecided,
        orders={name: summary.orders.get(name, 0) for name in ("valid", "invalid", "unknown")}
        if summary.orders
        else {},
        misordered=summary.misordered,
        reasons=summary.reasons,
        reported=sum(row["run"] in links for row in rows) - sum(row["run"] in links for row in drawn_rows),
        pictured=[{"row": run.row, "pictures": shown(run.pictures)} for run in pictured],
    )
    return {PAGE: page.encode(), **files}


def _notes(row: Mapping[str, Any]) -> Iterator[str]:
    """Yields what stands below the verdict of a run: thresholds, what was expected, and which source says something else."""
    verdict, keys, said = verdict_of(row["verdict"], row["said_verdict"]), row["verdict"], row["said_verdict"]
    if row["crossed"]:
        yield f"{'thresholds unknown' if row['behind'] else 'crossed'} {'; '.join(row['crossed'])}"
    if row["outcome"] == CaseOutcome.KNOWN:
        yield "known failure"
    elif row["expects"] in {Verdict.INVALID, Verdict.UNKNOWN}:
        yield "as expected" if row["outcome"] == CaseOutcome.EXPECTED else f"expected {row['expects']}"
    if keys is not None and keys != verdict:
        yield f"its keys are {keys}"
    elif said is not None and said != verdict:
        yield f"its results.json says {said}"


def _links(out: str, trends: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Returns the link from the page to the report of each run; runs without a report on this machine are left out.

    Links are relative, so they stay valid if the store and the page move together.
    """
    if not out.startswith(_FILE):
        return {}
    reports = {
        row["run"]: Path(row["report"].removeprefix(_FILE))
        for row in trends
        if row["report"] is not None and row["report"].startswith(_FILE)
    }
    here = out.removeprefix(_FILE)
    return {run: quote(os.path.relpath(path, here)) for run, path in reports.items() if path.is_file()}
