"""Histories in which Labrys found a bug of BookKeeper keep their verdicts, and the plans can be read."""

from __future__ import annotations

from pathlib import Path

from tests.findings import checked

FINDINGS = Path(__file__).parents[2] / "findings"
OLD_ENSEMBLE = FINDINGS / "bookkeeper-4.17.3-old-ensemble"
REPLACED = FINDINGS / "bookkeeper-4.17.3-replaced-bookies"


def test_entries_that_bookkeeper_left_on_the_old_ensemble_are_found() -> None:
    """Two acknowledged entries are on no bookie that the metadata name, and fifteen on fewer than the ack quorum."""
    history = OLD_ENSEMBLE / "history.jsonl.gz"
    text = checked(history, "--workload", "ledger")
    assert "process 62's append of 1109 was acknowledged with offset 58 at 15.531 s" in text
    assert "15 under-replicated" in text


def test_appends_to_a_closed_ledger_that_replaced_bookies_acknowledged_are_found() -> None:
    """Three appends are acknowledged beyond the end of their ledger, and no recovery has them."""
    history = REPLACED / "history.jsonl.gz"
    text = checked(history, "--workload", "ledger")
    assert "process 13 recovered the ledger to the last entry 0 at 147.906 s, and process 1 appended entry 1" in text
    assert "3 beyond-end" in text
