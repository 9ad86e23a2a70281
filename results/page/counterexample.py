"""Draws a counterexample: its operations as bars over time, and the contradiction between them.

The time axis shows ranks: every begin or end of an operation has its own column, in the true order. On a linear axis, the few
relevant milliseconds would vanish beside seconds. Labels below show the real times. For registers with unique values, the
diagram also shows the contradiction: the interval during which the register must hold a value (from the first end of an
operation that observed it to the last start of one), and the interval within which it must hold another value.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import pairwise, permutations
from typing import TYPE_CHECKING

from markupsafe import Markup

from checker.explain.words import list_text
from checker.models.registers import CasRegister, Register
from harness.counterexample import counterexample_of
from harness.op import Operation, OpType
from harness.units import NS_PER_MS, NS_PER_S
from harness.verdict import Verdict
from results.page import fault_bands
from results.page.bounds import label

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness.counterexample import Counterexample, Edge
    from harness.faults import FaultRecord
    from harness.op import Contact, Value
    from results.store.record import RunRecord

LEFT, RIGHT, ROW, BAR, BAND = 168, 34, 54, 26, 34
MIN_COLUMN, WIDTH = 58, 900
_SHORT, _LONG = 24, 60
_MEMBERS = 3  # of a list in a transaction
_TRANSACTION = "txn"
_WRITES = {"write", "w", "put", "set"}
_READS = {"read", "r", "get"}
_REGISTERS = frozenset(model.name for model in (Register, CasRegister))


@dataclass(frozen=True, slots=True, kw_only=True)
class Zone:
    """The interval in which operations show that the register held a value.

    Attributes:
        value: The value.
        start_ns: Forward: the earliest end of an operation with this value. Backward: the latest start.
        end_ns: Forward: the latest start of an operation with this value. Backward: the earliest end.
        forward: True: the register held it throughout. False: it held it at some instant in between.
    """

    value: Value
    start_ns: int
    end_ns: int
    forward: bool


def by_index(operations: Sequence[Operation]) -> Mapping[int, Operation]:
    """Returns operations by the index of each of their events."""
    found = {operation.invoke_index: operation for operation in operations}
    found.update({op.complete_index: op for op in operations if op.complete_index is not None})
    return found


def counterexamples_of(record: RunRecord, reason: str) -> Sequence[Counterexample]:
    """Returns the counterexamples of a run's first invalid part that has any.

    Args:
        record: The run. The details of a part that was read from a file are only JSON, and identify operations by indexes.
        reason: The run's sentence, for a counterexample without an explanation.
    """
    for part in record.parts:
        found = part.details.get("counterexample")
        if part.verdict is not Verdict.INVALID or not found:
            continue
        if part.counterexamples:
            return part.counterexamples
        operations = by_index(record.operations)
        first = read_counterexample(found, operations, reason)
        others = part.details.get("counterexamples")
        read = (
            [read_counterexample(each, operations, reason) for each in others[1:]] if isinstance(others, list) else []
        )
        return [] if first is None else [first, *(example for example in read if example is not None)]
    return []


def read_counterexample(found: Value, operations: Mapping[int, Operation], reason: str) -> Counterexample | None:
    """Makes a counterexample from the details of a part.

    Args:
        found: An object with `operations` (and `key`, `explanation`, `op`), or a list of operations. Each operation is an
            object with `invoke_index` (or `index`), which identifies it in the history.
        operations: The run's operations, as `by_index` returns them.
        reason: The part's sentence, if there is no explanation.

    Returns:
        None if none of its operations is in the history.
    """
    listed = found.get("operations") if isinstance(found, dict) else found
    if not isinstance(listed, list):
        return None
    chosen = {id(op): op for op in (_find(entry, operations) for entry in listed) if op is not None}
    members: Mapping[str, Value] = found if isinstance(found, dict) else {}
    return counterexample_of(
        list(chosen.values()),
        explanation=str(members.get("explanation") or reason),
        culprit=_find(members.get("op"), operations),
        subject=members.get("subject"),
        edges=_edges(members.get("edges")),
    )


def _edges(found: Value) -> list[Edge]:
    """Returns the edges of a cycle in the details of a part; what has another form is left out."""
    listed = found if isinstance(found, list) else []
    edges = (each for each in listed if isinstance(each, list) and len(each) == 3)
    return [
        (first, second, why)
        for first, second, why in edges
        if isinstance(first, int) and isinstance(second, int) and isinstance(why, str)
    ]


def _find(entry: Value, operations: Mapping[int, Operation]) -> Operation | None:
    if not isinstance(entry, dict):
        return None
    index = entry.get("invoke_index", entry.get("index"))
    found = operations.get(index) if isinstance(index, int) else None
    if found is None or (entry.get("process", found.process), entry.get("f", found.f)) != (found.process, found.f):
        return None  # an index into another history
    return found


def operation_text(operation: Operation) -> str:
    """Returns an operation as text: `read → 5`, `write 5`, `cas 3 → 5`, `append 7 → 12`, `txn r x [1 2], append x 3`."""
    value, result = operation.value, operation.result
    if operation.f == _TRANSACTION and isinstance(value, list):
        # The answer repeats the request, with results.
        return f"{operation.f} {_cut(', '.join(map(_micro_operation, result or value)), _LONG)}"
    if operation.f == "cas" and isinstance(value, list | tuple) and len(value) == 2:
        return f"cas {_short(value[0])} → {_short(value[1])}"
    if value is None:
        return f"{operation.f} → {_short(result)}" if operation.type is OpType.OK else operation.f
    answer = f" → {_short(result)}" if result is not None and result != value else ""
    return f"{operation.f} {_short(value)}{answer}"


def place_text(contact: Contact | None) -> str:
    """Returns the node of an operation: ` · n2`, or ` · asked n2` if the history does not say who answered."""
    if contact is None:
        return ""
    return f" · {'' if contact.answered else 'asked '}{label(contact.node)}"


def _micro_operation(value: Value) -> str:
    parts = value if isinstance(value, list) else [value]
    return " ".join("nil" if part is None else list_text(part, _MEMBERS) for part in parts)


def _short(value: Value) -> str:
    return _cut("nil" if value is None else str(value), _SHORT)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def precedence(operations: Sequence[Operation]) -> list[tuple[int, int]]:
    """Returns the pairs of operations where the first ended before the second began, without transitive pairs."""
    before = {
        (a, b)
        for a, first in enumerate(operations)
        for b, second in enumerate(operations)
        if first.end_ns is not None and first.type is not OpType.INFO and first.end_ns < second.start_ns
    }
    return sorted(
        (a, b)
        for a, b in before
        if not any((a, c) in before and (c, b) in before for c in range(len(operations)))
    )  # fmt: skip


def is_of_register(record: RunRecord) -> bool:
    """Returns whether a run's counterexamples are of a register; earlier versions had no other model and do not record it."""
    deciding = (part for part in record.parts if part.verdict is Verdict.INVALID and part.details.get("counterexample"))
    model = next((part.details.get("model") for part in deciding), None)
    return model is None or model in _REGISTERS


