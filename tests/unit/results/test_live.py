"""The live view counts each whole line once, for any growth and any content of the file."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.event_lines import MAX_LINE_BYTES
from results.live.tail import MAX_SECONDS, Tail, refusals_of, run_state, suite_state
from results.store.store import Run, Store, point
from tests.unit.results.stored import suite_document

if TYPE_CHECKING:
    from pathlib import Path

    from results.record.record import RunRecord


def line(**fields: Any) -> bytes:
    """Returns an event's line."""
    return json.dumps({"index": 0, "time": 0, "f": "read", "value": None, "process": 0, **fields}).encode() + b"\n"


def test_it_counts_what_the_record_counts(stored_run: Run, stale_record: RunRecord) -> None:
    """The state after the whole history: the same operations, none open, all faults healed."""
    tail = Tail(stored_run.history_jsonl)
    tail.read()
    state = tail.state()
    assert sum(state["counts"].values()) == len(stale_record.operations)
    assert (state["faults"], state["past"], state["open"], state["strange"]) == ([], len(stale_record.faults), 0, 0)
    assert sum(sum(row[1:]) for row in state["rates"]) == len(stale_record.operations)
    assert 0 < state["p50_ms"] < state["p99_ms"]


@given(st.lists(st.integers(1, 4000), max_size=30))
def test_reading_in_pieces_is_reading_at_once(
    stored_run: Run, tmp_path_factory: pytest.TempPathFactory, pieces: list[int]
) -> None:
    """A torn line is read once it is complete."""
    data = stored_run.history_jsonl.read_bytes()[:60_000]
    path = tmp_path_factory.getbasetemp() / "growing.jsonl"
    tail, at = Tail(path), 0
    path.write_bytes(b"")
    for piece in [*pieces, len(data)]:
        with path.open("ab") as file:
            file.write(data[at : at + piece])
        at += piece
        tail.read()
    whole = Tail(path)
    whole.read()
    assert tail.state() == whole.state()


def test_faults_come_and_go(tmp_path: Path) -> None:
    """A fault that is on is shown with its targets, until it is healed."""
    path = tmp_path / "history.jsonl"
    start = {"process": "nemesis", "type": "info", "f": "start-kill", "value": {"fault": 0, "targets": ["n1"]}}
    path.write_bytes(line(**start) * 2)
    tail = Tail(path)
    tail.read()
    assert tail.state()["faults"] == [{"kind": "kill", "targets": ["n1"]}]
    with path.open("ab") as file:
        file.write(line(**{**start, "f": "stop-kill"}) * 2)
    tail.read()
    assert (tail.state()["faults"], tail.state()["past"]) == ([], 1)


@given(
    st.lists(
        st.binary(max_size=40).filter(lambda data: b"\n" not in data)
        | st.sampled_from([b"{}", b"[1]", b'{"time": -1}', b"[" * 100_000])
    )
)
def test_nonsense_is_counted_and_passed_over(tmp_path_factory: pytest.TempPathFactory, lines: list[bytes]) -> None:
    """The view survives any content."""
    path = tmp_path_factory.getbasetemp() / "odd.jsonl"
    path.write_bytes(b"".join(data + b"\n" for data in lines) + line(type="invoke") + line(type="ok", time=5))
    tail = Tail(path)
    tail.read()
    assert tail.state()["counts"]["ok"] == 1


@pytest.mark.parametrize(
    "event",
    [
        {"type": "ok", "time": 10**400},
        {"type": "invoke", "time": 1, "scheduled": -(10**400)},
        {"type": "invoke", "time": 1, "process": 2**63},
        {"type": "ok", "time": True},
    ],
)
def test_numbers_beyond_any_run_are_no_events(tmp_path: Path, event: dict[str, Any]) -> None:
    """A line whose numbers no reader of a history takes is counted, and the state of the others is shown."""
    path = tmp_path / "history.jsonl"
    path.write_bytes(line(**event) + line(type="invoke", time=5) + line(type="ok", time=7))
    tail = Tail(path)
    tail.read()
    state = json.loads(json.dumps(tail.state(), allow_nan=False))
    assert (state["seconds"], state["counts"]["ok"], state["open"], state["strange"]) == (7e-9, 1, 0, 1)


