"""A verdict is written first, and survives any failure of its presentation."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from results.publish import publish

if TYPE_CHECKING:
    from results.record import RunRecord
    from results.store import Store

NOW = datetime(2026, 7, 29, tzinfo=UTC)


def test_a_run_leaves_all_its_files(store: Store, valid_record: RunRecord) -> None:
    """The returned document is the written one."""
    run = store.create_run("t", NOW)
    document = publish(run, valid_record)
    assert json.loads(run.results_json.read_text()) == document
    for path in (run.results_edn, run.report_html, run.junit_xml, run.plots_dir / "rate.svg"):
        assert path.stat().st_size > 100
    assert not [path for path in run.path.rglob("*") if path.name.endswith(".tmp")]


def test_a_report_that_cannot_be_made_costs_no_verdict(store: Store, valid_record: RunRecord) -> None:
    """The problem is in the file, and the caller gets it."""
    run = store.create_run("t", NOW)
    run.report_html.mkdir()
    (run.report_html / "in the way").write_text("")
    document = publish(run, replace(valid_record, problems=["first"]))
    assert document["valid"] is True
    assert document["problems"][0] == "first"
    assert "the report could not be made: StoreError: " in document["problems"][1]
    assert json.loads(run.results_json.read_text()) == document
