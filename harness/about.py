"""What a violation without a counterexample is about: its time, its nodes and its operations.

A part of the verdict that compares nodes has it in its details, as `about`, so that `labrys explain` and the report can show
what happened then: the faults, the polls, the logs and, in the simulator, the states of the nodes. Details may come from
anyone, so what has another form counts as nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from harness.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from harness.op import Operation, Value

MEMBER: Final = "about"
MAX_NODES: Final = 25
MAX_EVENTS: Final = 12
MAX_S: Final = 1e9


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """What a violation is about.

    Attributes:
        from_ns: The start of its time, on the run's clock.
        to_ns: The end of its time.
        nodes: The names of its nodes.
        events: The indexes of the invokes of its operations.
    """

    from_ns: int
    to_ns: int
    nodes: tuple[str, ...] = ()
    events: tuple[int, ...] = ()

    def to_json(self) -> dict[str, Value]:
        """Returns it as JSON values, for the details of a part."""
        return {
            "from_s": self.from_ns / NS_PER_S,
            "to_s": self.to_ns / NS_PER_S,
            "nodes": list(self.nodes),
            "events": list(self.events),
        }


def about_operations(operations: Iterable[Operation]) -> About | None:
    """Returns what a violation of some operations is about; None if there are none."""
    shown = list(operations)[:MAX_EVENTS]
    if not shown:
        return None
    nodes = dict.fromkeys(operation.contact.node for operation in shown if operation.contact is not None)
    return About(
        from_ns=min(operation.start_ns for operation in shown),
        to_ns=max(operation.last_ns for operation in shown),
        nodes=tuple(nodes),
        events=tuple(operation.invoke_index for operation in shown),
    )


def read_about(details: Mapping[str, Value]) -> About | None:
    """Returns what the details of a part say; None if they say nothing, or not in this form."""
    stored = details.get(MEMBER)
    if not isinstance(stored, dict):
        return None
    from_ns, to_ns = _time(stored.get("from_s")), _time(stored.get("to_s"))
    if from_ns is None or to_ns is None or to_ns < from_ns:
        return None
    nodes, events = stored.get("nodes"), stored.get("events")
    return About(
        from_ns=from_ns,
        to_ns=to_ns,
        nodes=tuple(node for node in nodes if isinstance(node, str))[:MAX_NODES] if isinstance(nodes, list) else (),
        events=tuple(event for event in events if type(event) is int)[:MAX_EVENTS] if isinstance(events, list) else (),
    )


def _time(value: Value) -> int | None:
    is_time = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < MAX_S
    return round(value * NS_PER_S) if is_time else None
