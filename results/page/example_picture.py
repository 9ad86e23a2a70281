"""Draws a counterexample: its operations as bars over time, and the contradiction between them.

The time axis shows ranks: every begin or end of an operation has its own column, in the true order. On a linear axis, the few
relevant milliseconds would vanish beside seconds. Labels below show the real times. The edges of a cycle are arrows between the
bars, behind their texts; each reason stands near the beginning of its arrow, so that two opposite arrows keep theirs apart.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final

from markupsafe import Markup

from harness.op import OpType
from harness.units import NS_PER_S
from results.page import fault_bands
from results.record.counterexample import SHORT, cut, operation_text, place_text, precedence, short, span_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness.counterexample import Counterexample
    from harness.faults import FaultRecord
    from harness.op import Operation
    from results.record.counterexample import Zone

LEFT, RIGHT, ROW, BAR, BAND = 196, 44, 54, 26, 34
MIN_COLUMN, WIDTH = 58, 900
LEAST_SCALE: Final = 0.66  # a picture that needs more room scrolls, because its texts would be too small
CYCLE_ROW: Final = 92  # leaves room for arrows and their reasons
_BEGIN: Final = 0.3  # where the reason of an arrow stands, from its beginning
_CHARACTER: Final = 7.6  # the mean width of a character of a label
MAX_WHO: Final = 22  # characters that fit beside the bands


def diagram(example: Counterexample, zones: Sequence[Zone], faults: Sequence[FaultRecord] = ()) -> Markup:
    """Draws the example as SVG.

    Args:
        example: The example.
        zones: What `contradiction` returns.
        faults: The faults of the run; those that were on during the example are bands behind it.
    """
    shown = example.operations
    columns = _columns(shown)
    last_x = max(columns.values())
    behind = fault_bands.bands(example, faults)
    names_end = len(behind) * fault_bands.ROW
    top = 16 + names_end
    tall = CYCLE_ROW if example.edges else ROW
    height = top + len(zones) * BAND + (len(shown) - 1) * tall + ROW
    width = last_x + RIGHT
    parts = fault_bands.drawn(behind, columns, top=names_end + 2, height=height, width=width)
    parts += [
        Markup('<line class="tick" x1="{x:.1f}" y1="{top}" x2="{x:.1f}" y2="{y}"/>').format(
            x=x, top=names_end + 4, y=height
        )
        for x in columns.values()
    ]
    parts += [_zone(zone, columns, top - 4 + number * BAND, width) for number, zone in enumerate(zones)]
    top += len(zones) * BAND
    ordered = dict.fromkeys(operation for first, second, _ in example.edges for operation in (first, second))
    names = {operation: f"T{number} · " for number, operation in enumerate(ordered, 1)}
    arrows, reasons = _cycle(example, columns, top, last_x)
    parts += arrows
    for row, op in enumerate(shown):
        name, is_culprit = names.get(op.invoke_index, ""), op is example.culprit and not example.edges
        parts.append(_bar(op, columns, top + row * tall, culprit=is_culprit, last_x=last_x, name=name))
    parts += reasons
    if not example.edges:
        for a, b in precedence(shown):
            parts.append(_arrow(shown[a], shown[b], columns, top + a * tall, top + b * tall))
    parts += _axis(columns, height)
    return Markup(
        '<svg class="example" viewBox="0 0 {width:.0f} {height}" style="min-width:{least:.0f}px" role="img"'
        ' aria-label="{label}">'
        '<defs><marker id="before" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0L8 4L0 8z"/></marker><linearGradient id="fade"><stop offset="0" class="f0"/>'
        '<stop offset="1" class="f1"/></linearGradient></defs>{parts}</svg>'
    ).format(
        width=width,
        least=width * LEAST_SCALE,
        height=height + 44,
        label=example.explanation,
        parts=Markup("").join(parts),
    )


def _columns(operations: Sequence[Operation]) -> dict[int, float]:
    instants = sorted({op.start_ns for op in operations} | {op.end_ns for op in operations if op.end_ns is not None})
    room = max(MIN_COLUMN, (WIDTH - LEFT - RIGHT) / max(1, len(instants) - 1))
    return {instant: LEFT + number * room for number, instant in enumerate(instants)}


def _zone(zone: Zone, columns: Mapping[int, float], y: float, width: float) -> Markup:
    x1, x2 = columns[zone.start_ns], columns[zone.end_ns]
    text = (
        f"the register must hold {short(zone.value)} throughout"
        if zone.forward
        else f"it must hold {short(zone.value)} somewhere in here"
    )
    half = len(text) * _CHARACTER / 2  # a name without room beside its zone, or in it, stays within the picture
    middle = (x1 + x2) / 2 if zone.forward or x1 - 2 * half < 10 else x1 - 6 - half
    return Markup(
        '<rect class="zone {kind}" x="{x:.1f}" y="{y}" width="{w:.1f}" height="{h}" rx="3"/>'
        '<text class="zone-name" x="{tx:.1f}" y="{ty}" text-anchor="middle">{text}</text>'
    ).format(
        kind="forward" if zone.forward else "backward",
        x=x1,
        y=y,
        w=max(2.0, x2 - x1),
        h=BAND - 10,
        tx=max(4 + half, min(middle, width - 4 - half)),
        ty=y + 16,
        text=text,
    )


def _cycle(
    example: Counterexample, columns: Mapping[int, float], top: float, last_x: float
) -> tuple[list[Markup], list[Markup]]:
    """Returns the edges of a cycle as arrows between bars, side by side, and their reasons."""
    rows = {op.invoke_index: (row, op) for row, op in enumerate(example.operations)}
    arrows, reasons = [], []
    for number, (first, second, why) in enumerate(example.edges, 1):
        (from_row, from_op), (to_row, to_op) = rows[first], rows[second]
        share = number / (len(example.edges) + 1)
        down = to_row > from_row
        from_x, to_x = _along(from_op, columns, share, last_x), _along(to_op, columns, share, last_x)
        from_y = top + from_row * CYCLE_ROW + 12 + (BAR if down else 0)
        to_y = top + to_row * CYCLE_ROW + 12 + (0 if down else BAR)
        arrows.append(
            Markup('<path class="edge" d="M{:.1f} {:.1f}L{:.1f} {:.1f}"/>').format(from_x, from_y, to_x, to_y)
        )
        # An arrow over several rows has its reason in the first gap that it crosses.
        begin = _BEGIN if abs(to_row - from_row) == 1 else (CYCLE_ROW - BAR) / 2 / max(1.0, abs(to_y - from_y))
        reasons.append(
            Markup('<text class="edge-name" x="{:.1f}" y="{:.1f}">{}</text>').format(
                from_x + begin * (to_x - from_x), from_y + begin * (to_y - from_y) + 4, cut(why, SHORT)
            )
        )
    return arrows, reasons


def _along(op: Operation, columns: Mapping[int, float], share: float, last_x: float) -> float:
    """Returns a place on the bar of an operation, from 0, its beginning, to 1."""
    begin = columns[op.start_ns]
    return begin + share * ((last_x if op.end_ns is None else columns[op.end_ns]) - begin)


def _bar(
    op: Operation, columns: Mapping[int, float], y: float, *, culprit: bool, last_x: float, name: str = ""
) -> Markup:
    x1 = columns[op.start_ns]
    x2 = columns[op.end_ns] if op.end_ns is not None else last_x
    where, took = f"{name}process {op.process}", str(op.type)
    if op.end_ns is not None:
        took = f"{op.type}, {span_text(op.end_ns - op.start_ns)}"
    tail: Markup | str = ""
    if op.type is OpType.INFO:
        took = "info: may still take effect"
        tail = Markup('<rect class="tail" x="{:.1f}" y="{}" width="{}" height="{}"/>').format(x2, y + 12, RIGHT, BAR)
    if name:  # it leaves no room for the node
        took += place_text(op.contact)
    else:
        where += place_text(op.contact)
    text = operation_text(op)
    half = len(text) * _CHARACTER / 2  # a label that is wider than its bar stays within the picture
    middle = max(LEFT - 4 + half, min((x1 + x2) / 2, last_x + RIGHT - 4 - half))
    return Markup(
        '<g class="{kind}{bad}"><text class="who" data-node="" x="{left}" y="{ty}">{where}<title>{whole}</title></text>'
        '<text class="took" x="{left}" y="{ty2}">{took}</text>'
        '<rect x="{x:.1f}" y="{y}" width="{w:.1f}" height="{h}" rx="4"/>{tail}'
        '<text class="label" x="{mx:.1f}" y="{my}">{text}</text></g>'
    ).format(
        kind=str(op.type),
        bad=" culprit" if culprit else "",
        left=4,
        ty=y + 23,
        ty2=y + 37,
        where=cut(where, MAX_WHO),
        whole=where,
        took=cut(took, MAX_WHO + 3),
        x=x1,
        y=y + 12,
        w=max(3.0, x2 - x1),
        h=BAR,
        tail=tail,
        mx=middle,
        my=y + 30,
        text=text,
    )


def _arrow(first: Operation, second: Operation, columns: Mapping[int, float], y1: float, y2: float) -> Markup:
    x1, x2 = columns[first.last_ns], columns[second.start_ns]
    from_y, to_y = y1 + 12 + BAR / 2, y2 + 12 + BAR / 2
    bend = (x1 + x2) / 2
    return Markup('<path class="before" d="M{:.1f} {:.1f}C{:.1f} {:.1f} {:.1f} {:.1f} {:.1f} {:.1f}"/>').format(
        x1, from_y, bend, from_y, bend, to_y, x2, to_y
    )


def _axis(columns: Mapping[int, float], y: float) -> list[Markup]:
    instants = list(columns)
    labels = [
        Markup('<text class="time" x="{:.1f}" y="{}">{:.6f} s</text>').format(
            columns[instant], y + (15 if number % 2 == 0 else 29), instant / NS_PER_S
        )
        for number, instant in enumerate(instants)
    ]
    gaps = [
        Markup('<text class="gap" x="{:.1f}" y="{}">{}</text>').format(
            (columns[a] + columns[b]) / 2, y + 42, f"+{span_text(b - a)}"
        )
        for a, b in pairwise(instants)
    ]
    return [*labels, *gaps]
