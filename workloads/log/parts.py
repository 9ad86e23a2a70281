"""The part of a log run's verdict about the final reads: whether whole logs were read after healing."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from harness.op import FINAL_PHASE, OpType
from harness.verdict import Part, Verdict
from workloads.finals import final_reads

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.final_reads import FinalReads
    from harness.op import Operation

_MAX_NAMED = 20


def final_ranges(operations: Sequence[Operation], reads: FinalReads) -> Part:
    """Checks that each range of each log was read after healing, and names the nodes.

    Args:
        operations: All operations of the run.
        reads: The results of the final reads.
    """
    part = final_reads(operations, reads)
    was_read: dict[tuple[str | None, str], bool] = {}
    for operation in operations:
        if operation.phase == FINAL_PHASE:
            name = operation.key, str(operation.value)
            was_read[name] = was_read.get(name, False) or operation.type is OpType.OK
    unread = [f"{'' if key is None else f'{key} '}{value}" for (key, value), read in was_read.items() if not read]
    details = {**part.details, "ranges": len(was_read), "unread_ranges": unread[:_MAX_NAMED]}
    if part.verdict is Verdict.VALID and unread:
        reason = (
            f"{len(unread)} of {len(was_read)} ranges of offsets could not be read after healing, "
            f"so an append lost there was not seen; the first is {unread[0]}."
        )
        return Part(name=part.name, verdict=Verdict.UNKNOWN, reason=reason, details=details)
    return replace(part, details=details)
