"""Lines of the nodes' logs stand beside the operations, at the time of the run, or the page says why they do not."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from harness.node_clocks import Clocks, NodeClock
from harness.units import NS_PER_S as S
from harness.verdict import Verdict
from results.logs import lines as module
from results.logs.lines import LogLine, Logs, read_logs, spans_of
from results.logs.times import UNKNOWN
from results.page.report import render
from results.page.story import LOG, scene_of, story
from results.record.counterexample import counterexamples_of
from results.store.errors import BadRecord
from results.store.store import Run, Store
from results.stored.document import build
from results.stored.load import load_record
from results.stored.reading import observations_from
from tests.unit.results.stored import store_run
from tests.unit.results.test_evidence import STUCK

if TYPE_CHECKING:
    from pathlib import Path

    from results.record.record import RunRecord

BEGAN = datetime(2026, 1, 31, 10, 0, 0, tzinfo=UTC)
EXACT = NodeClock(offset_ns=0, uncertain_ns=1_000_000, zone_s=0)


def clocks(**nodes: NodeClock) -> Clocks:
    """Returns the clocks of some nodes."""
    return Clocks(began_utc=BEGAN, nodes=nodes)


def write(folder: Path, node: str, *lines: tuple[float, str], file: str = "node.log") -> Run:
    """Writes a log whose lines have times of the run; returns the run's folder."""
    path = folder / "nodes" / node / file
    path.parent.mkdir(parents=True, exist_ok=True)
    stamped = [f"{BEGAN + timedelta(seconds=at_s):%Y-%m-%d %H:%M:%S.%f} {text}\n" for at_s, text in lines]
    path.write_text("".join(stamped), encoding="utf-8")
    return Run(folder)


def test_a_line_has_the_time_of_the_run(valid_record: RunRecord, tmp_path: Path) -> None:
    """Offset and zone of the node's clock are taken into account. An offset within the uncertainty may be none."""
    run = write(tmp_path, "n1", (7200 + 12.25, "INFO n1 became leader in term 3"))
    write(tmp_path, "n2", (13.5, "INFO n2 follows n1"))
    ahead = NodeClock(offset_ns=2 * S, uncertain_ns=1_000_000, zone_s=7200)
    unsure = NodeClock(offset_ns=900_000, uncertain_ns=1_000_000, zone_s=0)
    record = replace(valid_record, clocks=clocks(n1=ahead, n2=unsure))
    logs = read_logs(run, record, [(11 * S, 12 * S)])
    assert [(line.time_ns, line.node, line.text) for line in logs.lines] == [
        (10_250_000_000, "n1", "INFO n1 became leader in term 3"),
        (13_500_000_000, "n2", "INFO n2 follows n1"),
    ]
    assert logs.notes == []


def test_only_lines_that_tell_something_are_read(valid_record: RunRecord, tmp_path: Path) -> None:
    """A system names telling texts; then their lines are read wherever they are. Otherwise lines near a violation are."""
    run = write(
        tmp_path,
        "n1",
        (1.0, "became leader"),
        (50.0, "heartbeat"),
        (51.0, "became follower"),
        (52.0, "\tat x.y(Z.java)"),
    )
    (tmp_path / "nodes" / "n1" / "trace.log").write_text("java.lang.Error\n\tat a.b\n")
    record = replace(valid_record, clocks=clocks(n1=EXACT))
    near = [(49 * S, 50 * S)]
    assert [line.text for line in read_logs(run, record, near).lines] == [
        "heartbeat",
        "became follower",
        "at x.y(Z.java)",
    ]
    told = replace(record, test=replace(record.test, log_texts=("became",)))
    assert [line.text for line in read_logs(run, told, near).lines] == ["became leader", "became follower"]
    assert [line.text for line in read_logs(run, told, near).near(near)] == ["became follower"]


def test_lines_that_differ_in_numbers_become_one(valid_record: RunRecord, tmp_path: Path) -> None:
    """A node that repeats a line a thousand times a second does not hide the others."""
    repeated = [(10 + number / 1000, f"Reset write index to {number}") for number in range(900)]
    run = write(tmp_path, "n1", *repeated, (10.95, "became follower"), (30.0, "Reset write index to 7"))
    record = replace(valid_record, clocks=clocks(n1=EXACT))
    lines = read_logs(run, record, [(9 * S, 31 * S)]).lines
    assert [line.text for line in lines] == ["Reset write index to 0", "became follower", "Reset write index to 7"]
    more = "899 more lines like this until 10.899 s, the last: Reset write index to 899"
    assert lines[0].shown == f"n1 logs: Reset write index to 0 ({more})"


