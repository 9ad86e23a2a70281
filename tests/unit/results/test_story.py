"""The story of a violation in order of time: from a record, with the states of the nodes, and from someone else's folder."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from rich.console import Console

import results.page.story
from harness.counterexample import counterexample_of
from harness.faults import Fired, Trigger
from harness.node_states import DEAD, RUNNING, ClusterState, HeldEntry, NodeState
from harness.targets import AtTrigger
from results.live.terminal import print_summary
from results.page.story import differences, held, scene_of, story, times_of
from results.page.story_picture import picture
from results.page.story_text import print_story
from results.store.errors import BadRecord
from results.store.store import Run, Store
from results.stored.node_states import FILE, read_states, states_document
from tests.unit.results.stored import store_run
from tests.unit.results.synthetic import record

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from harness.counterexample import Counterexample
    from results.record.record import RunRecord

NODE = '{"format": "labrys-explain", "version": 2, "states": [{"time_ns": 1, "nodes": [{"node": "a", %s}]}]}'
HOSTILE = "<script>\x1b[31m\u202e"


def example_of(made: RunRecord) -> Counterexample:
    """Returns a counterexample of two operations that are far apart."""
    ended = [operation for operation in made.operations if operation.end_ns is not None]
    example = counterexample_of([ended[0], ended[-1]], explanation="Old.", culprit=ended[-1])
    assert example is not None
    return example


def state(time_ns: int, *, last: int, role: str = "leader", process: str = RUNNING) -> ClusterState:
    """Returns the state of one node whose log has an entry at each index."""
    entries = tuple(HeldEntry(index=index, term=1, text=f"write {index}") for index in range(1, last + 1))
    node = NodeState(
        node="n1",
        process=process,
        role=role,
        term=1,
        last=last,
        last_term=1,
        committed=last,
        value="5",
        entries=entries,
    )
    return ClusterState(time_ns=time_ns, nodes=(node,))


def test_the_story_is_in_the_order_of_time() -> None:
    """It has both ends of each operation, the active faults, and the leader. The culprit is marked once."""
    made = record(seed=7, operations=300)
    example = example_of(made)
    moments = story(scene_of(example), made)
    assert [moment.time_ns for moment in moments] == sorted(moment.time_ns for moment in moments)
    assert sum(moment.culprit for moment in moments) == 1
    assert {moment.kind for moment in moments} >= {"operation", "fault", "leader"}
    assert set(times_of(scene_of(example), made)) == {moment.time_ns for moment in moments}
    assert times_of(scene_of(example), made)[: len(example.operations)] == sorted(
        times_of(scene_of(example), made)[: len(example.operations)]
    )


def test_a_story_says_what_it_leaves_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """All operations are shown. The last sentence has the number of omitted events."""
    made = record(seed=7, operations=300)
    example = example_of(made)
    whole = story(scene_of(example), made)
    own = [moment for moment in whole if moment.kind == "operation"]
    monkeypatch.setattr(results.page.story, "MAX_MOMENTS", len(own) + 1)
    cut = story(scene_of(example), made)
    assert [moment for moment in cut if moment.kind == "operation"] == own
    assert cut[-1].text == f"{len(whole) - len(own) - 1} later faults and changes of the leader are left out."


def test_what_is_new_since_the_last_state() -> None:
    """A shorter log, lost entries, a role, and a dead process."""
    before, after = state(1, last=5), state(2, last=3, role="follower")
    assert differences(None, before) == []
    assert differences(before, after) == [
        "n1 is follower in term 1",
        "the log of n1 ends at 3, and ended at 5 before",
        "n1 has lost entry 4, write 4",
        "n1 has lost entry 5, write 5",
    ]
    assert "n1 has lost 2 more entries on the key" in differences(state(1, last=5), state(2, last=0))
    assert differences(before, state(2, last=5, process=DEAD)) == ["n1 is dead"]
    assert held(before.nodes[0])[:6] == ("n1", "leader", "1", "5 (term 1)", "5", "5")


def test_entries_that_diverge_are_told_once() -> None:
    """Only entries with the same index and term diverge. A node without the entry is not named."""

    def bookies(*held_entries: Sequence[HeldEntry]) -> ClusterState:
        nodes = [
            NodeState(node=f"n{number}", process=RUNNING, entries=tuple(entries))
            for number, entries in enumerate(held_entries, 1)
        ]
        return ClusterState(time_ns=1, nodes=tuple(nodes))

    old, new = HeldEntry(index=1, term=0, text="append B"), HeldEntry(index=1, term=0, text="append C")
    found = bookies([old], [new], [new], [])
    assert differences(None, found) == ["entry 1 diverges: n1 has append B, and n2 and n3 have append C"]
    assert differences(found, found) == []
    assert differences(None, bookies([old], [replace(new, term=2)])) == []
    many = [[HeldEntry(index=index, term=0, text=f"append {value}") for index in range(5)] for value in (1, 2)]
    assert differences(None, bookies(*many))[3:] == ["2 more entries diverge"]


def test_looks_are_read_as_they_were_written(tmp_path: Path) -> None:
    """A run without a counterexample has no story."""
    run = Run(tmp_path)
    assert read_states(run) == ()
    states = (state(0, last=-1), state(1_000_000, last=3), state(2_000_000, last=4))
    run.write_json(tmp_path / FILE, states_document(states))
    assert read_states(run) == states


@pytest.mark.parametrize(
    "document",
    [
        "[]", "no JSON", '{"format": "labrys-explain", "version": 1, "states": []}', "[" * 100_000,
        '{"format": "labrys-explain", "version": 2, "states": [{"time_ns": 1e400, "nodes": []}]}',
        NODE % '"process": 5',
        NODE % f'"process": "x", "term": {10**40}',
    ],
)  # fmt: skip
def test_damaged_looks_are_refused(tmp_path: Path, document: str) -> None:
    """The message names the file, and how to write it again."""
    (tmp_path / FILE).write_text(document)
    with pytest.raises(BadRecord, match=r"explain\.json cannot be used.*`labrys explain` writes it again"):
        read_states(Run(tmp_path))


def test_foreign_text_stays_text() -> None:
    """A node's name may be any text. The picture and the terminal show it as text."""
    made = record(seed=7, operations=300)
    example = example_of(made)
    node = NodeState(node=HOSTILE, process=HOSTILE, role=HOSTILE, value=HOSTILE, last=1)
    states = [ClusterState(time_ns=time_ns, nodes=(node,)) for time_ns in times_of(scene_of(example), made)]
    moments = story(scene_of(example), made, states)
    svg = picture(moments, [HOSTILE, *made.test.nodes])
    assert "<script>" not in svg
    out = io.StringIO()
    print_story(Console(file=out, markup=False), example, moments, reason=HOSTILE)
    assert "\x1b[31m\u202e" not in out.getvalue()


