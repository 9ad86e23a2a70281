"""A part without a counterexample shows what was recorded: positions of the nodes, leaders, faults, and its own data."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from rich.console import Console

import cli
from harness.errors import ExitCode
from harness.op import OpType
from harness.parts import client_errors, log_patterns
from harness.reached import recovered
from harness.recovery import Recovery
from harness.replicas import Difference, Replicas
from harness.states import ONE_LEADER, replicas_equal
from harness.units import NS_PER_S as S
from harness.verdict import Part, Verdict
from harness.watch import Positions, Sighting
from results.page import evidence as module
from results.page.evidence import evidence
from results.page.report import render
from results.page.story_text import print_evidence
from results.store.store import Store
from results.stored.document import build
from tests.unit.results.stored import store_run

if TYPE_CHECKING:
    from pathlib import Path

    from harness.op import Operation
    from results.record.record import RunRecord

HOSTILE = "<script>\x1b[31m\u202e"
STUCK = recovered(
    Recovery(
        seconds=33.0, restarted=True, first_error="n3 has applied 101 of 1601 entries\n--- last lines\nReset write index",
        error=None, quorum=2, nodes=3, from_s=60.0, restarted_s=90.0,
    )
)  # fmt: skip


@pytest.fixture
def stuck(valid_record: RunRecord) -> RunRecord:
    """A run in which n3 stays at entry 101 from 30 s on, until a restart at 90 s."""
    times_ns = [second * S for second in range(0, 101, 2)]
    positions = Positions(
        time_ns=times_ns,
        applied={
            "n1": [min(1601, time_ns // S * 20) for time_ns in times_ns],
            "n2": [None if time_ns > 70 * S else min(1601, time_ns // S * 20) for time_ns in times_ns],
            "n3": [101 if 30 * S <= time_ns < 90 * S else min(1601, time_ns // S * 20) for time_ns in times_ns],
        },
    )
    sightings = [
        Sighting(time_ns=0, node="n1", role="leader", term=0, until_ns=100 * S),
        Sighting(time_ns=72 * S, node="n2", role=None, until_ns=100 * S),
        Sighting(time_ns=0, node="n3", role="candidate", term=0, until_ns=100 * S),
    ]
    return replace(valid_record, parts=[STUCK], positions=positions, sightings=sightings)


def printed(record: RunRecord) -> str:
    """Returns the evidence of all parts on the terminal."""
    out = io.StringIO()
    for piece in evidence(record):
        print_evidence(Console(file=out, width=200, markup=False), piece)
    return out.getvalue()


def test_a_system_that_did_not_recover_shows_the_positions_of_its_nodes(stuck: RunRecord) -> None:
    """The table has each node at each poll, the leader with its term, and what Labrys did meanwhile."""
    (piece,) = evidence(stuck)
    table, *_ = piece.tables
    assert table.heads == ("time", "n1", "n2", "n3", "leads", "since the row before")
    at = {row[0]: row for row in table.rows}
    assert at["62.0 s"] == ("62.0 s", "1,240", "1,240", "101 candidate", "n1 in term 0", "Labrys waits for recovery")
    assert at["74.0 s"][2] == "no answer"
    assert any("Labrys restarts all nodes" in row[5] for row in table.rows)
    assert list(piece.sentences[-3:]) == [
        "At 88.0 s, the last poll before Labrys restarted the nodes, n1 had applied the most entries, 1,601.",
        "n2 did not report an applied index at that time.",
        "n3 was 1,500 entries behind; polls had seen it at 101 since 30.0 s.",
    ]
    assert piece.texts[0][1].splitlines()[-1] == "Reset write index"


def dead(stuck: RunRecord, *operations: Operation, **details: Any) -> RunRecord:
    """Returns a run whose clients got errors at the end, with other details of the part `recovered`."""
    own = {**STUCK.details, **details}
    stuck = replace(stuck, test=replace(stuck.test, answers=("mismatch",)))
    return replace(stuck, operations=[*stuck.operations, *operations], parts=[replace(STUCK, details=own)])


def failed(stuck: RunRecord, node: str, at_s: float, error: str | None) -> Operation:
    """Returns a write that ended with an error; without one it never ended."""
    return replace(
        stuck.operations[0], f="write", node=node, via=None, type=OpType.INFO, result=None, error=error,
        start_ns=int(at_s * S), end_ns=None if error is None else int((at_s + 0.1) * S),
    )  # fmt: skip


def test_a_system_that_did_not_recover_shows_the_codes_of_its_errors_by_node(stuck: RunRecord) -> None:
    """They count from the last faults on. A compare-and-set that did not match is an answer, and errors have several lines."""
    operations = [failed(stuck, "n1", 80.0 + index, "status-504: the store\nis dead") for index in range(3)]
    operations += [failed(stuck, "n2", 84.0, "status-504: dead"), failed(stuck, "n3", 85.0, None)]
    early = failed(stuck, "n1", 2.0, "early: before the last faults")
    run = dead(stuck, early, *operations)
    (piece,) = evidence(run)
    table = next(own_table for own_table in piece.tables if own_table.title == "The errors of the clients since 50.0 s")
    assert table.heads == ("function", "code", "number", "at", "first", "last", "the last one")
    assert [*table.rows] == [
        ("write", "status-504", "4", "n1 3, n2 1", "80.1 s", "84.1 s", "status-504: dead"),
        ("write", "never ended", "1", "n3 1", "85.0 s", "85.0 s", ""),
    ]
    reports = next(
        own_table for own_table in piece.tables if own_table.title == "The last reports of the nodes since 50.0 s"
    )
    assert {row[0] for row in reports.rows} == {"n1", "n2", "n3"}
    assert "status-504: the store is dead" in printed(dead(stuck, *operations[:3]))


def test_an_unknown_recovery_shows_the_same_and_no_escaped_line_breaks(stuck: RunRecord) -> None:
    """The errors have their lines, and a system that was not restarted has one wait."""
    run = dead(
        stuck, failed(stuck, "n1", 80.0, "status-504: dead"), restarted=False, restarted_s=None, error="later\nx"
    )
    run = replace(run, parts=[replace(run.parts[0], verdict=Verdict.UNKNOWN)])
    piece, whole = evidence(run)
    assert [title for title, _ in piece.texts] == ["The wait"]
    assert whole.part == module.WHOLE_RUN
    assert any(table.title == "The errors of the clients since 50.0 s" for table in piece.tables)
    assert any(table.title == "The errors of the clients" for table in whole.tables)
    text = printed(run)
    assert "\\n" not in text
    assert "    --- last lines\n    Reset write index\n" in text


def test_no_part_prints_escaped_line_breaks(valid_record: RunRecord) -> None:
    """A text of several lines stands below the tables, and a cell of a table has one line."""
    details: dict[str, Any] = {
        "error": "first\nsecond", "out": {"n1": "one\ntwo"}, "left": ["three\nfour"], "rows": [{"text": "five\nsix"}],
    }  # fmt: skip
    part = Part(name="own", verdict=Verdict.UNKNOWN, reason="Wrong.\nVery.", details=details)
    text = printed(replace(valid_record, parts=[part]))
    assert "\\n" not in text
    for expected in ("error:\n    first\n    second\n", "one two", "three four", "five six"):
        assert expected in text


def test_a_long_recovery_has_a_bounded_table(stuck: RunRecord, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows are evenly spread, the last poll is one of them, and the number of others is told."""
    monkeypatch.setattr(module, "MAX_POLLS", 5)
    (piece,) = evidence(stuck)
    table, *_ = piece.tables
    assert len(table.rows) <= 6
    assert table.rows[-1][0] == "100.0 s"
    assert table.left_out == 26 - len(table.rows)
    assert f"{table.left_out} more rows" in printed(stuck)


