"""The messages around a violation as a picture: what it shows, in which order, and from foreign folders."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.counterexample import counterexample_of
from harness.faults import FaultRecord, PlannedFault
from harness.op import Operation, OpType
from harness.targets import Named
from harness.verdict import Part, Verdict
from results.circumstances.messages import MAX_SHOWN, Message, Nearby, messages_near
from results.page.sequence import sequence
from results.page.sequence_rows import ARRIVED, BREAK, SENT, diagram_of
from results.publish import publish

if TYPE_CHECKING:
    from pathlib import Path

    from results.record.record import RunRecord
    from results.store.store import Store

MS = 10**6
NODES = ("n0", "n1", "n2")
HOSTILE = "</text><script>alert(1)</script>\x1b[31m\u202e&#60;" + "x" * 500
names = st.sampled_from([*NODES, "c1", "c2", "lin-kv", HOSTILE])


def message(at_ms: float, source: str, target: str, kind: str = "gossip", **more: Any) -> Message:
    """Returns a message."""
    values: dict[str, Any] = {
        "sent_ns": int(at_ms * MS), "source": source, "target": target, "text": f"{kind} {{}}", "brief": kind, "number": None,
        "answers": None, "values": frozenset(), "arrived_ns": None, "between": {source, target} <= set(NODES),
    }  # fmt: skip
    return Message(**(values | more))


def read_of(process: int, result: int, start_ms: float, end_ms: float) -> Operation:
    """Returns a read at n1."""
    return Operation(
        process=process, f="read", value=None, key=None, type=OpType.OK, result=result, start_ns=int(start_ms * MS),
        end_ns=int(end_ms * MS), invoke_index=process, complete_index=process + 1, node="n1",
    )  # fmt: skip


messages = st.lists(
    st.builds(
        lambda at, way, source, target, asks: message(
            at, source, target, arrived_ns=None if way is None else (at + way) * MS, number=asks, answers=None if asks else 1
        ),
        st.integers(0, 5_000), st.none() | st.integers(1, 3_000), names, names, st.integers(0, 3),
    ),
    min_size=1,
    max_size=MAX_SHOWN,
)  # fmt: skip


@given(messages)
def test_each_message_has_its_place(found: list[Message]) -> None:
    """Each message is sent in one row and arrives in a later one. Rows are in the order of time. The picture is well-formed."""
    nearby = Nearby(messages=sorted(found, key=lambda each: each.sent_ns))
    shown = diagram_of(nearby, NODES, None, ())
    moments = [row for row in shown.rows if row.kind != BREAK]
    assert [row.time_ns for row in moments] == sorted(row.time_ns for row in moments)
    assert [row.y for row in shown.rows] == sorted({row.y for row in shown.rows})
    height = {(row.kind, row.place): row.y for row in moments}
    for number, shown_message in enumerate(shown.messages):
        assert (shown_message.arrived_ns is None) == ((ARRIVED, number) not in height)
        assert height[SENT, number] < height.get((ARRIVED, number), 10**9)
    assert shown.left_out + len(shown.messages) == len(found)
    drawn = sequence(nearby, NODES, None, ())
    assert drawn is not None
    groups = ET.fromstring(drawn[0]).findall(".//g[@class]")  # noqa: S314 - drawn by us
    assert sum(group.attrib["class"].startswith("msg") for group in groups) == len(shown.messages)


def test_the_nodes_stand_beside_the_violation() -> None:
    """Ten other clients do not stand between the clients of the violation and the nodes."""
    others = [message(5, f"c{number}", "n1", "write", number=1) for number in range(10)]
    asked = [message(1, "own", "n1", "read", number=1), message(2, "n1", "lin-kv", "read", number=2, between=False)]
    read = read_of(1, 7, 0, 9)
    example = counterexample_of([read], explanation="Old.", culprit=read)
    shown = diagram_of(Nearby(messages=[*asked, *others]), NODES, example, ())
    first, *_ = shown.lanes
    assert first == (shown.clients[0],)
    assert shown.lanes[1:2] == [("n1",)]
    assert shown.lanes[-1] == ("lin-kv",)
    assert len(shown.lanes) > 10


def test_an_operation_belongs_to_the_request_that_fits_alone() -> None:
    """The value of the answer tells two reads at one node apart. Two that answer the same belong to no operation."""
    asked = [message(1, "c1", "n1", "read", number=1), message(2, "c2", "n1", "read", number=1)]
    answers = [
        message(3, "n1", "c1", "read_ok", answers=1, values=frozenset({"7"})),
        message(4, "n1", "c2", "read_ok", answers=1, values=frozenset({"8"})),
    ]
    example = counterexample_of([read_of(5, 8, 0.5, 6)], explanation="Old.")
    shown = diagram_of(Nearby(messages=[*asked, *answers]), NODES, example, ())
    assert shown.asked == {0: (1, 3)}
    assert shown.clients == {0: "c2"}
    alike = [replace(answer, values=frozenset({"8"})) for answer in answers]
    shown = diagram_of(Nearby(messages=[*asked, *alike]), NODES, example, ())
    assert shown.asked == {}
    assert shown.clients == {0: "process 5"}


def test_the_picture_says_what_was_lost_and_who_was_down() -> None:
    """A lost message ends in a cross with its reason, and the band of a fault is on the lifeline of its node."""
    killed = FaultRecord(
        planned=PlannedFault(id=4, kind="kill", target=Named(("n2",)), start_s=0, end_s=1),
        targets=("n2",), start_ns=0, end_ns=100 * MS, proof=None,
    )  # fmt: skip
    lost = message(1, "n0", "n2", lost="n2 was down, fault 4")
    drawn = sequence(Nearby(messages=[lost, message(2, "n1", "n0", arrived_ns=3 * MS)]), NODES, None, [killed])
    assert drawn is not None
    picture = str(drawn[0])
    assert picture.count('class="cross"') == 1
    assert "n2 was down, fault 4" in picture
    assert picture.count('class="band"') == 1
    assert sequence(Nearby(), NODES, None, ()) is None


@pytest.mark.parametrize("culprit", [True, False])
def test_the_messages_of_the_violation_stay(tmp_path: Path, culprit: bool) -> None:
    """Among many messages, those of the operations and those near the one that could not have happened are kept."""
    lines = [f'{1 + n / 1000:.6f} < {{"src":"n1","dest":"n0","body":{{"type":"noise","n":{n}}}}}' for n in range(500)]
    lines[100] = '1.100000 > {"src":"c1","dest":"n1","body":{"type":"read","msg_id":1}}'
    lines[110] = '1.110000 < {"src":"n1","dest":"c1","body":{"type":"read_ok","value":7,"in_reply_to":1}}'
    lines[200] = '1.200000 > {"src":"timer","dest":"n1","body":{"type":"wait_ok","in_reply_to":2}}'
    (tmp_path / "nodes" / "n1").mkdir(parents=True)
    (tmp_path / "nodes" / "n1" / "messages.log").write_text("\n".join(lines) + "\n")
    run: Any = SimpleNamespace(path=tmp_path, nodes_dir=tmp_path / "nodes")
    record: Any = SimpleNamespace(timings={"world": 1.0}, test=SimpleNamespace(nodes=NODES), faults=(), parts=())
    early, late = read_of(1, 7, 99, 111), read_of(3, 9, 0, 499)
    example = counterexample_of([early, late], explanation="Old.", culprit=late if culprit else early)
    nearby = messages_near(run, record, example)
    assert len(nearby.messages) == MAX_SHOWN
    assert [own_message.brief for own_message in nearby.messages if not own_message.between] == [
        "read",
        "read_ok value 7",
    ]
    assert nearby.rest == "459 more messages and 1 message of timers at these times are left out."


def test_a_message_against_the_protocol_has_a_picture(tmp_path: Path) -> None:
    """It shows what came shortly before. A time from a foreign file that is none is no time."""
    (tmp_path / "nodes" / "n1").mkdir(parents=True)
    body = {"type": HOSTILE, HOSTILE: [HOSTILE], "msg_id": 1}
    text = json.dumps({"src": HOSTILE, "dest": "n1", "body": body})
    (tmp_path / "nodes" / "n1" / "messages.log").write_text(f"2.000000 > {text}\n9.000000 > {text}\n")
    run: Any = SimpleNamespace(path=tmp_path, nodes_dir=tmp_path / "nodes")

    def seen(violations: Any) -> Nearby:
        part = Part(name="protocol", verdict=Verdict.INVALID, reason="", details={"against_protocol": violations})
        record: Any = SimpleNamespace(
            timings={"world": 1.0}, test=SimpleNamespace(nodes=NODES), faults=(), parts=(part,)
        )
        return messages_near(run, record, None)

    nearby = seen([{"seconds": 2.01}])
    assert len(nearby.messages) == 1
    drawn = sequence(nearby, NODES, None, ())
    assert drawn is not None
    assert "<script>" not in drawn[0]
    assert not re.search("[\x1b\u202e]", drawn[0])
    assert len(drawn[0]) < 20_000
    odd: Any
    for odd in (None, [], [1], [{}], [{"seconds": True}], [{"seconds": float("nan")}], [{"seconds": 1e300}]):
        assert seen(odd).messages == ()


def test_a_message_that_a_node_hands_on_is_from_this_node(tmp_path: Path) -> None:
    """It has the client's name as its sender. It is shown once, with the node that wrote it, and its arrival is known."""
    request = {"src": "c2", "dest": "n1", "body": {"type": "read", "key": 0, "msg_id": 1}}
    handed = json.dumps({**request, "dest": "n2"})
    answer = json.dumps({"src": "n2", "dest": "c2", "body": {"type": "read_ok", "value": 3, "in_reply_to": 1}})
    lines = {
        "n1": f"2.000000 > {json.dumps(request)}\n2.000000 < {handed}\n",
        "n2": f"2.001000 > {handed}\n2.001000 < {answer}\n",
    }
    for node, text in lines.items():
        (tmp_path / "nodes" / node).mkdir(parents=True)
        (tmp_path / "nodes" / node / "messages.log").write_text(text)
    run: Any = SimpleNamespace(path=tmp_path, nodes_dir=tmp_path / "nodes")
    part = Part(name="protocol", verdict=Verdict.INVALID, reason="", details={"against_protocol": [{"seconds": 2.001}]})
    record: Any = SimpleNamespace(timings={"world": 0.0}, test=SimpleNamespace(nodes=NODES), faults=(), parts=(part,))
    assert [own_message.shown for own_message in messages_near(run, record, None).messages] == [
        'c2 → n1  read {"key": 0, "msg_id": 1}',
        'n1 → n2  read {"key": 0, "msg_id": 1} as c2  (arrived at 2.001000 s)',
        'n2 → c2  read_ok {"value": 3, "in_reply_to": 1}',
    ]


def test_a_run_whose_only_violation_is_of_the_protocol_has_a_report(store: Store, valid_record: RunRecord) -> None:
    """The part of the system becomes a verdict, a report and a picture, as any other part does."""
    against = {
        "kind": "second-answer",
        "node": "n1",
        "seconds": 2.0,
        "line": 4,
        "why": "answered again",
        "message": "{}",
    }
    part = Part(
        name="protocol", verdict=Verdict.INVALID, reason="n1 answered message 1 of c1 again.",
        details={"messages": 1, "counts": {"second-answer": 1}, "against_protocol": [against]},
    )  # fmt: skip
    run = store.create_run("t", datetime(2026, 11, 26, tzinfo=UTC))
    (run.nodes_dir / "n1").mkdir(parents=True)
    line = '{"src":"n1","dest":"c1","body":{"type":"echo_ok","in_reply_to":1}}'
    (run.nodes_dir / "n1" / "messages.log").write_text(f"1.999000 < {line}\n2.000000 < {line}\n")
    own_record = replace(valid_record, test=replace(valid_record.test, nodes=("n1",)), parts=[part], timings={})
    document = publish(run, own_record)
    assert document["problems"] == []
    assert document["valid"] is False
    assert run.report_html.read_text().count('class="msg') == 2
