"""Outages: faults that leave no quorum of the nodes up, e.g. a loss of power of all nodes.

While such a fault is on, nothing can succeed. So it tests what is there after it, and not how the system works during it. A run
observes that by reads after the fault that show what was acknowledged before.

- A fault is an outage only by its proof: so many processes vanished that neither a majority nor the system's own quorum ran.
- A read counts if it began after the end of the outage, if a change of its key was acknowledged before the begin, and, where a
  change replaces what was there, if no other change of this key may have happened since. It also counts if it returns the value
  of a write that was acknowledged before, and no such other change leaves this value.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.op import OpType

if TYPE_CHECKING:
    from collections.abc import Sequence
    from collections.abc import Set as AbstractSet

    from harness.faults import FaultRecord
    from harness.op import Operation, Value
    from harness.service import Service
    from harness.workload import Workload

    # A key with a value that a change left there; None: with whatever value.
    _Left = tuple[str | None, int | str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """What clients use in a run.

    Attributes:
        role: The role of the processes that serve them.
        nodes: The names of the nodes of these processes.
        quorum: At how many of these nodes clients must be served.
        reads: The functions that only read.
        replaces: Whether a change of a key replaces what was there, as a write of a register does.
    """

    role: str
    nodes: frozenset[str]
    quorum: int
    reads: AbstractSet[str]
    replaces: bool

    @classmethod
    def of(cls, front: Service, workload: Workload) -> Serving:
        """Returns what the clients of a workload use."""
        return cls(
            role=front.role,
            nodes=frozenset(node.name for node in front.nodes),
            quorum=front.quorum(),
            reads=frozenset(getattr(workload, "final", ())),
            # A judge looks for each element that was added; a model knows only the state after the last change.
            replaces=workload.model is not None,
        )

    def is_outage(self, fault: FaultRecord) -> bool:
        """Returns whether a fault provably left fewer processes than a quorum, and no majority of them."""
        if not fault.is_proven or fault.planned.role not in {None, self.role}:
            return False
        up = len(self.nodes.difference(fault.stopped))
        return up < min(self.quorum, len(self.nodes) // 2 + 1)

    def reads_after(self, outages: Sequence[FaultRecord], operations: Sequence[Operation]) -> int:
        """Returns how many successful reads show, after an outage, what was acknowledged before it.

        Args:
            outages: The outages.
            operations: The operations of the clients that count.
        """
        reads = [operation for operation in operations if operation.type is OpType.OK and operation.f in self.reads]
        changes = [
            operation for operation in operations if operation.type is not OpType.FAIL and operation.f not in self.reads
        ]
        observed: set[int] = set()
        for outage in outages:
            # What acknowledged changes before the outage left, and the first begin of one that may have happened since.
            acknowledged: set[_Left] = set()
            since_ns: dict[_Left, int] = {}
            for change in changes:
                lefts = (change.key, None), (change.key, _value_left(change))
                if change.end_ns is None or change.end_ns > outage.start_ns:
                    since_ns |= {left: min(change.start_ns, since_ns.get(left, change.start_ns)) for left in lefts}
                elif change.type is OpType.OK:
                    acknowledged.update(lefts)
            observed |= {
                read.invoke_index
                for read in reads
                if read.start_ns >= outage.end_ns
                and any(
                    left in acknowledged and not (self.replaces and since_ns.get(left, read.last_ns) < read.last_ns)
                    for left in ((read.key, None), (read.key, _scalar(read.result)))
                )
            }
        return len(observed)


def _value_left(change: Operation) -> int | str | None:
    """Returns the value that a write or a compare-and-set of a register leaves; None for another change."""
    if change.f == "cas" and isinstance(change.value, list) and len(change.value) == 2:
        return _scalar(change.value[1])
    return _scalar(change.value) if change.f == "write" else None


def _scalar(value: Value) -> int | str | None:
    return value if isinstance(value, int | str) else None
