"""The parts of a register run's verdict.

`checker.linearizable` decides each key. The other parts check whether the run tested anything. If no read returned the write of
another process, or a key was never read after healing, the run is unknown, even if it is linearizable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from checker.identity import identity
from harness.console.plain import counted, counted_of
from harness.op import OpType
from harness.verdict import Part, Verdict

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from harness.op import Operation, Process, Value


def reads_saw_writes(operations: Sequence[Operation]) -> Part:
    """Checks that some read returned a value that another process wrote, and that its own process did not write."""
    writers: dict[tuple[str | None, Hashable], set[Process]] = {}
    for operation in operations:
        if operation.f != "read":
            written = operation.value[1] if operation.f == "cas" else operation.value
            writers.setdefault((operation.key, identity(written)), set()).add(operation.process)
    reads = seen = 0
    for operation in operations:
        if operation.f == "read" and operation.type is OpType.OK:
            reads += 1
            writing = writers.get((operation.key, identity(operation.result)))
            seen += writing is not None and operation.process not in writing
    details: dict[str, Value] = {"reads": reads, "of_others": seen}
    name = "reads-saw-writes"
    if not seen:
        reason = f"None of {counted(reads, 'read')} saw a write of another process, so nothing was tested."
        return Part(name=name, verdict=Verdict.UNKNOWN, reason=reason, details=details)
    reason = f"{counted_of(seen, reads, 'read')} saw a write of another process."
    return Part(name=name, verdict=Verdict.VALID, reason=reason, details=details)
