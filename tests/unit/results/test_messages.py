"""The messages around a violation, from the transcripts of the nodes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from harness.faults import FaultRecord, PlannedFault
from harness.op import Operation, OpType
from harness.targets import Named
from results.circumstances.fates import fate
from results.circumstances.messages import messages_near

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

SECOND = 10**9
N0 = """\
1.000000 > {"src":"c0","dest":"n0","body":{"type":"init"}}
3.000000 > {"src":"c1","dest":"n0","body":{"type":"add","element":7,"msg_id":1}}
3.000500 < {"src": "n0", "dest": "n1", "body": {"type": "gossip", "values": [7]}}
3.000600 < {"src": "n0", "dest": "n2", "body": {"type": "gossip", "values": [7]}}
3.001000 < {"src": "n0", "dest": "c1", "body": {"type": "add_ok", "in_reply_to": 1}}
not a line of a transcript
3.001500 < {not json
9.000000 < {"src": "n0", "dest": "n1", "body": {"type": "late"}}
"""
N1 = '3.020000 > {"src":"n0","dest":"n1","body":{"type":"gossip","values":[7]}}\n'


def near(folder: Path, files: dict[str, str], faults: Sequence[FaultRecord] = ()) -> list[str]:
    """Returns the messages near an add from 2.000 s to 2.001 s of a run whose nodes were ready after 1 s."""
    for node, text in files.items():
        (folder / "nodes" / node).mkdir(parents=True)
        (folder / "nodes" / node / "messages.log").write_text(text)
    run: Any = SimpleNamespace(path=folder, nodes_dir=folder / "nodes")
    record: Any = SimpleNamespace(
        timings={"ready": 0.5, "world": 1.0}, test=SimpleNamespace(nodes=["n0", "n1", "n2"]), faults=faults, parts=()
    )
    operation = Operation(
        process=0, f="add", value=7, key=None, type=OpType.OK, result=7, start_ns=2 * SECOND, end_ns=2 * SECOND + 10**6,
        invoke_index=0, complete_index=1, node="n0",
    )  # fmt: skip
    example: Any = SimpleNamespace(operations=[operation], culprit=None)
    return [message.shown for message in messages_near(run, record, example).messages]


def test_a_message_says_whether_it_arrived(tmp_path: Path) -> None:
    """Each message is there once, in the order of time; one that no other transcript has did not arrive."""
    assert near(tmp_path, {"n0": N0, "n1": N1, "n2": ""}) == [
        'c1 → n0  add {"element": 7, "msg_id": 1}',
        'n0 → n1  gossip {"values": [7]}  (arrived at 2.020000 s)',
        'n0 → n2  gossip {"values": [7]}  (did not arrive)',
        'n0 → c1  add_ok {"in_reply_to": 1}',
    ]


def test_a_transcript_is_foreign(tmp_path: Path) -> None:
    """A line that is no message is left out, and control characters are escaped."""
    odd = '3.000000 < {"src": "n0", "dest": "n1\\u001b[2J", "body": {"type": "x"}}\n3.0 < 1\n3.000000 < [1]\n'
    shown = near(tmp_path, {"n0": odd, "elsewhere": N1})
    assert len(shown) == 1
    assert "\x1b" not in shown[0]


def fault(kind: str, targets: list[str], grudge: dict[str, list[str]] | None = None) -> FaultRecord:
    """Returns fault 3, on from 1 s to 3 s."""
    return FaultRecord(
        planned=PlannedFault(id=3, kind=kind, target=Named(tuple(targets)), start_s=1.0, end_s=3.0),
        targets=tuple(targets),
        start_ns=SECOND,
        end_ns=3 * SECOND,
        proof=None,
        details={} if grudge is None else {"grudge": grudge},
    )


@pytest.mark.parametrize(
    ("found", "why"),
    [
        (fault("partition-one-way", ["n0"], {"n2": ["n0"]}), "cut, fault 3"),
        (fault("partition-one-way", ["n0"], {"n0": ["n2"]}), ""),
        (fault("minor-kill", ["n2"]), "n2 was down, fault 3"),
        (fault("kill", ["n0"]), ""),
        (fault("packet-loss", ["n2"]), "perhaps packet-loss, fault 3"),
        (fault("leader-pause", ["n2"]), "n2 was paused, fault 3"),
        (fault("power-loss", ["n1"]), ""),
    ],
)
def test_a_fault_that_was_on_explains_a_loss(tmp_path: Path, found: FaultRecord, why: str) -> None:
    """A cut explains a loss in its direction, and a kill that of a message to the node. Nothing else is claimed."""
    shown = near(tmp_path, {"n0": N0, "n1": N1, "n2": ""}, [found])
    assert shown[2] == f'n0 → n2  gossip {{"values": [7]}}  (did not arrive{f": {why}" if why else ""})'
    assert fate([found], "n0", "n2", 4 * SECOND) == ""
