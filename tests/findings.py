"""What `labrys check` says about the history of a finding, and the pages of findings, for tests of the findings in systems."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from click.testing import CliRunner

from commands.check.command import check
from harness.errors import ExitCode

if TYPE_CHECKING:
    from pathlib import Path

    from clusters.kit.mending import Mends


def checked(history: Path, *options: str, code: ExitCode = ExitCode.INVALID) -> str:
    """Returns what `labrys check` prints of a history as JSON in one line; it ends with the expected code."""
    done = CliRunner().invoke(check, [str(history), *options, "--format", "json"], catch_exceptions=False)
    assert done.exit_code == code
    return json.dumps(json.loads(done.stdout))


def assert_mends_have_findings(mends: Mends, page: Path) -> None:
    """Asserts that a page of findings has a section and a line of its table for each mend of a program."""
    text = page.read_text(encoding="utf-8")
    sections = set(map(int, re.findall(r"^## (\d+)\. ", text, re.MULTILINE)))
    lines = {int(number) for number in re.findall(r"^\| (\d+)(?: and 5)? \| `", text, re.MULTILINE)}
    assert mends.texts
    assert set(mends.texts) <= sections
    assert set(mends.texts) <= lines