def test_what_fired_a_trigger_is_shown(tmp_path: Path) -> None:
    """The story, the report and the terminal have the line with which a fault began, as text and not too long."""
    made = record(seed=7, operations=300)
    trigger = Trigger(name="log-line", limit_s=5.0, parameters={"line": "snapshot"})
    line = f"with a log line of n1: 12:00:01 {HOSTILE} takes a snapshot {'x' * 5000}"
    faults = tuple(
        replace(
            fault,
            planned=replace(fault.planned, target=AtTrigger(), trigger=trigger),
            fired=Fired(time_ns=fault.start_ns, what=line, measured={"node": "n1"}),
        )
        for fault in made.faults
    )
    made = replace(made, faults=faults)
    begins = next(moment.text for moment in story(scene_of(example_of(made)), made) if moment.kind == "fault")
    assert ", with a log line of n1: 12:00:01 " in begins
    assert "\x1b" not in begins
    assert len(begins) < 600
    run = store_run(Store(tmp_path), made)
    page = run.report_html.read_text()
    assert "trigger: log-line:snapshot" in page
    assert "began with a log line of n1: 12:00:01 &lt;script&gt;" in page
    for width in (80, 400):
        out = io.StringIO()
        print_summary(
            Console(file=out, markup=False, width=width), json.loads(run.results_json.read_text()), report=None
        )
        assert "began with a log line of n1: 12:00:01 <script>" in " ".join(out.getvalue().split())
        assert "\x1b[31m" not in out.getvalue()


def test_a_report_shows_the_story(tmp_path: Path) -> None:
    """The page has the picture and the list. A damaged `explain.json` does not lose the verdict."""
    run = store_run(Store(tmp_path), record(seed=7, operations=300))
    page = run.report_html.read_text()
    document: dict[str, Any] = json.loads(run.results_json.read_text())
    assert ("What happened, in order" in page) == bool(document["counterexample"])
