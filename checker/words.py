"""Operations, values and times as text for explanations.

Values have the notation of Jepsen: `nil`, `true`, `[1 2]`. A time has three decimals, or more if two times of a sentence would
look alike. A history without times shows the numbers of its events instead.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from checker.identity import same
from harness.op import OpType

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from harness.op import Operation, Value

_NS_DIGITS: Final = 9
_LEAST_DIGITS: Final = 3
_SHOWN: Final = 60
MAX_LIST: Final = 12  # elements of a list of a transaction; a longer one shows its last elements
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.*+!?<>=-]{0,39}")
_CONSTANTS: Final = frozenset({"nil", "true", "false"})
_WITHOUT_VALUE: Final = frozenset({"acquire", "release"})
_TAKES: Final = frozenset({"read", "get", "dequeue"})  # functions whose value is their result
_PAST: Final = {
    "read": "read",
    "get": "got",
    "write": "wrote",
    "enqueue": "enqueued",
    "dequeue": "dequeued",
    "add": "added",
    "append": "appended",
    "put": "put",
    "acquire": "acquired the lock",
    "release": "released the lock",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Instant:
    """The time of an event.

    Attributes:
        time_ns: Its time; None in a history without times.
        index: Its place among the events; None for a missing end.
    """

    time_ns: int | None
    index: int | None


def began(op: Operation) -> Instant:
    """Returns the start of an operation."""
    return Instant(time_ns=op.start_ns if _timed(op) else None, index=op.invoke_index)


def ended(op: Operation) -> Instant:
    """Returns the end of an operation."""
    return Instant(time_ns=op.end_ns if _timed(op) else None, index=op.complete_index)


def _timed(op: Operation) -> bool:
    return bool(op.end_ns or op.start_ns)


def sentence(*parts: str | Instant) -> str:
    """Returns the text of parts, with a capital letter at the beginning; different instants look different."""
    instants = {part for part in parts if isinstance(part, Instant)}
    digits = _digits({part.time_ns for part in instants if part.time_ns is not None})
    text = "".join(part if isinstance(part, str) else _instant(part, digits, instants) for part in parts)
    return text[:1].upper() + text[1:]


def _digits(times_ns: set[int]) -> int:
    for digits in range(_LEAST_DIGITS, _NS_DIGITS):
        if len({_seconds(time_ns, digits) for time_ns in times_ns}) == len(times_ns):
            return digits
    return _NS_DIGITS


def _seconds(time_ns: int, digits: int) -> str:
    """Returns a time in seconds, rounded as an integer, so that a later time never looks earlier."""
    unit: int = 10 ** (_NS_DIGITS - digits)
    whole, rest = divmod((time_ns + unit // 2) // unit, 10**digits)
    return f"{whole}.{rest:0{digits}d}"


def _instant(instant: Instant, digits: int, others: set[Instant]) -> str:
    if instant.time_ns is None:
        return "an unknown time" if instant.index is None else f"event {instant.index}"
    text = f"{_seconds(instant.time_ns, digits)} s"
    alike = any(other.time_ns == instant.time_ns and other != instant for other in others)
    return f"{text} (event {instant.index})" if alike else text


def value_text(value: Value) -> str:
    """Returns a value in the notation of Jepsen; a long one is cut."""
    text = _value(value, _SHOWN)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def list_text(value: Value, most: int = MAX_LIST) -> str:
    """Returns a list, with only the last elements of a long one; nil is the empty list."""
    if value is None:
        return "[]"
    if isinstance(value, list) and len(value) > most:
        return f"[… {' '.join(map(value_text, value[-most:]))}]"
    return value_text(value)


def _value(value: Value, room: int) -> str:
    if value is None:
        return "nil"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value if _NAME.fullmatch(value) and value not in _CONSTANTS else json.dumps(value, ensure_ascii=False)
    if isinstance(value, list | tuple):
        return f"[{_joined((_value(member, room) for member in value[:room]), room)}]"
    if isinstance(value, dict):
        members = (f"{_value(name, room)} {_value(member, room)}" for name, member in list(value.items())[:room])
        return "{" + _joined(members, room, ", ") + "}"
    return str(value)


def _joined(members: Iterable[str], room: int, between: str = " ") -> str:
    """Joins texts up to a maximum length."""
    text = ""
    for member in members:
        text += f"{between if text else ''}{member}"
        if len(text) > room:
            break
    return text


def what(op: Operation) -> str:
    """Returns an operation as a noun phrase, e.g. `process 3's write of 7`."""
    return f"process {op.process}'s {_name(op)}"


def _name(op: Operation) -> str:
    answered = op.type is OpType.OK and op.result is not None
    if op.f in _WITHOUT_VALUE and op.value is None:
        return op.f
    if op.f == "cas" and isinstance(op.value, list | tuple) and len(op.value) == 2:
        return f"cas from {value_text(op.value[0])} to {value_text(op.value[1])}"
    if op.f == "txn":
        return f"transaction {value_text(op.result if answered else op.value)}"
    if op.f in _TAKES and op.type is OpType.OK:
        return f"{op.f} of {'nothing' if op.f == 'dequeue' and op.result is None else value_text(op.result)}"
    name = op.f if op.value is None else f"{op.f} of {value_text(op.value)}"
    if answered and not same(op.result, op.value):  # a completion repeats the value of its invoke
        return f"{name} that returned {value_text(op.result)}"
    return name


def kind_text(op: Operation) -> str:
    """Returns an operation without its process, e.g. `write of 7`."""
    return _name(op)


def did(op: Operation) -> str:
    """Returns an operation that returned as a clause, e.g. `process 3 wrote 7`."""
    who = f"process {op.process}"
    if op.f == "cas":
        return f"{what(op)} succeeded"
    if op.f in _WITHOUT_VALUE and op.value is None:
        return f"{who} {_PAST[op.f]}"
    if op.f == "dequeue" and op.result is None:
        return f"{who} found the queue empty"
    if op.f in _TAKES:
        return f"{who} {_PAST[op.f]} {value_text(op.result)}"
    if op.f in _PAST:
        return f"{who} {_PAST[op.f]} {value_text(op.value)}"
    return f"{what(op)} completed"


def span(op: Operation) -> tuple[str | Instant, ...]:
    """Returns an operation with its interval, e.g. `process 3's write of 7 (0.010 s to 0.015 s)`."""
    if op.type is OpType.INFO or op.complete_index is None:
        return (f"{what(op)} (from ", began(op), ", it never returned)")
    return (f"{what(op)} (", began(op), " to ", ended(op), ")")


def listed(operations: Sequence[Operation], most: int) -> list[str | Instant]:
    """Returns the first few of some operations with their intervals."""
    parts: list[str | Instant] = []
    for op in operations[:most]:
        parts += ["; " if parts else "", *span(op)]
    if len(operations) > most:
        parts.append(f"; and {len(operations) - most} more")
    return parts