def test_a_run_without_positions_has_no_table_of_them(stuck: RunRecord) -> None:
    """Its system reports none."""
    (piece,) = evidence(replace(stuck, positions=Positions()))
    assert not any(table.title.startswith("Entries") for table in piece.tables)


DIFFERENCE = Replicas(
    applied={"n1": 7, "n2": 7}, compared={7: ["n1", "n2"]}, keys=2, differing_keys=1,
    differing=[Difference(applied_index=7, key="k3", values={"n1": 5, "n2": 6})],
)  # fmt: skip


def test_other_parts_show_the_data_of_their_sentence(valid_record: RunRecord, tmp_path: Path) -> None:
    """Replicas that differ, fatal lines, untyped errors, and any part of a plug-in."""
    log = tmp_path / "node.log"
    log.write_text("fine\nOutOfMemoryError: heap\n")
    failed = replace(valid_record.operations[0], error="exception: KeyError")
    own = Part(
        name="own",
        verdict=Verdict.INVALID,
        reason="Wrong.",
        details={"lost": [[1, 2], [3]], "deep": {"a": {"b": [{}]}}},
    )
    run = replace(
        valid_record,
        parts=[
            replicas_equal(DIFFERENCE),
            log_patterns({"n1": [log]}, ["OutOfMemoryError"], ["n1"]),
            client_errors([failed]),
            own,
        ],
    )
    assert [piece.part for piece in evidence(run)] == ["replicas-equal", "log-patterns", "own", "client-errors"]
    text = printed(run)
    for expected in (
        "k3",
        '{"n1": 5, "n2": 6}',
        "OutOfMemoryError: heap",
        "exception: KeyError",
        "1, 2",
        "[{}]",
    ):
        assert expected in text


