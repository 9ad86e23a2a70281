"""The messages of programs around a violation: who sent what to whom, what arrived, and why another one did not.

`nodes/NODE/messages.log` has the lines on the stdin and stdout of a node; `clusters.pipes.transcript` writes it. Its times
count from the start of the world, and those of the history from the start of the workload. The files are foreign: no link is
followed, and files, lines and messages have limits. `labrys explain` and the picture of the report show the same messages.
"""

from __future__ import annotations

import json
from collections import defaultdict, deque
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Final, TypeAlias

from harness.console import below
from harness.console.documents import parse_json
from harness.console.plain import counted, listed, name, one_line
from harness.errors import InputError
from harness.units import NS_PER_MS, NS_PER_S
from harness.verdict import Verdict
from results.circumstances.fates import fate
from results.logs.lines import log_files, spans_of
from results.logs.times import world_ns
from results.logs.transcripts import FILE, left_out_of, lines_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from harness.counterexample import Counterexample
    from harness.faults import FaultRecord
    from harness.op import Value
    from results.logs.lines import Span
    from results.logs.transcripts import LeftOut
    from results.record.record import RunRecord
    from results.store.store import Run

TIMER: Final = "timer"  # the service that gives programs their timers; its messages say nothing about a violation
PROTOCOL: Final = "protocol"  # the part about messages against the protocol
AGAINST: Final = "against_protocol"  # of its details: those messages, with their seconds
MAX_BYTES: Final = 64 << 20  # of one file
MAX_LINE: Final = 1 << 20
MAX_SHOWN: Final = 40
MAX_TEXT: Final = 160
MAX_BRIEF: Final = 100
MAX_VALUES: Final = 200  # of a message
MAX_S: Final = 1e9
AROUND_NS: Final = 2 * NS_PER_MS
BEFORE_NS: Final = 50 * NS_PER_MS  # what is shown before a message against the protocol
LATE_NS: Final = 2 * NS_PER_S  # a message that takes longer is found only if it arrives near an operation
_NUMBERS: Final = ("msg_id", "in_reply_to")


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A message.

    Attributes:
        sent_ns: When the sender wrote it, on the run's clock; for a message of a client or a service, when it arrived.
        source: The sender.
        target: The receiver.
        text: Its type, and its other members as JSON.
        brief: Its type, and its other members without quotes and without the numbers of messages.
        number: Its `msg_id`; None if it has none.
        answers: Its `in_reply_to`; None if it answers nothing.
        values: The numbers and texts in its body, as JSON.
        arrived_ns: When the receiver got it; None if the files do not show that.
        between: Whether both are nodes.
        lost: Why it did not arrive, as far as the faults of the run say; empty if it arrived, or if nothing says so.
        is_open: Whether nobody knows if it arrived, because the transcript of the receiver ends before.
    """

    sent_ns: int
    source: str
    target: str
    text: str
    brief: str
    number: int | None
    answers: int | None
    values: frozenset[str]
    arrived_ns: int | None
    between: bool
    lost: str = ""
    is_open: bool = False

    @property
    def is_lost(self) -> bool:
        """Returns whether it is from a node to a node, and did not arrive."""
        return self.between and self.arrived_ns is None and not self.is_open

    @property
    def shown(self) -> str:
        """Returns it as a line, without its time."""
        if not self.between:
            fate = ""
        elif self.is_open:
            fate = f"  (nothing is kept of {self.target} at this time, so it may have arrived)"
        elif self.arrived_ns is None:
            fate = f"  (did not arrive{f': {self.lost}' if self.lost else ''})"
        else:
            fate = f"  (arrived at {self.arrived_ns / NS_PER_S:.6f} s)"
        return f"{self.source} → {self.target}  {self.text}{fate}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Nearby:
    """The messages around a violation.

    Attributes:
        messages: The messages, in the order of time.
        spans: The times that they are around; empty if the run has no such files.
        left_out: How many messages at these times are left out.
        timers: How many messages from and to the service of timers are left out.
        ends: Sentences about transcripts that end before the end of these times.
    """

    messages: Sequence[Message] = ()
    spans: Sequence[Span] = ()
    left_out: int = 0
    timers: int = 0
    ends: Sequence[str] = ()

    @property
    def rest(self) -> str:
        """Returns what is left out as sentences; empty if nothing is."""
        return " ".join([*([self._counted] if self._counted else []), *self.ends])

    @property
    def _counted(self) -> str:
        out = [counted(self.left_out, "more message")] if self.left_out else []
        out += [f"{counted(self.timers, 'message')} of timers"] if self.timers else []
        if not out:
            return ""
        one = len(out) == 1 and 1 in {self.left_out, self.timers}
        return f"{listed(out, 'and')} at these times {'is' if one else 'are'} left out."


NO_MESSAGES: Final = Nearby()
_Key: TypeAlias = "tuple[str, str, str]"
"""The sender in a message, its receiver, and its body as JSON: the same in the transcripts of both nodes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    """A message of a transcript.

    Attributes:
        message: It; `sent_ns` is the time of the line.
        key: Finds the line of the other node.
        is_out: Whether the node wrote it.
        is_handed_on: Whether the node wrote it with the name of another sender.
    """

    message: Message
    key: _Key
    is_out: bool
    is_handed_on: bool


