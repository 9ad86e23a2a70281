"""Finds the counterexamples of a run, what contradicts what in them, and their operations as text.

`example_picture` draws them. For registers with unique values, two intervals contradict each other: the one during which the
register must hold a value (from the first end of an operation that observed it to the last start of one), and the one within
which it must hold another value.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import permutations
from typing import TYPE_CHECKING

from checker.models.registers import CasRegister, Register
from checker.words import list_text
from harness.counterexample import counterexample_of
from harness.op import Operation, OpType
from harness.units import NS_PER_MS, NS_PER_S
from harness.verdict import Verdict
from results.words.bounds import label

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness.counterexample import Counterexample, Edge
    from harness.op import Contact, Value
    from results.record.record import RunRecord

SHORT, _LONG = 24, 60
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
    by_number = {operation.invoke_index: operation for operation in operations}
    by_number.update({op.complete_index: op for op in operations if op.complete_index is not None})
    return by_number


def counterexamples_of(record: RunRecord, reason: str) -> Sequence[Counterexample]:
    """Returns the counterexamples of a run's first invalid part that has any.

    Args:
        record: The run. The details of a part that was read from a file are only JSON, and identify operations by indexes.
        reason: The run's sentence, for a counterexample without an explanation.
    """
    for part in record.parts:
        stored = part.details.get("counterexample")
        if part.verdict is not Verdict.INVALID or not stored:
            continue
        if part.counterexamples:
            return part.counterexamples
        operations = by_index(record.operations)
        first = read_counterexample(stored, operations, reason)
        others = part.details.get("counterexamples")
        read = (
            [read_counterexample(other, operations, reason) for other in others[1:]] if isinstance(others, list) else []
        )
        return [] if first is None else [first, *(example for example in read if example is not None)]
    return []


def read_counterexample(value: Value, operations: Mapping[int, Operation], reason: str) -> Counterexample | None:
    """Makes a counterexample from the details of a part.

    Args:
        value: An object with `operations` (and `key`, `explanation`, `op`), or a list of operations. Each operation is an
            object with `invoke_index` (or `index`), which identifies it in the history.
        operations: The run's operations, as `by_index` returns them.
        reason: The part's sentence, if there is no explanation.

    Returns:
        None if none of its operations is in the history.
    """
    listed = value.get("operations") if isinstance(value, dict) else value
    if not isinstance(listed, list):
        return None
    chosen = {id(op): op for op in (_find(entry, operations) for entry in listed) if op is not None}
    members: Mapping[str, Value] = value if isinstance(value, dict) else {}
    return counterexample_of(
        list(chosen.values()),
        explanation=str(members.get("explanation") or reason),
        culprit=_find(members.get("op"), operations),
        subject=members.get("subject"),
        edges=_edges(members.get("edges")),
    )


def _edges(value: Value) -> list[Edge]:
    """Returns the edges of a cycle in the details of a part; what has another form is left out."""
    listed = value if isinstance(value, list) else []
    edges = (edge for edge in listed if isinstance(edge, list) and len(edge) == 3)
    return [
        (first, second, why)
        for first, second, why in edges
        if isinstance(first, int) and isinstance(second, int) and isinstance(why, str)
    ]


def _find(entry: Value, operations: Mapping[int, Operation]) -> Operation | None:
    if not isinstance(entry, dict):
        return None
    index = entry.get("invoke_index", entry.get("index"))
    operation = operations.get(index) if isinstance(index, int) else None
    if operation is None or (entry.get("process", operation.process), entry.get("f", operation.f)) != (
        operation.process,
        operation.f,
    ):
        return None  # an index into another history
    return operation


def operation_text(operation: Operation) -> str:
    """Returns an operation as text: `read → 5`, `write 5`, `cas 3 → 5`, `append 7 → 12`, `txn r x [1 2], append x 3`."""
    value, result = operation.value, operation.result
    if operation.f == _TRANSACTION and isinstance(value, list):
        # The answer repeats the request, with results.
        return f"{operation.f} {cut(', '.join(map(_micro_operation, result or value)), _LONG)}"
    if operation.f == "cas" and isinstance(value, list | tuple) and len(value) == 2:
        return f"cas {short(value[0])} → {short(value[1])}"
    if value is None:
        return f"{operation.f} → {short(result)}" if operation.type is OpType.OK else operation.f
    answer = f" → {short(result)}" if result is not None and result != value else ""
    return f"{operation.f} {short(value)}{answer}"


def place_text(contact: Contact | None) -> str:
    """Returns the node of an operation: ` · n2`, or ` · asked n2` if the history does not say who answered."""
    if contact is None:
        return ""
    return f" · {'' if contact.answered else 'asked '}{label(contact.node)}"


def _micro_operation(value: Value) -> str:
    parts = value if isinstance(value, list) else [value]
    return " ".join("nil" if part is None else list_text(part, _MEMBERS) for part in parts)


def short(value: Value) -> str:
    """Returns a value in a few characters."""
    return cut("nil" if value is None else str(value), SHORT)


def cut(text: str, most: int) -> str:
    """Returns a text with at most so many characters; `…` stands for the rest."""
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
    """Returns whether a run's counterexamples are of a register."""
    deciding = (part for part in record.parts if part.verdict is Verdict.INVALID and part.details.get("counterexample"))
    model = next((part.details.get("model") for part in deciding), None)
    return model in _REGISTERS


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


def span_text(span_ns: int) -> str:
    """Returns a span of time, e.g. `1.3 ms`."""
    if span_ns >= NS_PER_S:
        return f"{span_ns / NS_PER_S:.2f} s"
    return f"{span_ns / NS_PER_MS:.1f} ms" if span_ns >= NS_PER_MS else f"{span_ns / 1000:.0f} µs"
