"""The messages of programs around the operations of a violation: who sent what to whom, and what arrived.

`nodes/NODE/messages.log` has the lines on the stdin and stdout of a node; `clusters.pipes.transcript` writes it. Its times
count from the start of the nodes, and those of the history from the start of the workload. The files are foreign: no link is
followed, and files, lines and messages have limits.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict, deque
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from harness.console import below
from harness.console.documents import parse_json
from harness.console.plain import name
from harness.errors import InputError
from harness.units import NS_PER_MS, NS_PER_S
from results.measure.log_lines import log_files, spans_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from harness.counterexample import Counterexample
    from results.measure.log_lines import Span
    from results.store.record import RunRecord
    from results.store.store import Run

FILE: Final = "messages.log"
MAX_BYTES: Final = 64 << 20  # of one file
MAX_LINE: Final = 1 << 20
MAX_SHOWN: Final = 40
MAX_TEXT: Final = 160
AROUND_NS: Final = 2 * NS_PER_MS
LATE_NS: Final = 2 * NS_PER_S  # a message that takes longer is found only if it arrives near an operation
_LINE: Final = re.compile(rb"(\d{1,9}\.\d{6}) ([<>]) (.*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A message.

    Attributes:
        sent_ns: When the sender wrote it, on the run's clock; for a message of a client or a service, when it arrived.
        source: The sender.
        target: The receiver.
        text: Its type, and its other members as JSON.
        arrived_ns: When the receiver got it; None if the files do not show that.
        between: Whether both are nodes.
    """

    sent_ns: int
    source: str
    target: str
    text: str
    arrived_ns: int | None
    between: bool

    @property
    def shown(self) -> str:
        """Returns it as a line, without its time."""
        if not self.between:
            fate = ""
        elif self.arrived_ns is None:
            fate = "  (did not arrive)"
        else:
            fate = f"  (arrived at {self.arrived_ns / NS_PER_S:.6f} s)"
        return f"{self.source} → {self.target}  {self.text}{fate}"


def messages_near(run: Run, record: RunRecord, example: Counterexample) -> Sequence[Message]:
    """Returns the messages near the operations of a violation, in the order of time; none if the run has no such files."""
    spans = [(start - AROUND_NS, end + AROUND_NS) for start, end in spans_of(example)]
    ready_ns = round(record.timings.get("ready", 0.0) * NS_PER_S)
    nodes = set(record.test.nodes)
    sent: list[Message] = []
    arrived: dict[tuple[str, str, str], deque[int]] = defaultdict(deque)
    for path in log_files(run):
        if path.name != FILE or path.parent.name not in nodes:
            continue
        for time_ns, is_out, raw in _lines(run, path, ready_ns, spans):
            message = _message(raw, time_ns, nodes)
            if message is None:
                continue
            if is_out or not message.between:
                if _near(time_ns, spans):
                    sent.append(message)
            else:
                arrived[message.source, message.target, message.text].append(time_ns)
    found = []
    for message in sorted(sent, key=lambda each: each.sent_ns):
        times = arrived[message.source, message.target, message.text]
        while times and times[0] < message.sent_ns:
            times.popleft()
        found.append(replace(message, arrived_ns=times.popleft() if message.between and times else None))
    if len(found) > MAX_SHOWN:
        culprit = example.culprit or example.operations[-1]
        nearest = sorted(found, key=lambda each: abs(each.sent_ns - culprit.last_ns))[:MAX_SHOWN]
        found = sorted(nearest, key=lambda each: each.sent_ns)
    return found


def _near(time_ns: int, spans: Sequence[Span]) -> bool:
    return any(start <= time_ns <= end for start, end in spans)


def _lines(run: Run, path: Path, ready_ns: int, spans: Sequence[Span]) -> list[tuple[int, bool, bytes]]:
    """Returns the lines near some spans or soon after: the time, whether the node wrote it, and the message."""
    found: list[tuple[int, bool, bytes]] = []
    wide = [(start, end + LATE_NS) for start, end in spans]
    try:
        with below.open_file(run.path, path) as file:
            while file.tell() < MAX_BYTES and (line := file.readline(MAX_LINE)):
                match = _LINE.match(line)
                if match is None:
                    continue
                time_ns = round(float(match[1]) * NS_PER_S) - ready_ns
                if _near(time_ns, wide):
                    found.append((time_ns, match[2] == b"<", match[3]))
    except OSError:
        return []
    return found


def _message(raw: bytes, time_ns: int, nodes: set[str]) -> Message | None:
    """Returns the message of a line; None if it is none."""
    try:
        message = parse_json(raw, "the message")
    except InputError:
        return None
    if not isinstance(message, dict) or not isinstance(message.get("body"), dict):
        return None
    body = dict(message["body"])
    source, target = name(str(message.get("src"))), name(str(message.get("dest")))
    text = name(f"{body.pop('type', '?')} {json.dumps(body)}", MAX_TEXT)
    between = source in nodes and target in nodes
    return Message(sent_ns=time_ns, source=source, target=target, text=text, arrived_ns=None, between=between)
