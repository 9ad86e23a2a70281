"""`index.html` of an analysis, and its pictures as files: what a person looks at first.

The page is one file that loads nothing and runs no script. Names and explanations come from histories: the template engine
escapes them, and in pictures they are text that the drawing library escapes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from harness.plain import plain
from results import plots
from results.pages import environment
from results.pipeline.measure.trends import DEVIATIONS, HISTORY
from results.pipeline.write.pictures import SHOWN_RUNS, chosen, of_faults, of_runs, of_tests

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from results.pipeline.write.gathered import Gathered
    from results.pipeline.write.pictures import Picture
    from results.pipeline.write.summary import Summary

PAGE = "index.html"
SHOWN_ROWS = 100


def render(
    found: Summary, trends: Sequence[Mapping[str, Any]], gather: Callable[[Sequence[str]], Gathered]
) -> dict[str, bytes]:
    """Draws an analysis.

    Args:
        found: What it says.
        trends: What `trends.trends` returned.
        gather: Returns what is drawn, given the names of the runs that are shown.

    Returns:
        Files by name: the page, and each picture as SVG and as PNG.
    """
    rows = chosen(trends, SHOWN_ROWS)
    drawn = gather([row["run"] for row in rows[:SHOWN_RUNS]])
    pictured = of_runs(rows[:SHOWN_RUNS], drawn.runs)
    by_test, by_fault = of_tests(trends), of_faults(trends, drawn.bore)
    files: dict[str, bytes] = {}
    for picture in [*by_test, *by_fault, *(each for run in pictured for each in run.pictures)]:
        files[f"{picture.name}.svg"] = plots.svg(picture.figure).encode()
        files[f"{picture.name}.png"] = plots.png(picture.figure)
    pages = environment(finalize=lambda value: plain(value) if type(value) is str else value)

    def shown(pictures: Sequence[Picture]) -> list[dict[str, Any]]:
        return [{"title": each.title, "svg": _inlined(each, files)} for each in pictures]

    page = pages.get_template("analysis.html").render(
        verdict=str(found.verdict),
        runs=found.runs,
        operations=found.operations,
        counts={name: found.counts.get(name, 0) for name in ("valid", "invalid", "unknown")},
        quarantined=found.quarantined,
        history=HISTORY,
        deviations=f"{DEVIATIONS:g}",
        trends=shown(by_test),
        faults=shown(by_fault),
        rows=rows,
        refuted=found.refuted,
        undecided=found.undecided,
        orders={name: found.orders.get(name, 0) for name in ("valid", "invalid", "unknown")} if found.orders else {},
        misordered=found.misordered,
        reasons=found.reasons,
        pictured=[{"row": run.row, "pictures": shown(run.pictures)} for run in pictured],
    )
    return {PAGE: page.encode(), **files}


def _inlined(picture: Picture, files: Mapping[str, bytes]) -> Markup:
    title = str(Markup.escape(picture.title))
    drawn = plots.inlined(files[f"{picture.name}.svg"].decode(), prefix=picture.name, title=title)
    return Markup(drawn)  # noqa: S704 - drawn by us, its texts escaped by who drew it
