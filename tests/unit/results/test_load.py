"""A run's folder alone restores its record, and a new report is the same."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from commands.look.report import report
from harness.errors import InputError
from harness.verdict import Verdict, verdict_of
from results.store.errors import BadRecord
from results.store.store import Run
from results.stored.document import build
from results.stored.load import load_record

if TYPE_CHECKING:
    from pathlib import Path

    from results.record.record import RunRecord


@pytest.fixture
def copy(stored_run: Run, tmp_path: Path) -> Run:
    """A copy of the run, for damage."""
    path = tmp_path / "store" / stored_run.test_name / stored_run.stamp
    shutil.copytree(stored_run.path, path)
    return Run(path)


def test_the_record_comes_back(stored_run: Run, stale_record: RunRecord) -> None:
    """Operations, faults, parts, sightings: the new document is the same."""
    loaded = load_record(stored_run)
    assert loaded.test == stale_record.test
    assert build(loaded) == build(stale_record)


def test_the_report_made_anew_is_the_same(copy: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Byte for byte; its path is the only thing on standard output."""
    monkeypatch.setenv("NO_COLOR", "1")
    before = {path: path.read_bytes() for path in (copy.report_html, copy.junit_xml, *copy.plots_dir.iterdir())}
    for path in before:
        path.unlink()
    result = CliRunner().invoke(report, [str(copy.path)])
    assert result.exit_code == 0, result.stderr
    assert {path: path.read_bytes() for path in before} == before
    assert result.stdout == f"{copy.report_html}\n"
    assert "reproduce" in result.stderr


def test_a_run_without_a_verdict_is_unknown(copy: Run) -> None:
    """A run killed before its end has the operations and faults of the history, and no verdict."""
    copy.results_json.unlink()
    text = copy.history_jsonl.read_bytes()
    copy.history_jsonl.write_bytes(text[: len(text) // 2])
    loaded = load_record(copy)
    assert verdict_of(loaded.parts) is Verdict.UNKNOWN
    assert "ended before its verdict" in loaded.parts[0].reason
    assert loaded.operations
    assert all(fault.proof is None for fault in loaded.faults)
    assert [fault.planned.kind for fault in loaded.faults][:2] == ["partition-random-halves", "kill"]
    assert any("middle of a line" in problem for problem in loaded.problems)
    assert CliRunner().invoke(report, [str(copy.path)]).exit_code == 0


def test_a_run_without_a_history_is_told(copy: Run) -> None:
    """The verdict stays what it was."""
    copy.history_jsonl.unlink()
    loaded = load_record(copy)
    assert verdict_of(loaded.parts) is Verdict.INVALID
    assert "the run has no history.jsonl" in loaded.problems


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("test.json", b"{"),
        ("test.json", b"[]"),
        ("test.json", b"\xff\xfe"),
        ("results.json", b'{"format": "labrys-results", "version": 3}'),
        ("results.json", b"[" * 200_000),
        ("results.json", b'{"format": "labrys-results", "version": 3, "duration_s": 1, "parts": {"p": 1}}'),
        ("history.jsonl", b"not a history\n"),
    ],
)
def test_a_damaged_file_is_named(copy: Run, name: str, content: bytes) -> None:
    """The error names the file, and there is no report."""
    (copy.path / name).write_bytes(content)
    with pytest.raises((BadRecord, InputError), match=name.replace(".", r"\.")):
        load_record(copy)


def test_a_missing_file_is_named(copy: Run) -> None:
    """Without test.json, the test is unknown."""
    copy.test_json.unlink()
    with pytest.raises(InputError, match=r"test\.json cannot be read: No such file"):
        load_record(copy)