def contradiction(example: Counterexample, operations: Sequence[Operation]) -> list[Zone]:
    """Returns two zones that contradict each other, if the example is of a register with unique values; else none.

    Two intervals throughout which the register held different values must not overlap. And a value cannot have been held only
    within an interval of another value (Gibbons and Korach, 1997).
    """
    writers = Counter(
        _written(op)
        for op in operations
        if op.key == example.key and op.type is not OpType.FAIL and _written(op) is not None
    )
    observed = {repr(value) for op in example.operations if op.type is OpType.OK for value in _known(op)}
    known: dict[str, tuple[Value, list[Operation]]] = {}
    for op in example.operations:
        if op.type is OpType.INFO and _written(op) not in observed:
            continue  # it may never have taken effect
        for value in _known(op):
            known.setdefault(repr(value), (value, []))[1].append(op)
    zones = []
    for name, (value, knowing) in known.items():
        initial = value is None and writers[name] == 0
        ends = [op.last_ns for op in knowing if op.type is OpType.OK]
        if not ends or (writers[name] != 1 and not initial):
            continue
        # The register held the initial value before everything.
        finish_ns = example.operations[0].start_ns if initial else min(ends)
        start_ns = max(op.start_ns for op in knowing)
        zones.append(
            Zone(
                value=value,
                start_ns=min(finish_ns, start_ns),
                end_ns=max(finish_ns, start_ns),
                forward=finish_ns < start_ns,
            )
        )
    return next(([a, b] for a, b in permutations(zones, 2) if _contradict(a, b)), [])


def _contradict(throughout: Zone, other: Zone) -> bool:
    if not throughout.forward:
        return False
    if other.forward:
        return throughout.start_ns < other.end_ns and other.start_ns < throughout.end_ns
    return throughout.start_ns < other.start_ns and other.end_ns < throughout.end_ns


def _written(op: Operation) -> str | None:
    if op.f in _WRITES:
        return repr(op.value)
    if op.f == "cas" and isinstance(op.value, list | tuple) and len(op.value) == 2:
        return repr(op.value[1])
    return None


