"""A counterexample: a few operations that have no legal order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.op import Operation, Value

MAX_SHOWN: Final = 12
Edge = tuple[int, int, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Counterexample:
    """The part of a history that shows the violation.

    Attributes:
        key: The independent key of the operations; None if they have several.
        explanation: The explanation, as a sentence.
        operations: At most `MAX_SHOWN` operations, in the order of their invokes.
        culprit: The operation that could not have happened, given the others.
        subject: The element, offset or token of the violation; None if it concerns the whole key.
        edges: For a cycle, in its order: the index of an invoke, that of the next one, and why the first operation precedes
            the second.
    """

    key: str | None
    explanation: str
    operations: Sequence[Operation]
    culprit: Operation | None
    subject: Value = None
    edges: Sequence[Edge] = ()


def counterexample_of(
    operations: Sequence[Operation],
    *,
    explanation: str,
    culprit: Operation | None = None,
    subject: Value = None,
    edges: Sequence[Edge] = (),
) -> Counterexample | None:
    """Returns a counterexample of some operations; None if there are none.

    Args:
        operations: The operations, in any order.
        explanation: The explanation, as a sentence.
        culprit: The operation that could not have happened; by default the operation that ended last.
        subject: See `Counterexample`.
        edges: See `Counterexample`; those between other operations are left out.
    """
    ordered = sorted(operations, key=lambda op: (op.start_ns, op.invoke_index))
    if not ordered:
        return None
    decisive = None if culprit is None else culprit.invoke_index
    culprit = next((op for op in ordered if op.invoke_index == decisive), None)
    if culprit is None:
        culprit = max((op for op in ordered if op.end_ns is not None), key=lambda op: op.end_ns or 0, default=None)
    keys = {op.key for op in ordered}
    return Counterexample(
        key=keys.pop() if len(keys) == 1 else None,
        explanation=explanation,
        operations=ordered[:MAX_SHOWN],
        culprit=culprit,
        subject=subject,
        edges=[edge for edge in edges if {edge[0], edge[1]} <= {op.invoke_index for op in ordered[:MAX_SHOWN]}],
    )
