"""A counterexample is drawn from the history's own operations, with their actual contradiction."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import pytest

from checker.linearizable import linearizability
from harness.counterexample import Counterexample, counterexample_of
from harness.faults import FaultRecord, PlannedFault
from harness.op import Operation, OpType
from harness.targets import AllNodes
from results.page.example_picture import diagram
from results.record.counterexample import (
    by_index,
    contradiction,
    counterexamples_of,
    operation_text,
    precedence,
    read_counterexample,
)
from results.stored.document import counterexample

if TYPE_CHECKING:
    from results.record.record import RunRecord


def operation(f: str, value: Any, start: int, end: int | None, **changes: Any) -> Operation:
    """Returns an ok operation; a read's `value` is its result."""
    fields: dict[str, Any] = {
        "process": start, "f": f, "value": None if f == "read" else value, "result": value, "type": OpType.OK,
        "start_ns": start, "end_ns": end, "invoke_index": start, "complete_index": None, "key": "k",
    }  # fmt: skip
    return Operation(**{**fields, **changes})


def zones(*operations: Operation) -> list[tuple[Any, int, int, bool]]:
    """Returns the zones that contradict each other."""
    example = Counterexample(key="k", explanation="", operations=operations, culprit=None)
    return [(z.value, z.start_ns, z.end_ns, z.forward) for z in contradiction(example, operations)]


def test_a_stale_read_is_a_value_inside_the_stretch_of_another() -> None:
    """1 is current from its write's end to its read's start. 2 must be current in between."""
    spans = zones(operation("write", 1, 0, 10), operation("write", 2, 20, 30), operation("read", 1, 40, 50))
    assert spans == [(1, 10, 40, True), (2, 20, 30, False)]


def test_two_values_cannot_both_be_current() -> None:
    """Reads that alternate: both zones overlap."""
    spans = zones(
        operation("write", 1, 0, 10), operation("write", 2, 0, 11), operation("read", 1, 20, 30),
        operation("read", 2, 40, 50), operation("read", 1, 60, 70),
    )  # fmt: skip
    assert [(value, forward) for value, _, _, forward in spans] == [(1, True), (2, True)]


def test_the_initial_value_was_current_before_everything() -> None:
    """A read of nil after the end of a write."""
    spans = zones(operation("read", None, 0, 3), operation("write", 1, 5, 10), operation("read", None, 20, 30))
    assert spans == [(None, 0, 20, True), (1, 5, 10, False)]


def test_a_cas_knows_both_of_its_values() -> None:
    """A compare-and-set reads the old value and writes the new one."""
    spans = zones(operation("write", 1, 0, 10), operation("cas", [1, 2], 20, 30), operation("read", 1, 40, 50))
    assert spans == [(1, 10, 40, True), (2, 20, 30, False)]


def test_no_contradiction_is_drawn_where_values_are_not_unique() -> None:
    """If two operations wrote the value, a read of it does not show which one it saw."""
    assert not zones(
        operation("write", 1, 0, 10),
        operation("write", 2, 20, 30),
        operation("write", 1, 32, 38),
        operation("read", 1, 40, 50),
    )


def test_no_contradiction_is_drawn_where_there_is_none() -> None:
    """Overlapping operations can be ordered."""
    assert not zones(operation("write", 1, 0, 10), operation("write", 2, 5, 30), operation("read", 1, 12, 50))


def test_a_write_without_an_answer_may_take_effect_later() -> None:
    """An info write has no end, so no operation is after it."""
    late = operation("write", 2, 20, 30, type=OpType.INFO, result=None)
    assert not zones(operation("write", 1, 0, 10), late, operation("read", 1, 40, 50))
    assert precedence([operation("write", 1, 0, 10), late, operation("read", 1, 40, 50)]) == [(0, 1), (0, 2)]


def test_a_cas_that_may_not_have_happened_knows_nothing() -> None:
    """Only if its new value was read, a crashed compare-and-set certainly saw the old one."""
    maybe = operation("cas", [1, 3], 40, 50, type=OpType.INFO, result=None)
    assert not zones(operation("write", 1, 0, 10), operation("write", 2, 20, 30), maybe)
    assert zones(operation("write", 1, 0, 10), operation("write", 2, 20, 30), maybe, operation("read", 3, 60, 70))


def test_precedence_leaves_out_what_follows() -> None:
    """In a chain, only neighbours are connected."""
    assert precedence([operation("read", 1, n * 10, n * 10 + 5) for n in range(4)]) == [(0, 1), (1, 2), (2, 3)]
    assert precedence([operation("read", 1, 0, 20), operation("read", 1, 10, 30)]) == []


def test_the_examples_operations_are_the_historys(stale_record: RunRecord) -> None:
    """The operations are found by index. The culprit is the last to end, unless the checker names another."""
    stored = counterexample(stale_record.parts)
    example = read_counterexample(stored, by_index(stale_record.operations), "because")
    assert example is not None
    assert example.key == "k0"
    assert [op.f for op in example.operations] == ["write", "write", "read"]
    assert example.culprit is example.operations[-1]
    assert all(op in stale_record.operations for op in example.operations)
    assert len(contradiction(example, stale_record.operations)) == 2
    named = read_counterexample({**stored, "op": stored["operations"][0]}, by_index(stale_record.operations), "because")
    assert named is not None
    assert named.culprit is named.operations[0]