def messages_near(run: Run, record: RunRecord, example: Counterexample | None) -> Nearby:
    """Returns the messages near the operations of a violation; none if the run has no such files.

    Args:
        run: The run's folder.
        record: The run's record.
        example: The violation; None: the first message against the protocol, if there is one.
    """
    ready_ns = world_ns(record)
    spans = _of_protocol(record, ready_ns) if example is None else [_around(*span) for span in spans_of(example)]
    if not spans:
        return NO_MESSAGES
    lines = list(_read(run, set(record.test.nodes), ready_ns, spans))
    ends = _ends(run, set(record.test.nodes), ready_ns)
    handed = {line.key for line in lines if line.is_out and line.is_handed_on}
    sent: list[tuple[Message, _Key]] = []
    timers = 0
    arrived: dict[_Key, deque[int]] = defaultdict(deque)
    for line in lines:
        message, is_near = line.message, _near(line.message.sent_ns, spans)
        if TIMER in {message.source, message.target}:
            timers += is_near
        elif not line.is_out and (message.between or line.key in handed):
            arrived[line.key].append(message.sent_ns)
        elif is_near:
            sent.append((message, line.key))
    messages = [
        replace(message, is_open=True, lost="") if _is_open(message, ends) else message
        for message in _arrived(sorted(sent, key=lambda pair: pair[0].sent_ns), arrived, record.faults)
    ]
    kept = _nearest(messages, example, spans)
    last_ns = max(end for _, end in spans)
    said = [
        f"{FILE} of {name(node)} leaves out {left.what}, from {end_ns / NS_PER_S:.3f} s on."
        for node, (end_ns, left) in sorted(ends.items())
        if end_ns <= last_ns
    ]
    return Nearby(messages=kept, spans=spans, left_out=len(messages) - len(kept), timers=timers, ends=said)


def _ends(run: Run, nodes: set[str], ready_ns: int) -> dict[str, tuple[int, LeftOut]]:
    """Returns the nodes whose transcripts have reached their limit: from when on, and what is left out."""
    ends = {}
    for path in log_files(run):
        if path.name != FILE or path.parent.name not in nodes:
            continue
        try:
            with below.open_file(run.path, path) as file:
                left = left_out_of(file)
        except OSError:
            continue
        if left is not None:
            ends[path.parent.name] = round(left.from_s * NS_PER_S) - ready_ns, left
    return ends


def _is_open(message: Message, ends: Mapping[str, tuple[int, LeftOut]]) -> bool:
    if not message.between or message.arrived_ns is not None or message.target not in ends:
        return False
    return ends[message.target][0] <= message.sent_ns + LATE_NS


def _arrived(
    sent: Sequence[tuple[Message, _Key]], arrived: dict[_Key, deque[int]], faults: Sequence[FaultRecord]
) -> Iterator[Message]:
    """Yields the messages with the time of their arrival, or with the reason of their loss."""
    for message, key in sent:
        times = arrived[key]
        while times and times[0] < message.sent_ns:
            times.popleft()
        arrived_ns = times.popleft() if message.between and times else None
        lost = fate(faults, message.source, message.target, message.sent_ns) if arrived_ns is None else ""
        yield replace(message, arrived_ns=arrived_ns, lost=lost if message.between else "")


def _around(first_ns: int, last_ns: int) -> Span:
    return first_ns - AROUND_NS, last_ns + AROUND_NS


def _nearest(messages: Sequence[Message], example: Counterexample | None, spans: Sequence[Span]) -> list[Message]:
    """Returns at most `MAX_SHOWN` messages, in the order in which they were found.

    First come requests and answers of the operations, then messages during the operation that could not have happened, then
    those with a number of the operations. Among alike ones, the nearest come first.
    """
    operations = [] if example is None else example.operations
    culprit = None if example is None else example.culprit or operations[-1]
    middle = spans[-1] if culprit is None else _around(culprit.start_ns, culprit.last_ns)
    told = frozenset[str]().union(*(numbers(value) for op in operations for value in (op.value, op.result)))
    requests = {
        (message.source, message.target, message.number)
        for message in messages
        for op in operations
        if message.answers is None and op.contact is not None and message.target == op.contact.node and not message.between
        if op.start_ns <= message.sent_ns <= op.last_ns and numbers(op.value) <= message.values
    }  # fmt: skip

    def rank(message: Message) -> tuple[bool, bool, bool, int]:
        ends = (message.source, message.target, message.number), (message.target, message.source, message.answers)
        own = not message.between and any(end in requests for end in ends)
        return (
            not own,
            not _near(message.sent_ns, [middle]),
            told.isdisjoint(message.values),
            abs(message.sent_ns - middle[1]),
        )

    kept = sorted(range(len(messages)), key=lambda index: rank(messages[index]))[:MAX_SHOWN]
    return [messages[index] for index in sorted(kept)]  # messages of one time stay in the order of the node's lines


