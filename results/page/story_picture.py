"""The story of a violation as a picture: a row for each node, a column for each moment, in the order of time.

The time axis is not to scale, because the relevant milliseconds would vanish beside seconds. A ring marks the leader that a
poll saw. If the run was simulated, a cell has the node's exact role, the last index of its log, and the last index that it
knows to be committed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from markupsafe import Markup

from harness.node_states import DEAD, PAUSED
from results.page.story import FAULT, LEADER, LOG, OPERATION, at
from results.words.bounds import MAX_NODES, label
from results.words.formatting import in_term

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness.node_states import NodeState
    from results.page.story import Moment

LEFT, TOP, ROW, COLUMN = 70, 34, 40, 62
LEAST_SCALE: Final = 0.75  # a picture that needs more room scrolls, because its texts would be too small
_COLOURS = {"leader": "var(--accent)", "candidate": "var(--info)", "follower": "var(--soft)"}


def picture(moments: Sequence[Moment], nodes: Sequence[str]) -> Markup:
    """Draws the moments as SVG.

    Args:
        moments: The events, in the order of time; the number of a column is the place of its event, from 1.
        nodes: The names of the nodes, in order.
    """
    rows = {label(name): TOP + number * ROW for number, name in enumerate(nodes[:MAX_NODES])}
    width, height = LEFT + max(1, len(moments)) * COLUMN + 10, TOP + len(rows) * ROW + 30
    parts = [_row(name, y, width) for name, y in rows.items()]
    parts += _bars(moments, rows)
    for number, moment in enumerate(moments):
        parts += _column(number, moment, rows, height)
    return Markup(
        '<svg class="story" viewBox="0 0 {w} {h}" style="min-width:{least:.0f}px;max-width:{w}px" role="img"'
        ' aria-label="The nodes at each moment">{parts}</svg>'
    ).format(w=width, h=height, least=width * LEAST_SCALE, parts=Markup("").join(parts))


def _row(name: str, y: int, width: int) -> Markup:
    return Markup(
        '<text data-node="" x="12" y="{ty}" style="fill:var(--ink);font:600 12px system-ui">{name}</text>'
        '<line x1="{left}" x2="{right}" y1="{y}" y2="{y}" style="stroke:var(--line)"/>'
    ).format(ty=y + 20, name=name, left=LEFT - 10, right=width, y=y + ROW - 2)


def _bars(moments: Sequence[Moment], rows: Mapping[str, int]) -> list[Markup]:
    """Draws each fault from its start to its end, on the nodes that it hit."""
    parts: list[Markup] = []
    begun: dict[str, int] = {}
    for number, moment in enumerate(moments):
        if moment.kind != FAULT:
            continue
        name = moment.text.partition(")")[0]
        if name not in begun:
            begun[name] = number
            continue
        start = begun.pop(name)
        parts += [_bar(f"{name})", start, number, rows[node]) for node in moment.nodes if node in rows]
    return parts


def _bar(name: str, start: int, end: int, y: int) -> Markup:
    return Markup(
        '<rect x="{x}" y="{y}" width="{w}" height="{h}" rx="3" style="fill:var(--fault-2);opacity:.28">'
        "<title>{name}</title></rect>"
    ).format(x=_x(start), y=y + 2, w=_x(end) - _x(start) + 4, h=ROW - 6, name=name)


def _column(number: int, moment: Moment, rows: Mapping[str, int], height: int) -> list[Markup]:
    x = _x(number)
    strong = "var(--invalid)" if moment.culprit else "var(--faint)"
    parts = [
        Markup(
            '<text x="{x}" y="16" text-anchor="middle" style="fill:{colour};font:600 12px system-ui">{number}'
            "<title>{time}: {text}</title></text>"
            '<text x="{x}" y="{ty}" text-anchor="middle" style="fill:var(--faint);font:10px system-ui">{time}</text>'
        ).format(
            x=x, ty=height - 10, colour=strong, number=number + 1, time=at(moment.time_ns)[:-5] + " s", text=moment.text
        )
    ]
    looked = moment.state.nodes[:MAX_NODES] if moment.state is not None else ()
    parts += [_cell(x, rows[label(node.node)], node) for node in looked if label(node.node) in rows]
    if moment.kind == LOG:
        parts += [_line(x, rows[node], in_cell=bool(looked)) for node in moment.nodes if node in rows]
    if moment.kind in {LEADER, OPERATION}:
        parts += [_mark(x, rows[node], moment) for node in moment.nodes if node in rows]
    return parts


def _cell(x: int, y: int, node: NodeState) -> Markup:
    if node.process == DEAD:
        text, fill = "dead", "none"
    else:
        text = "?" if node.last is None else f"{node.last}/{node.committed if node.committed is not None else '?'}"
        fill = _COLOURS.get(node.role or "", "var(--soft)")
    ink = "#fff" if node.role == "leader" and node.process != DEAD else "var(--ink)"
    return Markup(
        '<rect x="{x}" y="{y}" width="50" height="{h}" rx="4" style="fill:{fill};stroke:var(--line);{dash}"/>'
        '<text x="{tx}" y="{ty}" text-anchor="middle" style="fill:{ink};font:11px system-ui">{text}'
        "<title>{node} {role}{term}, {value}</title></text>"
    ).format(
        x=x - 25, y=y + 6, h=ROW - 16, fill=fill, dash="stroke-dasharray:3 2" if node.process in {DEAD, PAUSED} else "",
        tx=x, ty=y + 22, ink=ink, text=text, node=label(node.node), role=label(node.role or node.process),
        term=in_term(node.term), value=label(node.value or ""),
    )  # fmt: skip


def _mark(x: int, y: int, moment: Moment) -> Markup:
    colour = "var(--invalid)" if moment.culprit else "var(--accent)" if moment.kind == LEADER else "var(--ok)"
    if moment.state is not None:
        return Markup(
            '<rect x="{x}" y="{y}" width="54" height="{h}" rx="5" style="fill:none;stroke:{colour};stroke-width:2.5"/>'
        ).format(x=x - 27, y=y + 4, h=ROW - 12, colour=colour)
    shape = "none" if moment.kind == LEADER else colour
    return Markup('<circle cx="{x}" cy="{y}" r="7" style="fill:{fill};stroke:{colour};stroke-width:2.5"/>').format(
        x=x, y=y + 18, fill=shape, colour=colour
    )


def _line(x: int, y: int, *, in_cell: bool) -> Markup:
    """Draws the mark of a line of a log; at the corner of a cell, because its middle has the indexes."""
    return Markup(
        '<rect class="log" x="{x}" y="{y}" width="8" height="8" style="fill:var(--faint);stroke:var(--card)"/>'
    ).format(x=x + 20 if in_cell else x - 4, y=y + 2 if in_cell else y + 14)


def _x(number: int) -> int:
    return LEFT + number * COLUMN + COLUMN // 2
