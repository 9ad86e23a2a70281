"""What `labrys check` says about the history of a finding, for tests of the findings in systems."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from click.testing import CliRunner

from commands.check.command import check
from harness.errors import ExitCode

if TYPE_CHECKING:
    from pathlib import Path


def checked(history: Path, *options: str, code: ExitCode = ExitCode.INVALID) -> str:
    """Returns what `labrys check` prints of a history as JSON in one line; it ends with the expected code."""
    done = CliRunner().invoke(check, [str(history), *options, "--format", "json"], catch_exceptions=False)
    assert done.exit_code == code
    return json.dumps(json.loads(done.stdout))
