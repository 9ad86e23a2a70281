"""The folder of a repeated test: `store/repeats/TEST/TIME/` with `repeat.json` and a page that links the runs.

Both are written after each run, so an interruption leaves the results so far. The reasons come from systems and histories,
which are hostile input. So the page escapes them, and its own policy forbids network access.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from harness.console.plain import plain
from results.page.pages import environment
from results.store.errors import StoreError
from results.store.store import fresh_folder, write_text

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from harness.op import Value

REPEATS = "repeats"


class RepeatFolder:
    """The folder of a repeated test.

    Attributes:
        path: The folder.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def create(cls, store: Path, test: str, utc: datetime) -> RepeatFolder:
        """Makes the folder.

        Args:
            store: The store.
            test: The name of the test, which must fit as the name of a folder.
            utc: The start of the test.

        Raises:
            StoreError: It cannot be made.
        """
        parent = store / REPEATS / test
        try:
            return cls(fresh_folder(parent, utc))
        except OSError as error:
            raise StoreError(f"a folder in {parent} could not be made: {error.strerror or error}") from error

    @property
    def page(self) -> Path:
        """Returns the path of the page."""
        return self.path / "index.html"

    def save(self, document: Mapping[str, Value]) -> None:
        """Writes the results so far."""
        write_text(self.path, self.path / "repeat.json", json.dumps(document, indent=2) + "\n")
        pages = environment(finalize=lambda value: plain(value) if type(value) is str else value)
        pages.globals["link"] = self._link
        write_text(self.path, self.page, pages.get_template("repeat.html").render(document=document))

    def _link(self, run: str) -> str:
        """Returns the link from the page to the report of a run."""
        return quote(os.path.relpath(Path(run) / "report.html", self.path))
