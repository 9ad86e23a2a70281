"""A comparison tells what differs between runs, and bears damaged ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from results.compare import comparison
from results.store import Run

if TYPE_CHECKING:
    from pathlib import Path


def test_differences_are_marked(stored_run: Run, tmp_path: Path) -> None:
    """A run beside one that left nothing but a file of nonsense."""
    other = Run(tmp_path)
    other.results_json.write_text(
        '{"valid": [], "faults": [7, {"availability": 3}], "latency": {"read": 5}, "parts": []}'
    )
    table = comparison([stored_run, other])
    rows = {row["name"]: row for row in table["rows"]}
    assert rows["verdict"]["texts"] == ["invalid", "none"]
    assert rows["verdict"]["differs"]
    assert rows["--read-mode"]["texts"] == ["unsafe", "—"]
    assert rows["faults seen to take effect"]["texts"] == ["4 of 5", "0 of 1"]
    assert rows["read p50"]["texts"][1] == "—"
    assert rows["part linearizable"]["texts"] == ["invalid", "—"]


def test_equal_runs_do_not_differ(stored_run: Run) -> None:
    """No row is marked."""
    assert not any(row["differs"] for row in comparison([stored_run, stored_run])["rows"])
