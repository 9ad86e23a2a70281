"""A part that compares nodes shows what happened at its time; each violation what nodes logged since their last start."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rich.console import Console

from checker.linearizable import ORDER_PART, linearizability
from harness.about import MEMBER, about_operations, read_about
from harness.faults import Proof
from harness.indexes import Indexes, raft_invariants
from harness.op import OpType
from harness.reached import progress
from harness.recovery import Recovery
from harness.service import NodeStatus
from harness.states import one_leader_per_term, replicas_equal
from harness.units import NS_PER_S as S
from harness.verdict import Part, Verdict
from harness.watch import Sighting
from results.logs.lines import LogLine, Logs, read_logs
from results.logs.since_start import since_start
from results.logs.starts import is_severe, starts_of
from results.page.evidence import WHOLE_RUN, evidence
from results.page.report import render
from results.page.story import FAULT, LOG, OPERATION, POLL, story
from results.page.story_text import print_evidence, print_since
from results.stored.document import build
from tests.unit.results.test_evidence import DIFFERENCE
from tests.unit.results.test_log_lines import EXACT, clocks, write
from tests.unit.results.test_losses import fault, op, placed

if TYPE_CHECKING:
    from pathlib import Path

    from results.record.record import RunRecord

PROMISE = "A term has one leader."
SEEN = (
    Sighting(time_ns=0, node="n1", role="leader", term=8, until_ns=4 * S),
    Sighting(time_ns=5 * S, node="n1", role=None, until_ns=5 * S),
    Sighting(time_ns=0, node="n2", role="follower", term=8, leader="n1", until_ns=5 * S),
    Sighting(time_ns=6 * S, node="n2", role="leader", term=9, until_ns=6 * S),
    Sighting(time_ns=7 * S, node="n1", role="leader", term=9, until_ns=8 * S),
    Sighting(time_ns=0, node="n3", role="follower", term=8, leader="n1", until_ns=9 * S),
)
POWER = fault("power-loss", 4, 5.5, ["n1"], "n1 lost power", vanished=["n1"])


def rivals_of(record: RunRecord) -> RunRecord:
    """Returns a run with two leaders of term 9."""
    return replace(record, parts=[one_leader_per_term(SEEN, PROMISE)], sightings=SEEN, faults=[POWER], operations=[])


def test_two_leaders_of_a_term_have_a_story(valid_record: RunRecord) -> None:
    """It has the faults, what the nodes reported until both led, and the lines of their logs, in the order of time."""
    run = rivals_of(valid_record)
    (piece,) = evidence(run)
    assert piece.scene is not None
    assert piece.scene.nodes == ("n2", "n1")
    vote = LogLine(time_ns=6 * S + 500_000_000, node="n1", text="votes for itself in term 9")
    moments = story(piece.scene, run, (), [vote])
    assert [moment.time_ns for moment in moments] == sorted(moment.time_ns for moment in moments)
    assert {moment.kind for moment in moments} == {FAULT, POLL, LOG}
    texts = [moment.text for moment in moments]
    assert "power-loss (fault 4) begins on n1." in texts
    assert "n1 did not answer (in polls)." in texts
    assert texts.index("n1 logs: votes for itself in term 9.") < texts.index(
        "n1 reported that it was the leader in term 9 (in polls until 8.000000 s)."
    )
    assert not any(text.startswith("n3") for text in texts)  # it neither led nor is it part of the violation
    page = render(run, build(run), drawn={}, logs=[], lines=Logs(lines=[vote]))
    assert "n1 logs: votes for itself in term 9." in page
    out = io.StringIO()
    print_evidence(Console(file=out, width=200), piece, moments)
    assert "What happened around it, in order:" in out.getvalue()


def test_a_log_that_lost_entries_is_about_two_polls() -> None:
    """The node and the time of the first case; and no table shows them again."""
    indexes = Indexes()
    indexes.note(NodeStatus(node="n2", role="follower", committed_index=9, last_index=9), "n2", 1 * S, 2 * S)
    indexes.note(NodeStatus(node="n2", role="follower", committed_index=9, last_index=7), "n2", 3 * S, 4 * S)
    part = raft_invariants(indexes, PROMISE, [], None)
    assert part.verdict is Verdict.INVALID
    about = read_about(part.details)
    assert about is not None
    assert (about.from_ns, about.to_ns, about.nodes) == (1 * S, 4 * S, ("n2",))


def test_replicas_that_differ_have_the_writes_of_their_values(valid_record: RunRecord) -> None:
    """The operations that wrote what the replicas hold, without failed ones, and the nodes that differ."""
    operations = placed(
        [
            op(1, "write", 5, key="k3", node="n1"),
            op(2, "cas", [5, 6], key="k3", node="n2"),
            replace(op(3, "write", 6, key="k3"), type=OpType.FAIL),
            op(4, "write", 6, key="k9"),
        ]
    )
    part = replicas_equal(replace(DIFFERENCE, from_ns=60 * S, seconds=2.0))
    (piece,) = evidence(replace(valid_record, parts=[part], operations=operations))
    assert piece.scene is not None
    assert [operation.start_ns // S for operation in piece.scene.operations] == [1, 2]
    assert piece.scene.nodes == ("n1", "n2")
    assert piece.scene.to_ns == 62 * S
    moments = story(piece.scene, replace(valid_record, parts=[part], operations=operations))
    assert sum(moment.kind == OPERATION for moment in moments) == 4


def test_an_order_that_is_not_legal_names_its_operations(valid_record: RunRecord) -> None:
    """The two operations that the order puts against real time are the story."""
    operations = placed([op(1, "write", 1, order=2), op(3, "write", 2, order=1)])
    parts = linearizability("cas-register", operations)
    (piece,) = [
        piece_of_run
        for piece_of_run in evidence(replace(valid_record, parts=parts, operations=operations))
        if piece_of_run.part == ORDER_PART
    ]
    assert piece.scene is not None
    assert len(piece.scene.operations) == 2


def test_a_part_about_operations_names_them(valid_record: RunRecord) -> None:
    """A part of a workload has the operations of its sentence."""
    answers = [op(1, "state", None, {"master_epoch": 3}), op(3, "state", None, {"master_epoch": 2})]
    operations = placed([replace(answer, f="read", result=answer.result) for answer in answers])
    part = Part.of("epochs-grow", held="", broken="An epoch went back.", about=about_operations(operations))
    assert part.verdict is Verdict.INVALID
    (piece,) = evidence(replace(valid_record, parts=[part], operations=operations))
    assert piece.scene is not None
    assert [operation.invoke_index for operation in piece.scene.operations] == [0, 2]
    assert about_operations([]) is None


def test_what_a_part_is_about_may_be_anything() -> None:
    """The details of a part may come from anyone."""
    for odd in (None, 3, {}, {"from_s": -1, "to_s": 2}, {"from_s": 3, "to_s": 2}, {"from_s": "a", "to_s": 1e300}):
        assert read_about({MEMBER: odd}) is None
    about = read_about({MEMBER: {"from_s": 1, "to_s": 2, "nodes": [1, "n1"], "events": ["x", True, 7]}})
    assert about is not None
    assert (about.nodes, about.events) == (("n1",), (7,))


# -- since the last start ------------------------------------------------------------------------------------------------------


def test_warnings_since_the_last_start_are_shown_whatever_the_time_between(
    valid_record: RunRecord, tmp_path: Path
) -> None:
    """A node that lost its power tells what it loaded; a warning a minute before a violation belongs to it."""
    run = write(
        tmp_path, "n1", (1.0, "ERROR before the loss"), (4.1, "WARN dies"), (5.0, "start"), (5.1, "loaded term 0, no vote"),
        *((5.2 + number / 10, f"step {chr(97 + number)}") for number in range(6)), (9.0, "WARN index was rebuilt"),
        (200.0, "ERROR after the violation"),
    )  # fmt: skip
    write(tmp_path, "n2", (2.0, "ERROR since the start of the run"), (3.0, "fine"))
    record = replace(valid_record, clocks=clocks(n1=EXACT, n2=EXACT), faults=[POWER])
    record = replace(record, test=replace(record.test, nodes=("n1", "n2"), log_texts=("elected",)))
    logs = read_logs(run, record, [(98 * S, 99 * S)])
    assert logs.lines == []
    first, second = since_start(record, logs.since, 100 * S)
    assert first.title == "n1: first lines and warnings and errors since its start after power-loss (fault 4)"
    assert [line.text for line in first.first] == [
        "start",
        "loaded term 0, no vote",
        "step a",
        "step b",
        "step c",
        "step d",
    ]
    assert [line.text for line in first.severe] == ["WARN index was rebuilt"]
    assert second.title == "n2: warnings and errors since the start of the run"
    assert [line.text for line in second.severe] == ["ERROR since the start of the run"]
    (alone,) = since_start(record, logs.since, 3 * S)[:1]
    assert [line.text for line in alone.severe] == ["ERROR before the loss"]
    out = io.StringIO()
    print_since(Console(file=out, width=200), [first])
    assert "5.100000 s n1 logs: loaded term 0, no vote" in out.getvalue()


def test_many_warnings_are_bounded_and_told(valid_record: RunRecord, tmp_path: Path) -> None:
    """The last ones are shown, and the number of the others; lines that differ in a number count as one."""
    warnings = [(10.0 + number * 6, f"WARN {chr(97 + number)}") for number in range(12)]
    run = write(tmp_path, "n1", *warnings, *((81.0 + number / 100, f"WARN retry {number}") for number in range(50)))
    record = replace(valid_record, clocks=clocks(n1=EXACT), faults=[])
    (since,) = since_start(record, read_logs(run, record, [(99 * S, 100 * S)]).since, 100 * S)
    assert len(since.severe) == 8
    assert since.left_out == 5
    assert since.title.endswith("since the start of the run, without 5 earlier ones")
    assert since.severe[-1].more == 49


def test_a_restart_by_labrys_is_a_start(valid_record: RunRecord) -> None:
    """And so is the end of each fault that ended the process of the node; one that hit another node is none."""
    recovery = Recovery(
        seconds=1.0, restarted=True, first_error="late", error=None, quorum=2, nodes=3, from_s=60.0, restarted_s=90.0
    )
    part = Part(name="recovered", verdict=Verdict.INVALID, reason="No.", details={"restarted_s": recovery.restarted_s})
    record = replace(
        valid_record, parts=[part], faults=[POWER, replace(POWER, proof=Proof(effective=False, reason="No."))]
    )
    assert [start.after_ns for start in starts_of(record, "n1")] == [4 * S + S // 2, 90 * S]
    assert [start.after_ns for start in starts_of(record, "n2")] == [90 * S]


def test_the_words_of_common_programs_for_trouble_are_known() -> None:
    """JSON, logfmt, klog, log4j, zerolog, NATS and plain programs; a name with such letters is none."""
    for line in (
        b"2026-01-01 INFO x\n", b"ERRORS_SEEN=0", b'{"level":"info","msg":"no error"}', b"errored", b"warning-free",
    ):  # fmt: skip
        assert not is_severe(line), line
    for line in (
        b"2026-01-01 WARN [main] x", b'{"level":"warn","msg":"slow"}', b"time=1 level=error msg=x", b"W0131 10:11:12.3 x",
        b"x [error] y", b"FATAL: the database", b"panic: runtime error", b'{"ts":1,"level": "fatal"}',
        b"[540] 2026/01/01 10:11:12.3 [WRN] x", b"10:11AM FTL x", b"10:11AM PNC x",
    ):  # fmt: skip
        assert is_severe(line), line


# -- unknown runs --------------------------------------------------------------------------------------------------------------


def test_an_unknown_run_shows_codes_and_reports(valid_record: RunRecord) -> None:
    """Which errors the clients met, from when to when, with an example; and what each node reported last."""
    failed: list[Any] = [
        replace(op(number, "write", number), type=OpType.FAIL, error=f"refused: by n{number}") for number in (1, 2)
    ]
    run = replace(valid_record, parts=[progress(failed, [], None)], operations=failed, sightings=SEEN)
    piece = evidence(run)[-1]
    assert (piece.part, piece.reason) == (WHOLE_RUN, "2 operations; 2 errors of the clients.")
    errors, reports = piece.tables
    assert list(errors.rows) == [("write", "refused", "2", "", "1.5 s", "2.5 s", "refused: by n2")]
    assert ("n2", "reported that it was the leader in term 9", "6.0 s", "6.0 s") in reports.rows
    assert [piece.part for piece in evidence(rivals_of(valid_record))] == ["one-leader-per-term"]
    assert "refused: by n2" in render(run, build(run), drawn={}, logs=[])
