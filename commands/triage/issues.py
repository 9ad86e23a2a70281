"""Writes what to do with the issues of a repository after a night, for `labrys triage --actions`."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

from commands.look.report import for_the_authors
from harness.console.plain import one_line
from harness.errors import InputError
from results.causes.issues import actions_of, json_of_actions, read_issues
from results.causes.known import read_known
from results.store.store import Run
from results.stored.load import load_record
from results.words.markdown import quoted

if TYPE_CHECKING:
    from results.causes.standing import Cause
    from results.causes.texts import Page

MAX_WHY: Final = 500
_LINK: Final = re.compile(r"https?://[A-Za-z0-9][A-Za-z0-9._~:/?#@!$&'*+,;=%-]{0,500}")


def write_actions(path: Path, page: Page, *, issues: Path | None, known: Path, link: str) -> None:
    """Writes the actions as JSON.

    Args:
        path: The file.
        page: The causes.
        issues: The file with the issues of the repository; None if it has none.
        known: The folder of known causes.
        link: The address of the night; empty without one.

    Raises:
        InputError: A file cannot be read or written, or is malformed; or the address is none of the web.
    """
    if link and not _LINK.fullmatch(link):
        raise InputError(f"--link: expected an address such as https://example.org/run/5, not {link!r}")
    entries = read_known(known)

    def report(cause: Cause) -> str:
        """Returns the report for authors of the smallest run that is in a store."""
        if cause.ended != "invalid":
            return ""
        runs = [Run(Path(seen.run)) for seen in (cause.smallest, cause.last, cause.first)]
        run = next((run for run in runs if run.has(run.results_json)), None)
        if run is None:
            return "No store of this night has a run of it, so there is no report of one."
        try:
            return for_the_authors(run, load_record(run), entries)
        except InputError as error:
            return f"The report of its run could not be made: {quoted(one_line(str(error)), MAX_WHY)}"

    actions = actions_of(page, [] if issues is None else read_issues(issues), report, link)
    try:
        path.write_text(json.dumps(json_of_actions(actions), indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        raise InputError(f"--actions: {path} could not be written: {error.strerror or error}") from error
