"""Draws the messages around a violation as a sequence diagram.

Time goes down, in order and not to scale. A message is an arrow from where it was sent to where it arrived; an answer is
dashed. A lost message ends in a cross, with the reason as far as the faults of the run say it. The operations of the violation
are bars on the lifelines of their clients.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from markupsafe import Markup

from harness.console.plain import name, one_line
from harness.op import OpType
from harness.units import NS_PER_S
from results.circumstances.fates import KILLS, PAUSES, does
from results.page.sequence_rows import ARRIVED, BEGINS, BREAK, EDGE, ENDS, SENT, diagram_of
from results.record.counterexample import operation_text, span_text
from results.words.bounds import label

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.counterexample import Counterexample
    from harness.faults import FaultRecord
    from harness.op import Operation
    from results.circumstances.messages import Message, Nearby
    from results.page.sequence_rows import Diagram, Row

TIMES: Final = 78  # the width of the times
BAR: Final = 13  # the width of a fault's bar, with its distance
ROOM: Final = 205  # left of the first lifeline, for the operations
HEAD: Final = 52
FOOT: Final = 34
LEAST_WIDTH, MOST_WIDTH = 165, 250
WHOLE: Final = 1120
CHARACTER: Final = 6.1  # the width of one at 11 px
COLOURS: Final = 6
MAX_TITLE: Final = 500
MAX_TARGETS: Final = 8  # of a fault, by name
CROSS_AT: Final = 0.7  # of the way to its receiver


def sequence(
    nearby: Nearby, nodes: Sequence[str], example: Counterexample | None, faults: Sequence[FaultRecord]
) -> tuple[Markup, Diagram] | None:
    """Draws the messages as SVG; returns it and what it shows. None if there are no messages.

    Args:
        nearby: The messages.
        nodes: The names of the nodes, in order.
        example: The violation; None: a message against the protocol.
        faults: The faults of the run.
    """
    diagram = diagram_of(nearby, nodes, example, faults) if nearby.messages else None
    if diagram is None or not diagram.rows:
        return None
    return _Drawing(diagram, example).svg(), diagram


class _Drawing:
    """The parts of one picture."""

    def __init__(self, diagram: Diagram, example: Counterexample | None) -> None:
        self._of = diagram
        self._culprit = None if example is None or example.culprit is None else example.culprit.invoke_index
        self._left = TIMES + BAR * len(diagram.faults)
        clients = bool(diagram.operations)
        first = self._left + (ROOM if clients else 90)
        self._step = max(LEAST_WIDTH, min(MOST_WIDTH, (WHOLE - first - 90) // max(1, len(diagram.lanes) - 1)))
        self._x = [first + number * self._step for number in range(len(diagram.lanes))]
        self._width = self._x[-1] + 110
        self._height = HEAD + diagram.height + FOOT
        self._rows: dict[tuple[str, int], Row] = {
            (row.kind, row.place): row for row in diagram.rows if row.kind != EDGE
        }
        self._requests = {request: number for number, (request, _) in diagram.asked.items()}
        self._answers = {answer: number for number, (_, answer) in diagram.asked.items() if answer is not None}

    def svg(self) -> Markup:
        """Returns the picture."""
        parts = [*self._lifelines(), *self._bands(), *self._times()]
        heads = Markup('<g class="heads"><rect class="behind" width="{w}" height="{h}"/>{names}</g>').format(
            w=self._width, h=HEAD - 12, names=Markup("").join(self._heads(8))
        )
        parts += [self._operation(number, operation) for number, operation in enumerate(self._of.operations)]
        parts += [self._message(number, message) for number, message in enumerate(self._of.messages)]
        return Markup(
            '<svg class="sequence" viewBox="0 0 {w} {h}" width="{w}" height="{h}" role="img"'
            ' aria-label="The messages around the violation"><defs>{tips}</defs>{parts}</svg>'
        ).format(
            w=self._width,
            h=self._height,
            tips=Markup("").join(
                Markup(
                    '<marker id="tip-{kind}" class="{kind}" viewBox="0 0 8 8" refX="7.5" refY="4" markerWidth="8"'
                    ' markerHeight="8" orient="auto"><path d="M0 0L8 4L0 8z"/></marker>'
                ).format(kind=kind)
                for kind in ("plain", "own", "bad")
            ),
            parts=Markup("").join([*parts, *self._heads(HEAD + self._of.height), heads]),
        )

    def _y(self, row: Row) -> int:
        return HEAD + row.y

    def _lifelines(self) -> list[Markup]:
        return [
            Markup('<line class="life" x1="{x}" x2="{x}" y1="{y}" y2="{end}"/>').format(
                x=x, y=HEAD - 12, end=HEAD + self._of.height
            )
            for x in self._x
        ]

    def _heads(self, y: int) -> list[Markup]:
        """Draws the names of the lifelines in a row; at the top, they stay in view while the picture moves."""
        parts = []
        for x, names in zip(self._x, self._of.lanes, strict=True):
            text = label(names[0]) if len(names) == 1 else "clients"
            is_node = names[0] in self._of.nodes
            parts.append(
                Markup(
                    '<rect class="head {kind}" x="{left}" y="{y}" width="92" height="26" rx="6"/>'
                    '<text class="name"{mark} x="{x}" y="{ty}">{text}</text>'
                ).format(
                    kind="node" if is_node else "other", left=x - 46, y=y, x=x, ty=y + 17, text=_cut(text, 12),
                    mark=Markup(' data-node=""') if is_node else "",
                )
            )  # fmt: skip
        return parts

    def _bands(self) -> list[Markup]:
        """Draws the faults: a bar with a number at the left, and a band on the lifeline of each node that is down or paused."""
        parts = []
        edges = {(row.place, row.begins): row for row in self._of.rows if row.kind == EDGE}
        for number, fault in enumerate(self._of.faults):
            begins, ends = edges.get((number, True)), edges.get((number, False))
            top = HEAD - 8 if begins is None else self._y(begins) - 5
            bottom = HEAD + self._of.height if ends is None else self._y(ends) - 5
            colour = fault.planned.id % COLOURS
            x = TIMES + number * BAR
            parts.append(
                Markup(
                    '<rect class="fault" style="fill:var(--fault-{colour})" x="{x}" y="{y}" width="{w}" height="{h}" rx="2">'
                    '<title>{name}</title></rect><text class="fault-number" x="{tx}" y="{ty}">{id}</text>'
                ).format(
                    colour=colour, x=x, y=top, w=BAR - 3, h=max(12, bottom - top), name=fault_text(fault),
                    tx=x + (BAR - 3) / 2, ty=top + 10, id=fault.planned.id,
                )
            )  # fmt: skip
            state = "down" if does(fault, KILLS) else "paused" if does(fault, PAUSES) else None
            hit = [self._x[self._of.lane_of[node]] for node in fault.targets if node in self._of.lane_of]
            parts += [self._band(x, top, bottom, state, colour) for x in hit if state is not None]
            parts += [self._edge(row, fault, colour) for row in (begins, ends) if row is not None]
        return parts

    def _band(self, x: int, top: int, bottom: int, state: str, colour: int) -> Markup:
        text = (
            Markup('<text class="state" transform="translate({x} {y}) rotate(-90)">{state}</text>').format(
                x=x - 10, y=(top + bottom) / 2, state=state
            )
            if bottom - top >= 50
            else Markup("")
        )
        return Markup(
            '<rect class="band" style="fill:var(--fault-{colour})" x="{x}" y="{y}" width="14" height="{h}"><title>{state}'
            "</title></rect>{text}"
        ).format(colour=colour, x=x - 7, y=top, h=max(3, bottom - top), state=state, text=text)

    def _edge(self, row: Row, fault: FaultRecord, colour: int) -> Markup:
        return Markup(
            '<line class="edge" style="stroke:var(--fault-{colour})" x1="{x1}" x2="{x2}" y1="{y}" y2="{y}"/>'
            '<text class="edge-text" x="{tx}" y="{ty}">fault {id} {what}: {name}</text>'
        ).format(
            colour=colour,
            x1=TIMES,
            x2=self._width - 8,
            y=self._y(row) - 5,
            tx=self._left + 8,
            ty=self._y(row) - 8 + 2,
            id=fault.planned.id,
            what="begins" if row.begins else "ends",
            name=f"{label(fault.planned.called)} on {', '.join(map(label, fault.targets[:6]))}",
        )

    def _times(self) -> list[Markup]:
        parts, shown_ns = [], -1
        for row in self._of.rows:
            y = self._y(row)
            if row.kind == BREAK:
                parts.append(
                    Markup(
                        '<path class="break" d="M4 {y}H{w}"/><text class="break-text" x="{x}" y="{ty}">{text} later</text>'
                    ).format(y=y - 20, w=self._width - 8, x=TIMES - 6, ty=y - 6, text=span_text(row.place))
                )
                shown_ns = -1
            elif row.time_ns // 1000 != shown_ns:
                shown_ns = row.time_ns // 1000
                parts.append(
                    Markup('<text class="time" x="{x}" y="{y}">{time:.6f} s</text>').format(
                        x=TIMES - 6, y=y - 1 if row.kind != EDGE else y - 3, time=row.time_ns / NS_PER_S
                    )
                )
        return parts

    def _kind(self, number: int) -> str:
        """Returns the look of a message: `bad` for the operation that could not have happened, `own` for the others."""
        operation = self._requests.get(number, self._answers.get(number))
        if operation is None:
            return "plain"
        return "bad" if self._of.operations[operation].invoke_index == self._culprit else "own"

    def _message(self, number: int, message: Message) -> Markup:
        sent = self._rows[SENT, number]
        x1, x2 = (self._x[self._of.lane_of[end]] for end in (message.source, message.target))
        y1 = y2 = self._y(sent)
        arrived = self._rows.get((ARRIVED, number))
        if arrived is not None:
            y2 = self._y(arrived)
        if number in self._requests:  # it left its client after the operation began
            y1 = self._y(self._rows[BEGINS, self._requests[number]])
        ended = self._rows.get((ENDS, self._answers[number])) if number in self._answers else None
        if ended is not None:
            y2 = self._y(ended)
        kind = self._kind(number)
        if x1 == x2:
            return self._to_itself(message, x1, y1, max(y2, y1 + 8), kind)
        way = 1 if x2 > x1 else -1
        room = int((abs(x2 - x1) - 22) / CHARACTER)
        who = "" if {message.source, message.target} <= self._of.nodes or kind != "plain" else self._client(message)
        who += " (arrival unknown)" if message.is_open else ""
        text = _text(
            message, x1 + 9 * way, y1 - 4, _cut(f"{message.brief}{who}", room), anchor="start" if way > 0 else "end"
        )
        if message.is_lost:
            x2, y2 = x1 + round((x2 - x1) * CROSS_AT), y1 + 5
            cross = Markup('<path class="cross" d="M{x} {y}l8 8M{x} {b}l8 -8"/>{why}').format(
                x=x2 - 4, y=y2 - 4, b=y2 + 4, why=_why(message, x2 - 8 * way, y2 + 12, way)
            )
            return Markup('<g class="msg lost"><line x1="{}" y1="{}" x2="{}" y2="{}"/>{}{}</g>').format(
                x1, y1, x2, y2, cross, text
            )
        return Markup(
            '<g class="msg {kind}{dashed}"><line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" marker-end="url(#tip-{kind})"/>'
            "{text}</g>"
        ).format(
            kind=kind,
            dashed=" answer" if message.answers is not None else "",
            x1=x1,
            y1=y1,
            x2=x2 - 2 * way,
            y2=y2,
            text=text,
        )

    def _client(self, message: Message) -> str:
        """Returns the name of the client of a message whose lifeline several clients share, as an addition to its label."""
        outer = message.source if message.source not in self._of.nodes else message.target
        shared = len(self._of.lanes[self._of.lane_of[outer]]) > 1
        return f" ({outer})" if shared and outer not in self._of.nodes else ""

    def _to_itself(self, message: Message, x: int, y1: int, y2: int, kind: str) -> Markup:
        if message.is_lost:
            y2 = y1 + 8
        return Markup(
            '<g class="msg {kind}"><path d="M{x} {y1}h26V{y2}H{end}" marker-end="url(#tip-{kind})"/>{text}</g>'
        ).format(
            kind=kind, x=x, y1=y1, y2=y2, end=x + 2,
            text=_text(message, x + 9, y1 - 4, _cut(message.brief, self._step // 7), anchor="start"),
        )  # fmt: skip

    def _operation(self, number: int, operation: Operation) -> Markup:
        x = (
            self._x[self._of.lane_of[self._of.clients[number]]]
            if self._of.clients[number] in self._of.lane_of
            else None
        )
        begins = self._rows.get((BEGINS, number))
        if x is None or begins is None:
            return Markup("")
        ends = self._rows.get((ENDS, number))
        top = self._y(begins)
        bottom = HEAD + self._of.height if ends is None else self._y(ends)
        bad = operation.invoke_index == self._culprit
        room = int((ROOM if x == self._x[0] else self._step - 24) / CHARACTER) - 2
        said = {OpType.OK: f"ok: {operation_text(operation)}", OpType.FAIL: "fails"}.get(
            operation.type, "gets no answer"
        )
        mark = Markup('<text class="own-text" x="{x}" y="{y}">{text}</text>')
        parts = [
            mark.format(x=x - 12, y=top + 4, text=_cut(f"process {operation.process}: {operation.f} begins", room))
        ]
        if ends is not None:
            text = _cut(f"{'✗ ' if bad else ''}{said}", room)
            parts.append(mark.format(x=x - 12, y=bottom + 4, text=text))
        return Markup(
            '<g class="op {type}{bad}"><rect x="{x}" y="{y}" width="10" height="{h}" rx="3"/>{parts}</g>'
        ).format(
            type=str(operation.type),
            bad=" culprit" if bad else "",
            x=x - 5,
            y=top,
            h=max(4, bottom - top),
            parts=Markup("").join(parts),
        )


def fault_text(fault: FaultRecord) -> str:
    """Returns a fault with its targets and its times, e.g. `kill of n0, n1, 2.138 s to 4.903 s`."""
    on = ", ".join(map(label, fault.targets[:MAX_TARGETS])) or "no node"
    what = label(fault.planned.called)
    return f"{what} of {on}, {fault.start_ns / NS_PER_S:.3f} s to {fault.end_ns / NS_PER_S:.3f} s"


def _why(message: Message, x: float, y: float, way: int) -> Markup:
    return Markup('<text class="why" x="{x}" y="{y}" text-anchor="{anchor}">{text}</text>').format(
        x=x, y=y, anchor="end" if way > 0 else "start", text=message.lost or "did not arrive"
    )


def _text(message: Message, x: float, y: float, text: str, *, anchor: str) -> Markup:
    return Markup('<text x="{x}" y="{y}" text-anchor="{anchor}">{text}<title>{whole}</title></text>').format(
        x=x, y=y, anchor=anchor, text=one_line(text), whole=name(message.shown, MAX_TITLE)
    )


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: max(1, most - 1)]}…"
