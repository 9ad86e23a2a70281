"""The page of causes as HTML: one file that loads nothing and runs no script. What comes from stores is escaped."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from harness.console.plain import plain
from results.causes.texts import head_of, named, rate_of, seen_of, state_of, told
from results.page.pages import environment

if TYPE_CHECKING:
    from collections.abc import Callable

    from results.causes.texts import Page

MAX_CAUSES = 500


def links_from(folder: Path) -> Callable[[str], str | None]:
    """Returns a function that returns the link from a page in a folder to the report of a run; None without a report."""

    def link(run: str) -> str | None:
        report = Path(run) / "report.html"
        return quote(os.path.relpath(report.resolve(), folder.resolve())) if report.is_file() else None

    return link


def html_of(page: Page, link: Callable[[str], str | None], *, served: bool = False) -> str:
    """Returns the page.

    Args:
        page: The causes.
        link: Returns the link to the report of a run, by its name; None if there is none.
        served: Whether `labrys serve` shows it, beside its other pages.
    """
    pages = environment(finalize=lambda value: plain(value) if type(value) is str else value)
    return pages.get_template("causes.html").render(
        page=page,
        served=served,
        head=list(head_of(page)),
        causes=page.causes[:MAX_CAUSES],
        more=max(len(page.causes) - MAX_CAUSES, 0),
        fails=sum(cause.fails for cause in page.causes),
        link=link,
        named=named,
        rate_of=rate_of,
        seen_of=seen_of,
        state_of=state_of,
        told=told,
    )
