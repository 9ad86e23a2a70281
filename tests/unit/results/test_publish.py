"""A verdict is written first, and survives any failure of its presentation."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from harness.op import Op, OpType
from harness.phases import Phases
from results.publish import publish

if TYPE_CHECKING:
    from results.record.record import RunRecord
    from results.store.store import Store

NOW = datetime(2026, 7, 29, tzinfo=UTC)
EVENTS = [Op(number, number, kind, 0, "read", None) for number, kind in enumerate((OpType.INVOKE, OpType.OK))]


def test_a_run_leaves_all_its_files(store: Store, valid_record: RunRecord) -> None:
    """The returned document is the written one."""
    run = store.create_run("t", NOW)
    document = publish(run, valid_record, events=EVENTS)
    assert json.loads(run.results_json.read_text()) == document
    for path in (run.results_edn, run.history_edn, run.report_html, run.junit_xml, run.plots_dir / "rate.svg"):
        assert path.stat().st_size > 100
    assert not [path for path in run.path.rglob("*") if path.name.endswith(".tmp")]


def test_jepsens_files_come_on_request_only(store: Store, valid_record: RunRecord) -> None:
    """They are half of a store, and few people read them."""
    run = store.create_run("t", NOW)
    publish(run, valid_record)
    assert not list(run.path.glob("*.edn"))


def test_the_time_of_writing_is_measured_too(store: Store, valid_record: RunRecord) -> None:
    """results.json has the phase `write`; the report, which is a part of it, has the others."""
    run = store.create_run("t", NOW)
    phases = Phases()
    with phases.during("judge"):
        pass
    document = publish(run, replace(valid_record, phases=list(phases.done)), phases=phases)
    assert [phase["name"] for phase in document["phases"]] == ["judge", "write"]
    assert document["phases"][1]["end_s"] > document["phases"][1]["start_s"]
    assert json.loads(run.results_json.read_text()) == document
    shown = run.report_html.read_text().partition('id="phases"')[2]
    assert "<td>judge" in shown
    assert "<td>write" not in shown


def test_plots_that_are_drawn_already_are_used(store: Store, valid_record: RunRecord) -> None:
    """They may be drawn while the run goes on."""
    run = store.create_run("t", NOW)
    drawn = {"rate": ("Early", "<svg xmlns='http://www.w3.org/2000/svg'></svg>")}
    document = publish(run, valid_record, drawn=drawn)
    assert document["problems"] == []
    assert [path.name for path in run.plots_dir.iterdir()] == ["rate.svg"]
    assert "Early" in run.report_html.read_text()


def test_results_edn_that_cannot_be_written_costs_no_report(store: Store, valid_record: RunRecord) -> None:
    """Each file that presents the verdict is tried by itself."""
    run = store.create_run("t", NOW)
    run.results_edn.mkdir()
    (run.results_edn / "in the way").write_text("")
    (problem,) = publish(run, valid_record, events=EVENTS)["problems"]
    assert problem.startswith("results.edn could not be made: StoreError: ")
    assert run.report_html.is_file()


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
