"""The report for the authors of a system tells what a maintainer needs, and shows hostile text as text."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

import cli
from harness.errors import InputError
from harness.promise import PromiseTested
from harness.verdict import Verdict
from results.causes.reading import alike
from results.store.store import Store
from tests.unit.results.stored import store_run

if TYPE_CHECKING:
    from pathlib import Path

    from click.testing import Result

    from results.record.record import RunRecord

HOSTILE = "<script>alert(1)</script> | [a](http://example.org) @everyone `x`"
SECTIONS = (
    "What was run", "What is promised", "What must not be", "What happened", "Faults of the run", "How often",
    "What was ruled out", "How to run it again", "Files",
)  # fmt: skip


def reported(store: Path, name: str = "latest") -> Result:
    """Runs the command."""
    return CliRunner().invoke(cli.labrys, ["report", name, "--for-authors", "--store", str(store)])


def test_it_tells_what_happened_and_how_often(tmp_path: Path, stale_record: RunRecord, valid_record: RunRecord) -> None:
    """A run of the same case that is valid counts as a trial."""
    store = Store(tmp_path)
    same_case = replace(valid_record.test, name=stale_record.test.name)
    store_run(store, replace(valid_record, test=same_case))
    later = replace(stale_record.test, started_utc=stale_record.test.started_utc + timedelta(hours=1))
    run = store_run(store, replace(stale_record, test=later))
    result = reported(tmp_path)
    assert result.exit_code == 0, result.output
    text = run.for_authors_md.read_text()
    assert [line[3:] for line in text.splitlines() if line.startswith("## ")] == [*SECTIONS]
    assert text.count("**This cannot be.**") == 1
    assert alike(run, later.reproduce).rate == (1, 2)
    assert "1 of 2 runs, 50.0 %" in text
    assert f"    {later.reproduce}" in text


def test_foreign_text_stays_text(tmp_path: Path, stale_record: RunRecord) -> None:
    """No reason, name, promise or command becomes markup, and a line break in a command does not end its block."""
    parts = [replace(part, reason=HOSTILE) if part.verdict is Verdict.INVALID else part for part in stale_record.parts]
    tested = PromiseTested(promise=HOSTILE, source=HOSTILE, others=(HOSTILE,))
    test = replace(
        stale_record.test, tested=tested, versions={HOSTILE: HOSTILE}, reproduce=f"labrys test\n\n{HOSTILE}\x1b[2J"
    )
    run = store_run(Store(tmp_path), replace(stale_record, parts=parts, test=test))
    assert reported(tmp_path).exit_code == 0
    text = run.for_authors_md.read_text()
    (command,) = [line for line in text.splitlines() if "<script>" in line]
    assert command.startswith("    labrys test <script>")
    assert "\x1b" not in text
    assert "@everyone" not in text.replace(command, "")
    assert "[a]" not in text.replace(command, "")


@pytest.mark.parametrize("name", ["latest", "missing"])
def test_only_an_invalid_run_has_one(tmp_path: Path, valid_record: RunRecord, name: str) -> None:
    """The error says what the run is."""
    store_run(Store(tmp_path), valid_record)
    result = reported(tmp_path, name)
    assert isinstance(result.exception, InputError)
    assert ("only of an invalid run" in str(result.exception)) is (name == "latest")