def _of_protocol(record: RunRecord, ready_ns: int) -> list[Span]:
    """Returns the times around the first message against the protocol; no times if there is none."""
    part = next(
        (
            candidate
            for candidate in record.parts
            if candidate.name == PROTOCOL and candidate.verdict is Verdict.INVALID
        ),
        None,
    )
    listed_ones = None if part is None else part.details.get(AGAINST)
    first = listed_ones[0] if isinstance(listed_ones, list) and listed_ones else None
    seconds = first.get("seconds") if isinstance(first, dict) else None
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds <= MAX_S:
        return []
    at_ns = round(seconds * NS_PER_S) - ready_ns
    return [(at_ns - BEFORE_NS, at_ns + AROUND_NS)]


def _near(time_ns: int, spans: Sequence[Span]) -> bool:
    return any(start <= time_ns <= end for start, end in spans)


def _lines(run: Run, path: Path, ready_ns: int, spans: Sequence[Span]) -> list[tuple[int, bool, bytes]]:
    """Returns the lines near some spans or soon after: the time, whether the node wrote it, and the message."""
    lines: list[tuple[int, bool, bytes]] = []
    wide = [(start, end + LATE_NS) for start, end in spans]
    try:
        with below.open_file(run.path, path) as file:
            for line in lines_of(file, most_bytes=MAX_BYTES, most_line=MAX_LINE):
                time_ns = round(line.seconds * NS_PER_S) - ready_ns
                if _near(time_ns, wide):
                    lines.append((time_ns, not line.is_in, line.text))
    except OSError:
        return []
    return lines


def _read(run: Run, nodes: set[str], ready_ns: int, spans: Sequence[Span]) -> Iterator[_Line]:
    """Yields the messages of all nodes near some spans. A message that a node hands on for a client is from this node."""
    for path in log_files(run):
        node = path.parent.name
        if path.name != FILE or node not in nodes:
            continue
        for time_ns, is_out, raw in _lines(run, path, ready_ns, spans):
            read = _message(raw, time_ns, nodes)
            if read is None:
                continue
            message, whole = read
            key = (message.source, message.target, whole)
            is_handed_on = is_out and message.source != node
            if is_handed_on:
                message = replace(
                    message, source=node, text=f"{message.text} as {message.source}",
                    brief=f"{message.brief} as {message.source}"[:MAX_BRIEF], between=message.target in nodes,
                )  # fmt: skip
            yield _Line(message=message, key=key, is_out=is_out, is_handed_on=is_handed_on)


def _message(raw: bytes, time_ns: int, nodes: set[str]) -> tuple[Message, str] | None:
    """Returns the message of a line, and its whole body as JSON; None if it is none."""
    try:
        message = parse_json(raw, "the message")
    except InputError:
        return None
    if not isinstance(message, dict) or not isinstance(message.get("body"), dict):
        return None
    body = dict(message["body"])
    whole = json.dumps(body)
    number, answers = (_integer(body.get(field)) for field in _NUMBERS)
    source, target = name(str(message.get("src"))), name(str(message.get("dest")))
    kind = str(body.pop("type", "?"))
    members = ", ".join(f"{key} {json.dumps(value)}" for key, value in body.items() if key not in _NUMBERS)
    made = Message(
        sent_ns=time_ns,
        source=source,
        target=target,
        text=name(f"{kind} {json.dumps(body)}", MAX_TEXT),
        brief=one_line(f"{kind} {members}".replace('"', ""))[:MAX_BRIEF],
        number=number,
        answers=answers,
        values=frozenset(islice(_scalars(body), MAX_VALUES)),
        arrived_ns=None,
        between=source in nodes and target in nodes,
    )
    return made, whole


def _integer(value: Value) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def numbers(value: Value) -> frozenset[str]:
    """Returns the integers of a value at any depth, as text."""
    texts, due = set(), [value]
    while due:
        one = due.pop()
        if isinstance(one, list | tuple):
            due += one
        elif isinstance(one, int) and not isinstance(one, bool):
            texts.add(str(one))
    return frozenset(texts)


def _scalars(value: Value) -> Iterator[str]:
    """Yields the numbers and texts of a value, without members that number messages."""
    due = [value]
    while due:
        one = due.pop()
        if isinstance(one, dict):
            due += [member for key, member in one.items() if key not in _NUMBERS]
        elif isinstance(one, list):
            due += one
        else:
            yield json.dumps(one)
