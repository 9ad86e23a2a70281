"""The messages around a violation as rows of a sequence diagram: lifelines, moments in their order, and the operations.

The axis of time is not to scale. Each sending, each arrival, and each edge of an operation or a fault has its own row, in the
order of time. A history does not name the clients. So an operation belongs to a request only if no other request fits: by its
node, its time, and the numbers in the request and in the answer.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING, Final

from harness.op import OpType
from harness.units import NS_PER_MS
from results.circumstances.faults import on_during
from results.circumstances.messages import numbers

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from harness.counterexample import Counterexample
    from harness.faults import FaultRecord
    from harness.op import Operation
    from results.circumstances.messages import Message, Nearby

SENT: Final = "sent"
ARRIVED: Final = "arrived"
BEGINS: Final = "begins"
ENDS: Final = "ends"
EDGE: Final = "edge"
BREAK: Final = "break"
HEIGHTS: Final = {SENT: 25, ARRIVED: 13, BEGINS: 22, ENDS: 22, EDGE: 17, BREAK: 36}
LOST_HEIGHT: Final = 14  # for the line that says why a message is lost
MAX_LANES: Final = 16
MAX_FAULTS: Final = 8
LEAST_BREAK_NS: Final = 5 * NS_PER_MS
MAX_BREAKS: Final = 6
BREAK_TIMES: Final = 8  # a pause of so many times the usual distance of two rows is a break
MANY: Final = 50  # numbers of a result; more are not compared


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A moment.

    Attributes:
        time_ns: Its time on the run's clock.
        kind: One of the constants of this module.
        y: Its place from the top of the rows.
        place: Which message, operation or fault it is about, as an index into those of the diagram.
        begins: Of an edge: whether the fault begins.
    """

    time_ns: int
    kind: str
    y: int
    place: int = 0
    begins: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagram:
    """What a sequence diagram shows.

    Attributes:
        lanes: The lifelines from the left, see `_lanes`: the names of clients that follow each other, of one node, or of one
            service.
        lane_of: The lifeline of each name.
        nodes: The names of nodes among them.
        messages: The messages.
        operations: The operations of the violation.
        asked: By the index of an operation: the index of its request, and of its answer if there is one.
        clients: By the index of an operation: the name of its lifeline.
        faults: The faults that were on.
        rows: The moments.
        height: The height of all rows.
        left_out: How many messages have no lifeline.
    """

    lanes: Sequence[tuple[str, ...]]
    lane_of: Mapping[str, int]
    nodes: frozenset[str]
    messages: Sequence[Message]
    operations: Sequence[Operation]
    asked: Mapping[int, tuple[int, int | None]]
    clients: Mapping[int, str]
    faults: Sequence[FaultRecord]
    rows: Sequence[Row]
    height: int
    left_out: int


def diagram_of(
    nearby: Nearby, nodes: Sequence[str], example: Counterexample | None, faults: Sequence[FaultRecord]
) -> Diagram:
    """Returns what to draw.

    Args:
        nearby: The messages, at least one.
        nodes: The names of the nodes, in order.
        example: The violation; None: a message against the protocol.
        faults: The faults of the run.
    """
    messages = list(nearby.messages)
    operations = list(example.operations) if example is not None else []
    asked = _asked(operations, messages)
    taken = {operation: messages[request].source for operation, (request, _) in asked.items()}
    clients = {index: taken.get(index, f"process {op.process}") for index, op in enumerate(operations)}
    lanes = _lanes(messages, operations, clients, nodes)
    lane_of = {name: index for index, names in enumerate(lanes) for name in names}
    drawn = [message for message in messages if message.source in lane_of and message.target in lane_of]
    if len(drawn) < len(messages):
        asked = _asked(operations, drawn)
    times = [message.sent_ns for message in drawn] + [time for op in operations for time in (op.start_ns, op.last_ns)]
    on = on_during(faults, min(times), max(times) + 1)[:MAX_FAULTS] if times else []
    rows = list(_placed(_moments(drawn, operations, on), drawn))
    return Diagram(
        lanes=lanes,
        lane_of=lane_of,
        nodes=frozenset(nodes),
        messages=drawn,
        operations=operations,
        asked=asked,
        clients=clients,
        faults=on,
        rows=rows,
        height=rows[-1].y + HEIGHTS[SENT] + LOST_HEIGHT if rows else 0,
        left_out=len(messages) - len(drawn),
    )


def _asked(operations: Sequence[Operation], messages: Sequence[Message]) -> dict[int, tuple[int, int | None]]:
    """Returns the request and the answer of each operation that has exactly one request that fits."""
    answers: dict[tuple[str, str, int | None], int] = {
        (message.target, message.source, message.answers): index
        for index, message in enumerate(messages)
        if message.answers is not None
    }
    exchanges: dict[int, tuple[int, int | None]] = {}
    for number, operation in enumerate(operations):
        contact = operation.contact
        if contact is None:
            continue
        fitting = []
        for index, message in enumerate(messages):
            if message.target != contact.node or not operation.start_ns <= message.sent_ns <= operation.last_ns:
                continue
            if message.answers is not None or message.between or not numbers(operation.value) <= message.values:
                continue
            answer = answers.get((message.source, message.target, message.number))
            if _answered(operation, None if answer is None else messages[answer]):
                fitting.append((index, answer))
        named = [pair for pair in fitting if messages[pair[0]].text.split(" ")[0] == operation.f]
        best = named or fitting
        if len(best) == 1:
            exchanges[number] = best[0]
    return exchanges