def test_two_lines_that_differ_in_numbers_stay_two(valid_record: RunRecord, tmp_path: Path) -> None:
    """The number is often the term: the second election of a node must not vanish behind the first one."""
    run = write(tmp_path, "n1", (10.0, "leads term 2"), (11.0, "follows"), (12.0, "leads term 4"))
    record = replace(valid_record, clocks=clocks(n1=EXACT))
    lines = read_logs(run, record, [(9 * S, 13 * S)]).lines
    assert [(line.time_ns // S, line.shown) for line in lines] == [
        (10, "n1 logs: leads term 2"),
        (11, "n1 logs: follows"),
        (12, "n1 logs: leads term 4"),
    ]


def test_lines_about_other_nodes_stay_apart(valid_record: RunRecord, tmp_path: Path) -> None:
    """The number in a name is no number: two votes of a node in one term are what a reader looks for."""
    votes = ["votes for n1 in term 5", "votes for n2 in term 5", "votes for n1 in term 6", "votes for n2 in term 7"]
    run = write(tmp_path, "n3", *((10 + index / 10, text) for index, text in enumerate(votes)))
    lines = read_logs(run, replace(valid_record, clocks=clocks(n3=EXACT)), [(9 * S, 11 * S)]).lines
    assert [line.text for line in lines] == votes


@pytest.mark.parametrize("batch", [1, 3, 256])
def test_reading_in_batches_changes_nothing(
    valid_record: RunRecord, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, batch: int
) -> None:
    """Times of a repeated line are read in batches; a pause within a batch still ends a group."""
    monkeypatch.setattr(module, "BATCH", batch)
    times_s = [1.0, 1.1, 1.2, 1.3, 9.0, 9.1, 9.2, 30.0, 31.0, 32.0, 33.0]
    run = write(tmp_path, "n1", *((at_s, f"retry {index}") for index, at_s in enumerate(times_s)))
    record = replace(valid_record, clocks=clocks(n1=EXACT), test=replace(valid_record.test, log_texts=("retry",)))
    lines = read_logs(run, record, []).lines
    assert [(line.text, line.more, line.last_ns // 10**8) for line in lines] == [
        ("retry 0", 3, 13),
        ("retry 4", 2, 92),
        ("retry 7", 3, 330),
    ]


def test_what_is_uncertain_or_missing_is_said(
    valid_record: RunRecord, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An unknown clock, a clock that a fault changed, a log that is too long, a link, and a run of an earlier version."""
    run = write(tmp_path, "n1", *((number, f"line {number} {'x' * 90}") for number in range(20)))
    write(tmp_path, "n2", (1.0, "secret"))
    (tmp_path / "nodes" / "n1" / "link.log").symlink_to(tmp_path / "nodes" / "n2" / "node.log")
    fault = valid_record.faults[0]
    skewed = replace(fault, planned=replace(fault.planned, kind="clock-skew"), targets=("n1",))
    told = Clocks(began_utc=BEGAN, nodes={"n1": EXACT}, unknown={"n2": "no route to host"})
    monkeypatch.setattr(module, "MAX_BYTES", 1000)
    logs = read_logs(run, replace(valid_record, clocks=told, faults=[skewed]), [(0, 99 * S)])
    assert logs.notes[0] == "The clock of n2 is unknown: no route to host"
    assert logs.notes[1] == "A fault changed the clock of n1, so the times of its log may be wrong."
    assert any("link.log of n1 was not read" in note for note in logs.notes)
    assert any(note.startswith("Only the first 1,") for note in logs.notes)
    assert "secret" not in str(logs.lines)
    assert read_logs(run, valid_record, [(0, S)]).notes == [UNKNOWN]
    simulated = replace(valid_record, test=replace(valid_record.test, options={"cluster_kind": "sim"}))
    assert UNKNOWN not in read_logs(run, simulated, [(0, S)]).notes


def test_a_log_without_lines_or_with_long_ones_is_bounded(valid_record: RunRecord, tmp_path: Path) -> None:
    """A foreign log may be one line of megabytes, or not be text."""
    run = write(tmp_path, "n1", (1.0, "\x1b[31m" + "y" * 100_000), (1.5, "later"))
    (tmp_path / "nodes" / "n1" / "odd.log").write_bytes(bytes(range(256)) * 1000)
    logs = read_logs(run, replace(valid_record, clocks=clocks(n1=EXACT)), [(0, 2 * S)])
    assert [len(line.text) < 300 for line in logs.lines] == [True, True]
    assert "\x1b" not in str(logs.lines[0].text)


def test_the_log_of_a_simulated_node_has_the_time_of_its_world(valid_record: RunRecord, tmp_path: Path) -> None:
    """The workload began when the world was 1.5 s old. The transcript of a program is no log."""
    folder = tmp_path / "nodes" / "n1"
    folder.mkdir(parents=True)
    (folder / "node.log").write_text("0.000000 start 1\n3.750000 leads term 2\n  at x\n9.5 short\n")
    (folder / "messages.log").write_text('3.750000 > {"body": {}}\n')
    record = replace(
        valid_record, test=replace(valid_record.test, options={"cluster_kind": "sim"}), timings={"world": 1.5}
    )
    logs = read_logs(Run(tmp_path), record, [(2 * S, 3 * S)])
    assert [(line.time_ns, line.shown) for line in logs.lines] == [(2_250_000_000, "n1 logs: leads term 2")]


def test_lines_stand_beside_the_operations(stale_record: RunRecord, tmp_path: Path) -> None:
    """In the story, in the picture, in the timeline, and on the page of the key."""
    example = counterexamples_of(stale_record, "")[0]
    first_s = example.operations[0].start_ns / S
    began = BEGAN - timedelta(0)
    run = store_run(
        Store(tmp_path),
        replace(stale_record, clocks=Clocks(began_utc=began, nodes=dict.fromkeys(stale_record.test.nodes, EXACT))),
    )
    write(run.path, "n3", (first_s - 0.5, "<b>n3 became candidate"))
    record = load_record(run)
    logs = read_logs(run, record, spans_of(example))
    moments = story(scene_of(example), record, (), logs.near(spans_of(example)))
    (told,) = [moment for moment in moments if moment.kind == LOG]
    assert (told.text, told.nodes) == ("n3 logs: <b>n3 became candidate.", ("n3",))
    page = render(record, build(record), drawn={}, logs=[], lines=logs)
    assert "n3 logs: &lt;b&gt;n3 became candidate." in page
    start = page.index(">", page.index('id="data"')) + 1
    data: dict[str, Any] = json.loads(page[start : page.index("</script>", start)])
    ((time_us, node, text),) = data["logs"]
    assert (data["nodes"][node], text) == ("n3", "<b>n3 became candidate")
    assert abs(time_us - (first_s - 0.5) * 1e6) < 10


def test_a_system_that_did_not_recover_shows_its_logs(valid_record: RunRecord, tmp_path: Path) -> None:
    """The evidence of the part has the lines of its time."""
    run = write(tmp_path, "n1", (61.0, "Reset write index to 101"))
    record = replace(valid_record, parts=[STUCK], clocks=clocks(n1=EXACT))
    logs = read_logs(run, record, [(60 * S, 90 * S)])
    assert record.parts[0].verdict is Verdict.INVALID
    positions = replace(record.positions, time_ns=[60 * S, 90 * S], applied={"n1": [1, 1]})
    page = render(replace(record, positions=positions), build(record), drawn={}, logs=[], lines=logs)
    assert "n1 logs: Reset write index to 101" in page


def test_the_clocks_are_read_as_they_were_written(valid_record: RunRecord) -> None:
    """A damaged document is refused."""
    record = replace(valid_record, clocks=Clocks(began_utc=BEGAN, nodes={"n1": EXACT}, unknown={"n2": "lost"}))
    document = json.loads(json.dumps(build(record)))
    assert observations_from(document).clocks == record.clocks
    assert observations_from({**document, "clocks": None}).clocks is None
    far: dict[str, Any] = {**document["clocks"], "nodes": {"n1": {"zone_s": 10**9}}}
    listed: list[Any] = ["soon", [], {"began_utc": "soon", "nodes": {}, "unknown": {}}, far]
    for damaged in listed:
        with pytest.raises(BadRecord):
            observations_from({**document, "clocks": damaged})


def test_of_too_many_lines_within_a_time_the_last_ones_are_shown() -> None:
    """They tell how the violation came about; lines in the first seconds of a long run do not."""
    lines = [LogLine(time_ns=at, node="n1", text=str(at)) for at in range(100)]
    logs = Logs(lines=lines)
    assert [line.time_ns for line in logs.near([(0, 90)], most=3)] == [88, 89, 90]
    assert [line.time_ns for line in logs.near([(0, 20), (60, 90)], most=2)] == [20, 90]
