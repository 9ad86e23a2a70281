"""The events of faults in a history: `start-<kind>` and `stop-<kind>` of the nemesis.

Only this module writes and reads the names of these events. A history may come from anyone, so an event of another form counts
as no event of a fault.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from harness.faults import FaultRecord, PlannedFault
from harness.op import NEMESIS
from harness.targets import Named
from harness.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harness.op import Op, Value

_START: Final = "start-"
_STOP: Final = "stop-"
_MAX_KIND: Final = 100
_MAX_NUMBER: Final = 2**63


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultEvent:
    """One event of a fault.

    Attributes:
        fault: The fault's number in the plan.
        kind: Its kind.
        begins: Whether the fault begins; else it ends.
        targets: The nodes that it hits, as far as the event has them.
    """

    fault: int
    kind: str
    begins: bool
    targets: tuple[str, ...]


def event_name(kind: str, *, begins: bool) -> str:
    """Returns the function of a fault's event in a history."""
    return f"{_START if begins else _STOP}{kind}"


def fault_event(f: Value, value: Value) -> FaultEvent | None:
    """Returns the fault of an event of the nemesis; None if the event has another form.

    Args:
        f: The event's function.
        value: Its value.
    """
    number = value.get("fault") if isinstance(value, dict) else None
    if not isinstance(f, str) or not isinstance(number, int) or isinstance(number, bool) or abs(number) >= _MAX_NUMBER:
        return None
    begins = f.startswith(_START)
    targets = value.get("targets")
    return FaultEvent(
        fault=number,
        kind=f.removeprefix(_START if begins else _STOP)[:_MAX_KIND],
        begins=begins,
        targets=tuple(str(target) for target in targets) if isinstance(targets, list) else (),
    )


def fault_records(ops: Iterable[Op]) -> list[FaultRecord]:
    """Returns the faults of a history: kinds, targets and times, without proofs."""
    begun: dict[int, tuple[int, FaultEvent]] = {}
    ended_ns: dict[int, int] = {}
    last_ns = 0
    for op in ops:
        last_ns = op.time_ns
        event = fault_event(op.f, op.value) if op.process == NEMESIS else None
        if event is None:
            continue
        if event.begins:
            begun[event.fault] = begun.get(event.fault, (op.time_ns, event))[0], event
        else:
            ended_ns[event.fault] = op.time_ns
    return [
        FaultRecord(
            planned=PlannedFault(
                id=number,
                kind=event.kind,
                target=Named(event.targets),
                start_s=start_ns / NS_PER_S,
                end_s=ended_ns.get(number, last_ns) / NS_PER_S,
            ),
            targets=event.targets,
            start_ns=start_ns,
            end_ns=ended_ns.get(number, last_ns),
            proof=None,
            error="the run ended before this fault's proof was recorded",
        )
        for number, (start_ns, event) in begun.items()
    ]
