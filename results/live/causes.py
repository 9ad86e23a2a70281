"""The page of causes of a store, for `labrys serve`: by symptoms alone, because a server carries out no run."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import PurePath
from typing import TYPE_CHECKING

from results.causes.grouping import grouped
from results.causes.html import html_of
from results.causes.known import KNOWN, read_known
from results.causes.reading import read_stores
from results.causes.standing import causes_of
from results.causes.texts import page_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from results.store.store import Store


def causes_page(store: Store, folder_of: Callable[[str, str], str]) -> str:
    """Returns the page as HTML.

    Args:
        store: The store.
        folder_of: Returns the address of the folder of a run, from the name of its test and the time of its start.

    Raises:
        InputError: A file of known causes is malformed.
    """
    seen = read_stores([store.root])
    causes = causes_of(seen, grouped(seen.cases), read_known(KNOWN), datetime.now(UTC).date())

    def link(run: str) -> str:
        test, stamp = PurePath(run).parts[-2:]
        return f"{folder_of(test, stamp)}report.html"

    page = page_of([str(store.root)], seen, causes, "Symptoms alone decide here; `labrys triage` also experiments.")
    return html_of(page, link, served=True)
