"""Every page, picture and sentence names the node that answered an operation, or says that the operation was sent to a node."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from checker.result import operation_json
from harness.counterexample import Counterexample
from harness.op import Contact, Operation, OpType
from harness.verdict import Part, Verdict
from results.circumstances.faults import circumstances
from results.measure.op_outcomes import Codes
from results.page.example_picture import diagram
from results.page.report import key_pages, render
from results.page.story import OPERATION, scene_of, story
from results.page.timeline import timeline
from results.stored.document import build

if TYPE_CHECKING:
    from results.record.record import RunRecord

WRITE = Operation(
    process=4, f="write", value=7, result=7, type=OpType.OK, start_ns=10, end_ns=20, invoke_index=0, complete_index=1, key="k",
    node="n5", via="n2",
)  # fmt: skip
EXAMPLE = Counterexample(key="k", explanation="lost", operations=[WRITE], culprit=WRITE)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, Contact("n2", answered=True)),
        ({"via": None}, Contact("n5", answered=False)),
        ({"type": OpType.INFO}, Contact("n2", answered=False)),
        ({"type": OpType.FAIL}, Contact("n2", answered=False)),
        ({"via": None, "node": None}, None),
    ],
)
def test_only_an_answer_names_the_node_that_answered(changes: dict[str, Any], expected: Contact | None) -> None:
    """A client that follows the leader names it. Without an answer, or without a name, the operation was only sent."""
    assert replace(WRITE, **changes).contact == expected


def recorded(record: RunRecord, operation: Operation) -> RunRecord:
    """Returns an invalid run with this one operation."""
    example = {"key": "k", "explanation": "lost", "operations": [{"invoke_index": operation.invoke_index}]}
    part = Part(name="linearizable", verdict=Verdict.INVALID, reason="lost", details={"counterexample": example})
    return replace(record, operations=[operation], parts=[part], faults=[], sightings=[])


def data_of(page: str) -> dict[str, Any]:
    """Returns the timeline's data in a page."""
    start = page.index(">", page.index('id="data"')) + 1
    data: dict[str, Any] = json.loads(page[start : page.index("</script>", start)])
    return data


def test_the_figure_the_key_page_and_the_timeline_name_the_node_that_answered(valid_record: RunRecord) -> None:
    """n2 answered a client that began at n5: no place puts the operation on n5."""
    run = recorded(valid_record, WRITE)
    document = build(run)
    ((_, key_page),) = key_pages(run, document)
    for page in (render(run, document, drawn={}, logs=[]), key_page):
        assert "process 4 · n2" in page
        assert "answered by n2" in page
        data = data_of(page)
        assert [data["nodes"][data["lanes"][lane]] for lane in data["l"]] == ["n2"]
        assert data["c"] == [1]
        assert "n5" not in page[page.index('<svg class="example"') : page.index("</figcaption>")]


def test_an_operation_whose_answer_has_no_name_is_said_to_be_sent(valid_record: RunRecord) -> None:
    """The history of a client that stays at its node does not say who answered."""
    run = recorded(valid_record, replace(WRITE, via=None))
    page = render(run, build(run), drawn={}, logs=[])
    assert "process 4 · asked n5" in page
    assert "sent to n5" in page
    assert data_of(page)["c"] == [0]


def test_the_story_marks_the_node_that_answered(valid_record: RunRecord) -> None:
    """The row of the node where the client began has no mark."""
    moments = [moment for moment in story(scene_of(EXAMPLE), recorded(valid_record, WRITE)) if moment.kind == OPERATION]
    assert [moment.nodes for moment in moments] == [("n2",), ("n2",)]
    assert moments[-1].text == "Process 4 at n2 ends ok: write 7."
    asked = replace(WRITE, via=None)
    last = story(scene_of(replace(EXAMPLE, operations=[asked])), recorded(valid_record, asked))[-1]
    assert last.text == "Process 4, which asked n5, ends ok: write 7."


def test_the_circumstances_name_the_node_that_answered(valid_record: RunRecord) -> None:
    """The sentences are about n2, and the data of the checker has both nodes."""
    lines = circumstances(EXAMPLE, recorded(valid_record, WRITE))
    assert lines[-1] == "n2 answered process 4's write."
    assert (operation_json(WRITE) or {})["via"] == "n2"


def test_a_process_that_moves_has_a_lane_at_each_node() -> None:
    """Its operations are in lanes of the nodes that answered, in the order of time."""
    moves = [
        replace(WRITE, start_ns=start_ns, end_ns=start_ns + 10_000, invoke_index=start_ns, via=via)
        for start_ns, via in ((0, "n2"), (20_000, "n2"), (40_000, "n3"), (60_000, "n2"))
    ]
    data: dict[str, Any] = timeline(operations=moves, faults=(), sightings=(), nodes=("n2", "n3", "n5"), codes=Codes())
    assert [data["nodes"][data["lanes"][lane]] for lane in data["l"]] == ["n2", "n2", "n3", "n2"]
    assert len(data["lanes"]) == 2


def test_a_long_name_of_a_node_does_not_fill_the_figure() -> None:
    """The name is cut, and its length is added."""
    drawn = diagram(replace(EXAMPLE, operations=[replace(WRITE, via="n" * 5000)]), ())
    assert len(drawn) < 3000
    assert "5,000" in drawn