def _answered(operation: Operation, answer: Message | None) -> bool:
    """Returns whether an answer, or its absence, fits an operation."""
    if operation.type is not OpType.OK:
        return True
    if answer is None or answer.sent_ns > operation.last_ns:
        return False
    values = numbers(operation.result) if operation.result != operation.value else frozenset[str]()
    return len(values) > MANY or values <= answer.values


def _lanes(
    messages: Sequence[Message], operations: Sequence[Operation], clients: Mapping[int, str], nodes: Sequence[str]
) -> list[tuple[str, ...]]:
    """Returns the lifelines: clients of the violation, nodes, other clients, services. Clients after each other share one.

    The nodes stand beside the violation, so that a picture of many clients opens with both in view.
    """
    spans: dict[str, tuple[int, int]] = {}

    def seen(name: str, first_ns: int, last_ns: int) -> None:
        first, last = spans.get(name, (first_ns, last_ns))
        spans[name] = min(first, first_ns), max(last, last_ns)

    ends = [(message.source, message.target, message.answers is None) for message in messages]
    asking = {source if asks else target for source, target, asks in ends} - set(nodes)
    services = sorted({target if asks else source for source, target, asks in ends} - set(nodes) - asking)
    for message in messages:
        for name in {message.source, message.target} - set(services):
            seen(name, message.sent_ns, message.sent_ns if message.arrived_ns is None else message.arrived_ns)
    own = set(clients.values())
    for index, operation in enumerate(operations):
        seen(clients[index], operation.start_ns, operation.last_ns)
    taking_part = [name for name in nodes if name in spans]
    room = max(1, MAX_LANES - len(taking_part) - len(services))
    lanes: list[list[str]] = []
    for _, _, _, name in sorted((name not in own, *spans[name], name) for name in spans if name not in nodes):
        free = next((names for names in lanes if _is_free(names, spans, name)), None)
        if free is not None:
            free.append(name)
        elif len(lanes) < room:
            lanes.append([name])
    first = [names for names in lanes if not own.isdisjoint(names)]
    others = [names for names in lanes if own.isdisjoint(names)]
    ordered = [*first, *([name] for name in taking_part), *others, *([name] for name in services)]
    return [tuple(names) for names in ordered[:MAX_LANES]]


def _is_free(names: Sequence[str], spans: Mapping[str, tuple[int, int]], name: str) -> bool:
    first_ns, last_ns = spans[name]
    return all(spans[other][1] < first_ns or last_ns < spans[other][0] for other in names)


@dataclass(frozen=True, slots=True, order=True)
class _Moment:
    time_ns: int
    rank: int
    number: int
    kind: str = field(compare=False)
    place: int = field(compare=False)
    begins: bool = field(compare=False, default=False)


def _moments(
    messages: Sequence[Message], operations: Sequence[Operation], faults: Sequence[FaultRecord]
) -> list[_Moment]:
    """Returns all moments in their order. At one time, faults come first, then arrivals: what they cause comes later."""
    moments: list[_Moment] = []
    for index, message in enumerate(messages):
        moments.append(_Moment(message.sent_ns, 2, index, SENT, index))
        if message.arrived_ns is not None:
            moments.append(_Moment(message.arrived_ns, 1, index, ARRIVED, index))
    for index, operation in enumerate(operations):
        moments.append(_Moment(operation.start_ns, 1, index, BEGINS, index))
        if operation.end_ns is not None:
            moments.append(_Moment(operation.end_ns, 3, index, ENDS, index))
    if not moments:
        return []
    first_ns, last_ns = min(moments).time_ns, max(moments).time_ns
    for index, fault in enumerate(faults):
        for edge_ns, begins in ((fault.start_ns, True), (fault.end_ns, False)):
            if first_ns <= edge_ns <= last_ns:
                moments.append(_Moment(edge_ns, 0, index, EDGE, index, begins))
    return sorted(moments)


def _placed(moments: Sequence[_Moment], messages: Sequence[Message]) -> Iterator[Row]:
    """Yields the rows, with a break before each moment that comes long after the one before."""
    times = [moment.time_ns for moment in moments if moment.kind != EDGE]
    steps = [later - earlier for earlier, later in pairwise(times) if later > earlier]
    long_ns = max(LEAST_BREAK_NS, BREAK_TIMES * median(steps)) if steps else LEAST_BREAK_NS
    long_ns = max([long_ns, *sorted(steps, reverse=True)[MAX_BREAKS : MAX_BREAKS + 1]])
    y, seen, broken = 0, 0, False
    for moment in moments:
        before_ns, next_ns = times[max(0, seen - 1)], times[min(seen, len(times) - 1)]
        if not broken and next_ns - before_ns > long_ns:
            y += HEIGHTS[BREAK]
            broken = True
            yield Row(time_ns=before_ns, kind=BREAK, y=y, place=next_ns - before_ns)
        y += HEIGHTS[moment.kind]
        yield Row(time_ns=moment.time_ns, kind=moment.kind, y=y, place=moment.place, begins=moment.begins)
        if moment.kind != EDGE:
            seen, broken = seen + 1, False
        if moment.kind == SENT and messages[moment.place].is_lost:
            y += LOST_HEIGHT