@pytest.mark.parametrize("characters", [MAX_LINE_BYTES - 200, MAX_LINE_BYTES, 2 * MAX_LINE_BYTES + 5])
def test_a_long_line_does_not_stop_the_view(tmp_path: Path, characters: int) -> None:
    """The view reads each line that a history may have. It passes over a longer one, and counts it once."""
    path = tmp_path / "history.jsonl"
    long = line(type="invoke", process=1, value="x" * characters)
    path.write_bytes(long + line(type="invoke", time=5) + line(type="ok", time=7))
    tail = Tail(path)
    for _ in range(5):
        tail.read()
    state = tail.state()
    fits = len(long) <= MAX_LINE_BYTES
    assert (state["seconds"], state["counts"]["ok"]) == (7e-9, 1)
    assert (state["open"], state["strange"]) == (int(fits), int(not fits))


def test_a_long_line_that_still_grows_is_waited_for(tmp_path: Path) -> None:
    """A line is too long once it has passed the limit, and not because its end has not been written yet."""
    path = tmp_path / "history.jsonl"
    long = line(type="invoke", process=1, value="x" * (MAX_LINE_BYTES - 200))
    path.write_bytes(long[:-9])
    tail = Tail(path)
    tail.read()
    with path.open("ab") as file:
        file.write(long[-9:])
    tail.read()
    assert (tail.state()["open"], tail.state()["strange"]) == (1, 0)


def test_a_long_run_stays_small(tmp_path: Path) -> None:
    """Only the last quarter of an hour of rates is kept."""
    path = tmp_path / "history.jsonl"
    path.write_bytes(b"".join(line(type="fail", time=second * 10**9) for second in range(2 * MAX_SECONDS)))
    tail = Tail(path)
    tail.read()
    assert len(tail.state()["rates"]) == MAX_SECONDS
    assert tail.state()["rates"][-1][0] == 2 * MAX_SECONDS - 1


def test_refusals_are_counted_apart(tmp_path: Path) -> None:
    """A node that names the leader is no failure of the system; a damaged `test.json` names no refusals."""
    run = Run(tmp_path)
    run.history_jsonl.write_bytes(
        line(type="fail", error="not-leader: ask n2") + line(type="fail", error="cas: differs")
    )
    for document, apart in (({"refusals": ["not-leader", 3]}, 1), ({"refusals": 3}, 0), ([], 0)):
        run.write_json(run.test_json, document)
        tail = Tail(run.history_jsonl, refusals_of(run))
        tail.read()
        assert (tail.state()["counts"]["refused"], tail.state()["counts"]["fail"]) == (apart, 2 - apart)
        assert tail.state()["rates"] == [[0, 0, 0, 2 - apart, apart]]


def test_a_history_that_is_not_there_yet_is_empty(tmp_path: Path) -> None:
    """The view may be open before the run writes its first line."""
    tail = Tail(tmp_path / "history.jsonl")
    tail.read()
    assert tail.state()["seconds"] == 0


def test_a_suite_that_goes_on_is_shown_case_by_case(tmp_path: Path) -> None:
    """A suite's done, running and waiting cases. A damaged file and a link out of the store show no suite."""
    store = Store(tmp_path)
    assert suite_state(store) is None
    folder = tmp_path / "suites" / "s" / "20260729T000000.000Z"
    folder.mkdir(parents=True)
    point(tmp_path / "suites" / "current", folder)
    assert suite_state(store) is None
    document = suite_document()
    (folder / "suite.json").write_text(json.dumps(document))
    state = suite_state(store)
    assert (state["name"], state["done"], state["total"]) == ("s", 2, 4)
    assert [case["state"] for case in state["cases"]] == ["passed", "failed", "running", "waiting"]
    for text in ("[]", "{", json.dumps({**document, "results": {"a": 3}}), json.dumps({**document, "cases": 3})):
        (folder / "suite.json").write_text(text)
        assert suite_state(store) is None
    point(tmp_path / "suites" / "current", tmp_path.parent)
    assert suite_state(store) is None


def test_a_run_says_who_leads(tmp_path: Path) -> None:
    """Its file may be missing or have any content."""
    run = Run(tmp_path)
    silent = {"phase": None, "leader": None, "term": None}
    assert run_state(run) == silent
    run.live_json.write_text('{"phase": "workload", "leader": "n2", "term": 7}')
    assert run_state(run) == {"phase": "workload", "leader": "n2", "term": 7}
    run.live_json.write_text('{"phase": "workload", "leader": "n2", "term": true}')
    assert run_state(run)["term"] is None
    run.live_json.write_text('{"phase": 3, "leader": [], "term": "7"}')
    assert run_state(run) == silent
