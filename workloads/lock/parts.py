"""The part of the verdict about the final acquires: whether each lock could be acquired again after healing."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from harness.console.plain import counted
from harness.verdict import Verdict
from workloads.finals import final_reads

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.final_reads import FinalReads
    from harness.op import Operation
    from harness.verdict import Part


def final_acquires(operations: Sequence[Operation], reads: FinalReads) -> Part:
    """Returns the part `final-reads`, with a reason about locks.

    Args:
        operations: All operations of the run.
        reads: The results of the final operations.
    """
    part = final_reads([operation for operation in operations if operation.f == "acquire"], reads)
    keys, unread = part.details["keys"], part.details["unread"]
    if reads.missing is not None or not keys:
        return part
    if part.verdict is Verdict.UNKNOWN:
        named = ", ".join(map(str, unread))
        reason = f"Some of {counted(keys, 'lock')} could not be acquired after healing: {named}."
    else:
        through = ", ".join(f"{node} ({count})" for node, count in part.details["keys_by_node"].items())
        left_out = "".join(f" {node} was left out: it {why}." for node, why in reads.left_out.items())
        what = f"All {keys:,} locks were" if keys > 1 else "The only lock was"
        reason = f"{what} acquired again after healing, through {through}.{left_out}"
    return replace(part, reason=reason)
