"""The page of causes as HTML: one file that loads nothing and runs no script. What comes from stores is escaped."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from harness.console.plain import plain
from results.causes.texts import head_of, named, rate_of, seen_of, state_of
from results.page.pages import environment

if TYPE_CHECKING:
    from results.causes.texts import Page

MAX_CAUSES = 500


def html_of(page: Page, folder: Path | None) -> str:
    """Returns the page.

    Args:
        page: The causes.
        folder: The folder of the page, to which links to reports are relative; None: the page has no links.
    """
    pages = environment(finalize=lambda value: plain(value) if type(value) is str else value)

    def link(run: str) -> str | None:
        report = Path(run) / "report.html"
        if folder is None or not report.is_file():
            return None
        return quote(os.path.relpath(report.resolve(), folder.resolve()))

    return pages.get_template("causes.html").render(
        page=page,
        head=list(head_of(page)),
        causes=page.causes[:MAX_CAUSES],
        more=max(len(page.causes) - MAX_CAUSES, 0),
        fails=sum(cause.fails for cause in page.causes),
        link=link,
        named=named,
        rate_of=rate_of,
        seen_of=seen_of,
        state_of=state_of,
    )
