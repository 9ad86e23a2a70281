"""Small pictures of the effect of a fault on the cluster: its targets, and the links that still work."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from markupsafe import Markup, escape

from harness.console.plain import name
from results.circumstances.grudges import groups, grudge_of, hears
from results.words.bounds import MAX_NODES, label

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness.faults import FaultRecord
    from harness.op import Value

SIZE = 120
RING = 42
DOT = 13


@dataclass(frozen=True, slots=True)
class _Place:
    x: float
    y: float


def picture(fault: FaultRecord, nodes: Sequence[str], leader: str | None) -> Markup:
    """Draws the cluster during the fault, as a ring of nodes.

    Args:
        fault: The fault. With a grudge, the picture has the links that still worked, one-way links as arrows. Without one, it
            has the links between the other nodes.
        nodes: All nodes.
        leader: The leader at the start of the fault, if it is known; it gets a ring.
    """
    if len(nodes) > MAX_NODES:
        return Markup('<span class="quiet small">{:,} nodes are too many for a picture.</span>').format(len(nodes))
    grudge = grudge_of(fault)
    middle = SIZE / 2
    places = {
        node: _Place(
            middle + RING * math.sin(2 * math.pi * index / len(nodes)),
            middle - RING * math.cos(2 * math.pi * index / len(nodes)),
        )
        for index, node in enumerate(nodes)
    }
    linked = nodes if grudge is not None else [node for node in nodes if node not in fault.targets]
    parts = [_link(places[a], places[b], grudge, a, b) for i, a in enumerate(linked) for b in linked[i + 1 :]]
    parts += [
        Markup('<circle class="{}" cx="{:.1f}" cy="{:.1f}" r="{}"/>{}<text x="{:.1f}" y="{:.1f}">{}</text>').format(
            "hit" if node in fault.targets else "up",
            point.x,
            point.y,
            DOT,
            Markup('<circle class="leads" cx="{:.1f}" cy="{:.1f}" r="{}"/>').format(point.x, point.y, DOT + 3)
            if node == leader
            else "",
            point.x,
            point.y + 3.5,
            name(node, 12),
        )
        for node, point in places.items()
    ]
    return Markup(
        '<svg class="topology" viewBox="0 0 {size} {size}" role="img" aria-label="{label}">'
        '<title>{label}</title><defs><marker id="tip-{id}" viewBox="0 0 6 6" refX="6" refY="3" markerWidth="5"'
        ' markerHeight="5" orient="auto"><path d="M0 0L6 3L0 6z"/></marker></defs>{parts}</svg>'
    ).format(
        size=SIZE,
        label=sentence(fault, nodes, leader),
        id=fault.planned.id,
        parts=Markup("").join(parts).replace(Markup("url(#tip)"), Markup("url(#tip-{})").format(fault.planned.id)),
    )


def sentence(fault: FaultRecord, nodes: Sequence[str], leader: str | None) -> str:
    """Returns the content of the picture as a sentence."""
    grudge = grudge_of(fault)
    hit = ", ".join(map(label, fault.targets[:MAX_NODES])) or "no node"
    text = f"{label(fault.planned.called)} hit {hit}"
    if grudge is not None:
        text = " | ".join(" ".join(map(label, group)) for group in groups(nodes, grudge))
        one_way = [
            f"{label(a)} to {label(b)}"
            for a in nodes
            for b in nodes
            if a != b and hears(grudge, b, a) and not hears(grudge, a, b)
        ]  # fmt: skip
        if one_way:
            text += f"; one way only: {', '.join(one_way)}"
    return f"{text}; {label(leader)} led when it began" if leader else text


def _link(a: _Place, b: _Place, grudge: Mapping[str, Value] | None, first: str, second: str) -> Markup:
    forth = grudge is None or hears(grudge, second, first)
    back = grudge is None or hears(grudge, first, second)
    if not forth and not back:
        return Markup("")
    start, end = (a, b) if forth else (b, a)
    length = math.hypot(end.x - start.x, end.y - start.y) or 1.0
    dx, dy = (end.x - start.x) / length * DOT, (end.y - start.y) / length * DOT
    kind = "both" if forth and back else "one-way"
    tip = "" if forth and back else Markup(' marker-end="url(#tip)"')
    return Markup('<line class="{}" x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}"{}/>').format(
        escape(kind), start.x + dx, start.y + dy, end.x - dx, end.y - dy, tip
    )
