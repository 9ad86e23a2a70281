"""A comparison shows the differences of runs, also of damaged ones."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from commands.choosing import loadable
from commands.test import run_test
from harness.options import options_of
from results.compare import MAX_BYTES, MAX_NAMES, comparison, flag
from results.store import Run

if TYPE_CHECKING:
    from pathlib import Path


def test_differences_are_marked(stored_run: Run, tmp_path: Path) -> None:
    """A run beside one with only a damaged file."""
    other = Run(tmp_path)
    other.results_json.write_text(
        '{"valid": [], "faults": [7, {"availability": 3}], "latency": {"read": 5}, "parts": []}'
    )
    table = comparison([stored_run, other])
    rows = {row["name"]: row for row in table["rows"]}
    assert rows["verdict"]["texts"] == ["invalid", "none"]
    assert rows["verdict"]["differs"]
    assert rows["--read-mode"]["texts"] == ["unsafe", "—"]
    assert rows["faults with a proven effect"]["texts"] == ["4 of 5", "0 of 1"]
    assert rows["read p50"]["texts"][1] == "—"
    assert rows["part linearizable"]["texts"] == ["invalid", "—"]


def test_equal_runs_do_not_differ(stored_run: Run) -> None:
    """No row is marked."""
    assert not any(row["differs"] for row in comparison([stored_run, stored_run])["rows"])


def test_what_is_too_large_is_not_compared_and_named(stored_run: Run, tmp_path: Path) -> None:
    """A file of many megabytes is not read, and a row shows it. Long texts are shortened."""
    other = Run(tmp_path)
    other.results_json.write_bytes(b'{"reason": "' + b"x" * MAX_BYTES + b'"}')
    other.test_json.write_text(json.dumps({"options": {f"o{number}" * 200: "y" * 2000 for number in range(900)}}))
    table = comparison([stored_run, other])
    rows = {row["name"]: row for row in table["rows"]}
    assert "results.json exceeds the maximum size of" in rows["not compared"]["texts"][1]
    assert f"of 900 options the first {MAX_NAMES} are compared" in rows["not compared"]["texts"][1]
    assert len(table["rows"]) < 3 * MAX_NAMES
    assert len(json.dumps(table["rows"])) < 200_000


def test_options_are_shown_as_they_are_typed() -> None:
    """Each option of `labrys test`, of every system and every workload, has its flag's name in the comparison."""
    options = [*options_of(run_test), *(option for each in loadable() for option in each.options)]
    assert [flag(str(option.name)) for option in options] == [option.opts[0] for option in options]
