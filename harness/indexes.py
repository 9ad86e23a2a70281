"""The positions in the log that nodes report, and whether one of them goes back while its process runs.

In Raft, the committed and the applied index of a process only rise (Ongaro and Ousterhout, figure 2). A process that starts
again may begin lower. So an index that is lower than in the poll before counts only if no fault was on the node between the two
polls, and Labrys did not restart it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from harness.console.plain import counted
from harness.units import NS_PER_S
from harness.verdict import Part, Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.faults import FaultRecord
    from harness.op import Value
    from harness.service import NodeStatus

INDEXES_RISE: Final = "indexes-rise"
MAX_RETREATS: Final = 1000
MAX_EXAMPLES: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Retreat:
    """An index that a node reported lower than in the poll before.

    Attributes:
        node: The name of the node.
        index: `committed` or `applied`.
        before: The index in the poll before.
        after: The lower index.
        before_ns: The time of the poll before, on the clock of the run.
        after_ns: The time of the poll.
    """

    node: str
    index: str
    before: int
    after: int
    before_ns: int
    after_ns: int

    def __str__(self) -> str:
        return (
            f"The {self.index} index of {self.node} went back from {self.before:,} at {self.before_ns / NS_PER_S:.3f} s to "
            f"{self.after:,} at {self.after_ns / NS_PER_S:.3f} s"
        )


class Indexes:
    """Compares the indexes of each poll with those of the poll before.

    Attributes:
        retreats: The indexes that went back, at most `MAX_RETREATS`.
        reports: The number of reports with an index.
    """

    def __init__(self) -> None:
        self.retreats: list[Retreat] = []
        self.reports = 0
        self._last: dict[str, tuple[int, dict[str, int]]] = {}

    def note(self, status: NodeStatus | None, node: str, time_ns: int) -> None:
        """Notes what a node reported in a poll; None if it did not answer, because it may have started again since."""
        told = {} if status is None else {"committed": status.committed_index, "applied": status.applied_index}
        found = {index: value for index, value in told.items() if value is not None}
        before_ns, before = self._last.pop(node, (time_ns, {}))
        if not found:
            return
        self.reports += 1
        self._last[node] = (time_ns, found)
        for index, value in found.items():
            if value < before.get(index, value) and len(self.retreats) < MAX_RETREATS:
                self.retreats.append(
                    Retreat(
                        node=node, index=index, before=before[index], after=value, before_ns=before_ns, after_ns=time_ns
                    )
                )


def indexes_rise(indexes: Indexes, promise: str, faults: Sequence[FaultRecord], restarted_ns: int | None) -> Part:
    """Returns the extra part `indexes-rise`.

    Args:
        indexes: What the nodes reported.
        promise: The sentence of the service; see `Service.indexes_rise`.
        faults: The record of each fault that began.
        restarted_ns: When Labrys restarted all nodes, on the clock of the run; None if it did not.
    """

    def may_have_restarted(found: Retreat) -> bool:
        by_labrys = restarted_ns is not None and found.after_ns >= restarted_ns
        return by_labrys or any(
            found.node in fault.targets and fault.start_ns <= found.after_ns and fault.end_ns >= found.before_ns
            for fault in faults
        )

    found = [each for each in indexes.retreats if not may_have_restarted(each)]
    examples: list[Value] = [str(each) for each in found[:MAX_EXAMPLES]]
    details: dict[str, Value] = {"promise": promise, "reports": indexes.reports, "retreats": examples}
    if found:
        more = f" There are {len(found)} such cases." if len(found) > 1 else ""
        reason = f"{found[0]}, and no fault was on the node.{more} {promise}"
        return Part(name=INDEXES_RISE, verdict=Verdict.INVALID, reason=reason, details=details, extra=True)
    if not indexes.reports:
        reason = "No node reported an index."
        return Part(name=INDEXES_RISE, verdict=Verdict.UNKNOWN, reason=reason, details=details, extra=True)
    reason = f"No index went back while its process ran; {counted(indexes.reports, 'report')} had one."
    return Part(name=INDEXES_RISE, verdict=Verdict.VALID, reason=reason, details=details, extra=True)