@pytest.mark.parametrize(
    "found",
    [None, {}, [], [None], [{"index": 10**9}], {"operations": "x"}, {"operations": [{"index": "1"}]}, 7, "text"],
)
def test_what_names_no_operation_is_no_example(stale_record: RunRecord, found: Any) -> None:
    """Damaged data of a checker or a file adds nothing."""
    assert read_counterexample(found, by_index(stale_record.operations), "") is None


def test_a_bare_list_of_events_is_understood(stale_record: RunRecord) -> None:
    """Also by the index of a completion, with the part's message as the explanation."""
    operation = stale_record.operations[5]
    example = read_counterexample([{"index": operation.complete_index}], by_index(stale_record.operations), "because")
    assert example is not None
    assert (example.operations[0], example.explanation) == (operation, "because")


def test_the_diagram_is_well_formed_and_escaped() -> None:
    """Values, nodes and errors are untrusted text."""
    hostile = "</text><script>alert(1)</script>"
    operations = (
        operation("write", hostile, 0, 10, node=hostile),
        operation("write", 2, 20, None, type=OpType.INFO, result=None, node="n1"),
        operation("read", hostile, 40, 50),
    )
    example = Counterexample(key="k", explanation=hostile, operations=operations, culprit=operations[2])
    svg = str(diagram(example, contradiction(example, operations)))
    root = ET.fromstring(svg)  # noqa: S314 - our own drawing
    assert not [element for element in root.iter() if element.tag == "script"]
    assert "<script" not in svg


@pytest.mark.parametrize(
    ("op", "text"),
    [
        (operation("read", 5, 0, 1), "read → 5"),
        (operation("read", None, 0, 1), "read → nil"),
        (operation("read", None, 0, 1, type=OpType.INFO), "read"),
        (operation("write", 5, 0, 1), "write 5"),
        (operation("cas", [1, 2], 0, 1), "cas 1 → 2"),
        (operation("enqueue", "x" * 99, 0, 1), f"enqueue {'x' * 23}…"),
        (operation("txn", [["r", "x", None], ["append", "y", 4]], 0, 1, type=OpType.INFO), "txn r x nil, append y 4"),
    ],
)
def test_operations_are_told_shortly(op: Operation, text: str) -> None:
    """In plain words."""
    assert operation_text(op) == text


def test_a_run_that_has_just_ended_shows_the_operations_themselves(
    stale_record: RunRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    """JSON is read only for a part from a file. Both ways show the same."""
    [part] = linearizability("cas-register", stale_record.operations)
    from_file = counterexamples_of(replace(stale_record, parts=[replace(part, counterexamples=())]), "")
    monkeypatch.setattr("results.record.counterexample.read_counterexample", None)
    examples = counterexamples_of(replace(stale_record, parts=[part]), "")
    assert examples is part.counterexamples
    assert list(examples) == list(from_file)
    assert all(any(op is known for known in stale_record.operations) for op in examples[0].operations)


def test_a_cycle_has_an_arrow_for_each_edge() -> None:
    """Transactions have the names of the explanation, and each arrow its reason; other edges and other forms are left out."""
    first = operation("txn", [["append", "x", 1]], 0, 9)
    second = operation("txn", [["append", "y", 2]], 1, 8)
    edges = [[first.invoke_index, second.invoke_index, "rw x"], [second.invoke_index, first.invoke_index, "ww <y>"]]
    stored = {
        "operations": [{"invoke_index": op.invoke_index} for op in (first, second)],
        "edges": [*edges, [first.invoke_index, 77, "wr z"], [1, 2], "no edge", [None, 1, "rw"]],
    }
    example = read_counterexample(stored, by_index([first, second]), "a cycle")
    assert example is not None
    assert [list(edge) for edge in example.edges] == edges
    svg = str(diagram(example, ()))
    assert (svg.count('class="edge"'), svg.count('class="before"'), svg.count("culprit")) == (2, 0, 0)
    for text in ("T1 · process", "T2 · process", ">rw x<", ">ww &lt;y&gt;<"):
        assert text in svg


def test_a_fault_is_a_band_between_the_events_around_its_own_edges() -> None:
    """A fault that began before reaches beyond the first column; one that began within begins between two columns."""
    example = counterexample_of([operation("write", 1, 10, 20), operation("read", None, 12, 40)], explanation="stale")
    assert example is not None

    def fault(number: int, start_ns: int, end_ns: int) -> FaultRecord:
        planned = PlannedFault(id=number, kind="<kill>", target=AllNodes(), start_s=0, end_s=1)
        return FaultRecord(planned=planned, targets=("n1",), start_ns=start_ns, end_ns=end_ns, proof=None)

    plain = str(diagram(example, ()))
    assert 'class="fault"' not in plain
    assert str(diagram(example, (), [fault(9, 50, 60), fault(8, 1, 1)])) == plain
    svg = str(diagram(example, (), [fault(0, 5, 30), fault(1, 30, 99)]))
    bands = [
        (float(x), float(x) + float(w)) for x, w in re.findall(r'class="fault".*?x="([^"]*)".*?width="([^"]*)"', svg)
    ]
    columns = sorted({float(x) for x in re.findall(r'class="tick" x1="([^"]*)"', svg)})
    (left, middle), (begin, right) = bands
    assert left < columns[0]
    assert columns[2] < middle < columns[3]
    assert begin == pytest.approx(middle, abs=0.2)
    assert right > columns[-1]
    assert "&lt;kill&gt; of n1 (fault 0), 0.000 s to 0.000 s" in svg