def _known(op: Operation) -> list[Value]:
    """Returns the values that the register held when the operation took effect, or just before or after it."""
    if op.type is OpType.FAIL:
        return []
    if op.f in _READS:
        return [op.result] if op.type is OpType.OK else []
    if op.f in _WRITES:
        return [op.value]
    if op.f == "cas" and isinstance(op.value, list | tuple) and len(op.value) == 2:
        return list(op.value)
    return []


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
    top = 16 + len(behind) * fault_bands.ROW
    height = top + len(zones) * BAND + len(shown) * ROW
    parts = fault_bands.drawn(behind, columns, height)
    parts += [
        Markup('<line class="tick" x1="{x:.1f}" y1="4" x2="{x:.1f}" y2="{y}"/>').format(x=x, y=height)
        for x in columns.values()
    ]
    parts += [_zone(zone, columns, top - 4 + number * BAND) for number, zone in enumerate(zones)]
    top += len(zones) * BAND
    firsts = dict.fromkeys(first for first, _, _ in example.edges)
    names = {first: f"T{number} · " for number, first in enumerate(firsts, 1)}
    for row, op in enumerate(shown):
        name, is_culprit = names.get(op.invoke_index, ""), op is example.culprit and not example.edges
        parts.append(_bar(op, columns, top + row * ROW, culprit=is_culprit, last_x=last_x, name=name))
    if example.edges:
        parts += _cycle(example, columns, top, last_x)
    else:
        for a, b in precedence(shown):
            parts.append(_arrow(shown[a], shown[b], columns, top + a * ROW, top + b * ROW))
    parts += _axis(columns, height)
    return Markup(
        '<svg class="example" viewBox="0 0 {width:.0f} {height}" role="img" aria-label="{label}">'
        '<defs><marker id="before" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0L8 4L0 8z"/></marker><linearGradient id="fade"><stop offset="0" class="f0"/>'
        '<stop offset="1" class="f1"/></linearGradient></defs>{parts}</svg>'
    ).format(width=last_x + RIGHT, height=height + 44, label=example.explanation, parts=Markup("").join(parts))


def _columns(operations: Sequence[Operation]) -> dict[int, float]:
    instants = sorted({op.start_ns for op in operations} | {op.end_ns for op in operations if op.end_ns is not None})
    room = max(MIN_COLUMN, (WIDTH - LEFT - RIGHT) / max(1, len(instants) - 1))
    return {instant: LEFT + number * room for number, instant in enumerate(instants)}


def _zone(zone: Zone, columns: Mapping[int, float], y: float) -> Markup:
    x1, x2 = columns[zone.start_ns], columns[zone.end_ns]
    text = (
        f"the register must hold {_short(zone.value)} throughout"
        if zone.forward
        else f"it must hold {_short(zone.value)} somewhere in here"
    )
    return Markup(
        '<rect class="zone {kind}" x="{x:.1f}" y="{y}" width="{w:.1f}" height="{h}" rx="3"/>'
        '<text class="zone-name" x="{tx:.1f}" y="{ty}" text-anchor="{anchor}">{text}</text>'
    ).format(
        kind="forward" if zone.forward else "backward",
        x=x1,
        y=y,
        w=max(2.0, x2 - x1),
        h=BAND - 10,
        tx=(x1 + x2) / 2 if zone.forward else x1 - 6,
        ty=y + 16,
        anchor="middle" if zone.forward else "end",
        text=text,
    )


def _cycle(example: Counterexample, columns: Mapping[int, float], top: float, last_x: float) -> list[Markup]:
    """Draws the edges of a cycle as arrows between bars, side by side, each with its reason."""
    rows = {op.invoke_index: (row, op) for row, op in enumerate(example.operations)}
    parts = []
    for number, (first, second, why) in enumerate(example.edges, 1):
        (from_row, from_op), (to_row, to_op) = rows[first], rows[second]
        share = number / (len(example.edges) + 1)
        down = to_row > from_row
        from_x, to_x = _along(from_op, columns, share, last_x), _along(to_op, columns, share, last_x)
        from_y = top + from_row * ROW + 12 + (BAR if down else 0)
        to_y = top + to_row * ROW + 12 + (0 if down else BAR)
        parts.append(
            Markup(
                '<path class="edge" d="M{:.1f} {:.1f}L{:.1f} {:.1f}"/><text class="edge-name" x="{:.1f}" y="{:.1f}">{}</text>'
            ).format(from_x, from_y, to_x, to_y, (from_x + to_x) / 2 + 6, (from_y + to_y) / 2 + 4, _cut(why, _SHORT))
        )
    return parts


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
        took = "info: may take effect at any time after its start"
        tail = Markup('<rect class="tail" x="{:.1f}" y="{}" width="{}" height="{}"/>').format(x2, y + 12, RIGHT, BAR)
    if name:  # it leaves no room for the node
        took += place_text(op.contact)
    else:
        where += place_text(op.contact)
    return Markup(
        '<g class="{kind}{bad}"><text class="who" x="{left}" y="{ty}">{where}</text>'
        '<text class="took" x="{left}" y="{ty2}">{took}</text>'
        '<rect x="{x:.1f}" y="{y}" width="{w:.1f}" height="{h}" rx="4"/>{tail}'
        '<text class="label" x="{mx:.1f}" y="{my}">{text}</text></g>'
    ).format(
        kind=str(op.type),
        bad=" culprit" if culprit else "",
        left=4,
        ty=y + 23,
        ty2=y + 37,
        where=where,
        took=took,
        x=x1,
        y=y + 12,
        w=max(3.0, x2 - x1),
        h=BAR,
        tail=tail,
        mx=(x1 + x2) / 2,
        my=y + 30,
        text=operation_text(op),
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


def span_text(span_ns: int) -> str:
    """Returns a span of time, e.g. `1.3 ms`."""
    if span_ns >= NS_PER_S:
        return f"{span_ns / NS_PER_S:.2f} s"
    return f"{span_ns / NS_PER_MS:.1f} ms" if span_ns >= NS_PER_MS else f"{span_ns / 1000:.0f} µs"
