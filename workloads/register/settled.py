"""Checks registers whose reads may be old, e.g. because each node answers from its own state.

Two things must hold. The changes and the final reads alone are linearizable: a compare-and-set met the value that it expects,
and the final reads, which come after a quiet time, all return the last value. And each other read returns the initial value, or
one that an operation wrote which had begun before the read ended and which did not certainly fail.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from checker.identity import identity
from checker.linearizable import PART, linearizability
from harness.console.documents import shown
from harness.console.plain import counted
from harness.op import FINAL_PHASE, OpType
from harness.verdict import Part

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from harness.faults import FaultRecord
    from harness.op import Operation, Value

SETTLED: Final = "settled"


def settled(model: str, operations: Sequence[Operation], faults: Sequence[FaultRecord]) -> list[Part]:
    """Returns the parts `settled`, `reads-were-written` and, if operations have an order, `order-agrees`.

    Args:
        model: The name of the model of a register.
        operations: All operations of the run.
        faults: The record of each fault that began.
    """
    kept = [operation for operation in operations if operation.f != "read" or operation.phase == FINAL_PHASE]
    parts = linearizability(model, kept, faults)
    return [
        *(_renamed(part, len(operations) - len(kept)) if part.name == PART else part for part in parts),
        reads_were_written(operations),
    ]


def _renamed(part: Part, left_out: int) -> Part:
    reason = f"{part.reason} Of the changes and the final reads; {counted(left_out, 'other read')} may be old."
    return replace(part, name=SETTLED, reason=reason)


def reads_were_written(operations: Sequence[Operation]) -> Part:
    """Checks that each read returned the initial value, or a value that was written before the read ended."""
    begun: dict[tuple[str | None, Hashable], int] = {}
    for operation in operations:
        if operation.f != "read" and operation.type is not OpType.FAIL:
            key_and_value = (operation.key, identity(_written(operation)))
            begun[key_and_value] = min(operation.start_ns, begun.get(key_and_value, operation.start_ns))
    reads = [operation for operation in operations if operation.f == "read" and operation.type is OpType.OK]
    wrong = [
        read
        for read in reads
        if read.result is not None
        and not begun.get((read.key, identity(read.result)), read.end_ns or 0) < (read.end_ns or 0)
    ]
    broken = None
    if wrong:
        first = wrong[0]
        key = "" if first.key is None else f" of the key {shown(first.key, quoted=False)}"
        broken = (
            f"{counted(len(wrong), 'read')} returned a value that nobody had written; the first{key}, by process "
            f"{first.process}, returned {shown(first.result)}."
        )
    return Part.of(
        "reads-were-written",
        {"reads": len(reads), "unexpected": len(wrong)},
        held=f"Each of {counted(len(reads), 'read')} returned a value that was written, or the initial one.",
        untested=None if reads else "No read succeeded, so none was checked.",
        broken=broken,
    )


def _written(change: Operation) -> Value:
    """Returns the value that a write or a compare-and-set writes."""
    return change.value[1] if change.f == "cas" else change.value
