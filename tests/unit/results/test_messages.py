"""The messages around a violation, from the transcripts of the nodes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from harness.op import Operation, OpType
from results.measure.messages import messages_near

if TYPE_CHECKING:
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


def near(folder: Path, files: dict[str, str]) -> list[str]:
    """Returns the messages near an add from 2.000 s to 2.001 s of a run whose nodes were ready after 1 s."""
    for node, text in files.items():
        (folder / "nodes" / node).mkdir(parents=True)
        (folder / "nodes" / node / "messages.log").write_text(text)
    run: Any = SimpleNamespace(path=folder, nodes_dir=folder / "nodes")
    record: Any = SimpleNamespace(timings={"ready": 1.0}, test=SimpleNamespace(nodes=["n0", "n1", "n2"]))
    operation = Operation(
        process=0, f="add", value=7, key=None, type=OpType.OK, result=7, start_ns=2 * SECOND, end_ns=2 * SECOND + 10**6,
        invoke_index=0, complete_index=1, node="n0",
    )  # fmt: skip
    example: Any = SimpleNamespace(operations=[operation], culprit=None)
    return [message.shown for message in messages_near(run, record, example)]


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