def test_two_leaders_show_their_reports(valid_record: RunRecord) -> None:
    """Each report has its node, its term and its polls."""
    claims = [Sighting(time_ns=number * S, node=f"n{number}", role="leader", term=0) for number in (1, 2)]
    part = Part(name=ONE_LEADER, verdict=Verdict.INVALID, reason="Two.", extra=True)
    (piece,) = evidence(replace(valid_record, parts=[part], sightings=claims))
    assert piece.tables[0].rows == [("0", "n1", "1.0 s", "1.0 s"), ("0", "n2", "2.0 s", "2.0 s")]


def test_valid_parts_and_counterexamples_have_no_evidence(valid_record: RunRecord, stale_record: RunRecord) -> None:
    """A counterexample has its own story."""
    assert evidence(valid_record) == []
    assert "linearizable" not in [piece.part for piece in evidence(stale_record)]


def test_foreign_details_stay_small_text(valid_record: RunRecord) -> None:
    """The details of a part may be anything, and of any size."""
    details: dict[str, Any] = {
        HOSTILE: HOSTILE * 10_000, "list": [HOSTILE] * 10_000, "maps": [{HOSTILE: 1}] * 10_000,
        **{f"many{number}": [{}] for number in range(50)}, "restarted_s": "soon",
        "from_s": True, "first_error": HOSTILE * 9_999,
    }  # fmt: skip
    parts = [Part(name=name, verdict=Verdict.INVALID, reason=HOSTILE, details=details) for name in ("x", "recovered")]
    run = replace(valid_record, parts=parts)
    text = printed(run)
    assert "\x1b[31m\u202e" not in text
    assert len(text) < 100_000
    page = render(run, {**build(run), "parts": {}}, drawn={}, logs=[])
    assert "<script>\\x1b" not in page


def test_the_report_and_explain_show_the_evidence(
    stuck: RunRecord, valid_record: RunRecord, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The exit code is 0 for an invalid run, and 2 if there is no violation."""
    for record, code in ((stuck, ExitCode.VALID), (valid_record, ExitCode.UNKNOWN)):
        run = store_run(Store(tmp_path), replace(record, operations=record.operations[:50]))
        with pytest.raises(SystemExit) as ended:
            cli.main(["explain", str(run.path)])
        assert ended.value.code == code
        said = capsys.readouterr().out
        expected = "polls had seen it at 101 since 30.0 s" if record is stuck else "no violation to explain"
        assert expected in " ".join(said.split())
        assert ("polls had seen it at 101" in run.report_html.read_text()) == (record is stuck)
        assert json.loads(run.results_json.read_text())["parts"]
