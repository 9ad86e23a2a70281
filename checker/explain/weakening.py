"""Counts the operations whose meaning a convention weakens.

Examples are a read of nil taken as a read of any value, and an ignored failed compare-and-set or crashed dequeue. Each may hide
a contradiction. So the result has their number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from checker.models.queues import FifoQueue, UnorderedQueue
from checker.models.registers import CasRegister, MultiRegister, Register
from harness.op import OpType

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from checker.models import Model
    from harness.op import Operation

READS_OF_NIL: Final = "nil_read"
FAILED_CAS: Final = "failed_cas"
CRASHED_DEQUEUES: Final = "crashed_dequeue"
# The function and the type of the operations that a convention is about; of reads, only those of nil.
CONVENTION: Final[Mapping[str, tuple[str, OpType]]] = {
    READS_OF_NIL: ("read", OpType.OK),
    FAILED_CAS: ("cas", OpType.FAIL),
    CRASHED_DEQUEUES: ("dequeue", OpType.INFO),
}
_READS: Final = frozenset({"read", "r"})
_SAID: Final[Mapping[str, tuple[str, str]]] = {
    READS_OF_NIL: (
        "1 read of nil taken as a read of anything (--nil-read any)",
        "{} reads of nil taken as reads of anything (--nil-read any)",
    ),
    FAILED_CAS: (
        "1 failed compare-and-set ignored (--failed-cas drop)",
        "{} failed compare-and-sets ignored (--failed-cas drop)",
    ),
    CRASHED_DEQUEUES: (
        "1 crashed dequeue taken as never happening (--crashed-dequeue never)",
        "{} crashed dequeues taken as never happening (--crashed-dequeue never)",
    ),
}


def silenced(model: Model) -> list[str]:
    """Returns the conventions by which a model weakens the meaning of operations."""
    names = []
    if isinstance(model, Register | MultiRegister) and model.nil_read == "any":
        names.append(READS_OF_NIL)
    if isinstance(model, CasRegister) and model.failed_cas == "drop":
        names.append(FAILED_CAS)
    if isinstance(model, FifoQueue | UnorderedQueue) and model.crashed_dequeue == "never":
        names.append(CRASHED_DEQUEUES)
    return names


def weakened(model: Model, operations: Sequence[Operation]) -> dict[str, int]:
    """Returns the number of operations that each convention of a model weakens, without zeros."""
    counts = {}
    for name in silenced(model):
        f, op_type = CONVENTION[name]
        if isinstance(model, MultiRegister):
            count = sum(_reads_of_nil(op) for op in operations)
        elif name == READS_OF_NIL:
            count = sum(op.type is op_type and op.f == f and op.result is None for op in operations)
        else:
            count = sum(op.type is op_type and op.f == f for op in operations)
        if count:
            counts[name] = count
    return counts


def _reads_of_nil(op: Operation) -> int:
    """Returns the number of reads of nil in a transaction."""
    if op.type is not OpType.OK or not isinstance(op.result, list | tuple):
        return 0
    return sum(
        isinstance(micro, list | tuple) and len(micro) == 3 and micro[0] in _READS and micro[2] is None
        for micro in op.result
    )


def sentences(counts: Mapping[str, int]) -> list[str]:
    """Returns a sentence for each convention that weakens operations."""
    return [_SAID[name][count != 1].format(f"{count:,}") for name, count in counts.items()]
