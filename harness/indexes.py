"""The positions in the log that nodes report, and whether they keep what Raft promises of them.

In Raft, the committed and the applied index of a process only rise, a process applies only what is committed, and no log loses
a committed entry (Ongaro and Ousterhout, figure 2 and section 5.4). A process that starts again may begin lower. So two
successive polls of a node count only if no fault was on the node between them, and Labrys did not restart it.

All rules compare two polls. A node may read its indexes one after the other, and in any order: each index of the later poll is
still read after each one of the poll before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from harness.about import About
from harness.console.plain import counted
from harness.units import NS_PER_S
from harness.verdict import Part

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.faults import FaultRecord
    from harness.op import Value
    from harness.service import NodeStatus

RAFT_INVARIANTS: Final = "raft-invariants"
COMMITTED: Final = "committed"
APPLIED: Final = "applied"
LAST: Final = "last"
MAX_BREACHES: Final = 1000
MAX_EXAMPLES: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """An index that may not be below another one, or the same one, of the poll before.

    Attributes:
        before: The index of the poll before.
        after: The index of the poll.
        breach: A sentence about a lower one, with the fields `node`, `high`, `high_s`, `low` and `low_s`.
    """

    before: str
    after: str
    breach: str


_BACK: Final = "The {} index of {{node}} went back from {{high:,}} at {{high_s:.3f}} s to {{low:,}} at {{low_s:.3f}} s"
RULES: Final = (
    Rule(before=COMMITTED, after=COMMITTED, breach=_BACK.format(COMMITTED)),
    Rule(before=APPLIED, after=APPLIED, breach=_BACK.format(APPLIED)),
    Rule(
        before=APPLIED,
        after=COMMITTED,
        breach="{node} had applied entry {high:,} at {high_s:.3f} s, and its committed index was {low:,} at {low_s:.3f} s",
    ),
    Rule(
        before=COMMITTED,
        after=LAST,
        breach="The log of {node} lost committed entries: its committed index was {high:,} at {high_s:.3f} s, and its log "
        "ended at {low:,} at {low_s:.3f} s",
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Breach:
    """Two successive polls of a node that break a rule.

    Attributes:
        rule: The rule.
        node: The name of the node.
        before: The index in the poll before.
        after: The lower index.
        asked_ns: When the poll before began, on the clock of the run.
        before_ns: The time of the poll before, which is that of its last answer.
        after_ns: The time of the poll.
    """

    rule: Rule
    node: str
    before: int
    after: int
    asked_ns: int
    before_ns: int
    after_ns: int

    def __str__(self) -> str:
        return self.rule.breach.format(
            node=self.node,
            high=self.before,
            high_s=self.before_ns / NS_PER_S,
            low=self.after,
            low_s=self.after_ns / NS_PER_S,
        )


class Indexes:
    """Compares the indexes of each poll with those of the poll before.

    Attributes:
        breaches: The breaches of the rules, at most `MAX_BREACHES`.
        reports: The number of reports with an index.
        ends: The number of reports with the end of the log.
    """

    def __init__(self) -> None:
        self.breaches: list[Breach] = []
        self.reports = 0
        self.ends = 0
        self._last: dict[str, tuple[int, int, dict[str, int]]] = {}

    def note(self, status: NodeStatus | None, node: str, asked_ns: int, time_ns: int) -> None:
        """Notes what a node reported in a poll; None if it did not answer, because it may have started again since.

        Args:
            status: The report of the node.
            node: Its name.
            asked_ns: When the poll began, on the clock of the run. The node read its indexes at this time or later.
            time_ns: The time of the last answer of the poll.
        """
        indexes = {} if status is None else _indexes_of(status)
        before_asked_ns, before_ns, before = self._last.pop(node, (asked_ns, time_ns, {}))
        if not indexes:
            return
        self.reports += 1
        self.ends += LAST in indexes
        self._last[node] = (asked_ns, time_ns, indexes)
        for rule in RULES:
            high, low = before.get(rule.before), indexes.get(rule.after)
            if high is not None and low is not None and low < high and len(self.breaches) < MAX_BREACHES:
                self.breaches.append(
                    Breach(
                        rule=rule,
                        node=node,
                        before=high,
                        after=low,
                        asked_ns=before_asked_ns,
                        before_ns=before_ns,
                        after_ns=time_ns,
                    )
                )


def _indexes_of(status: NodeStatus) -> dict[str, int]:
    indexes = {COMMITTED: status.committed_index, APPLIED: status.applied_index, LAST: status.last_index}
    return {name: index for name, index in indexes.items() if index is not None}


def raft_invariants(indexes: Indexes, promise: str, faults: Sequence[FaultRecord], restarted_ns: int | None) -> Part:
    """Returns the extra part `raft-invariants`.

    Args:
        indexes: What the nodes reported.
        promise: The sentence of the service; see `Service.raft_invariants`.
        faults: The record of each fault that began.
        restarted_ns: When Labrys restarted all nodes, on the clock of the run; None if it did not.
    """

    def may_have_restarted(breach: Breach) -> bool:
        by_labrys = restarted_ns is not None and breach.after_ns >= restarted_ns
        return by_labrys or any(
            breach.node in fault.targets and fault.start_ns <= breach.after_ns and fault.end_ns >= breach.asked_ns
            for fault in faults
        )

    breaches = [breach for breach in indexes.breaches if not may_have_restarted(breach)]
    examples: list[Value] = [str(breach) for breach in breaches[:MAX_EXAMPLES]]
    details: dict[str, Value] = {"promise": promise, "reports": indexes.reports, "breaches": examples}
    broken = about = None
    if breaches:
        first = breaches[0]
        nodes = tuple(dict.fromkeys(breach.node for breach in breaches if breach.after_ns <= first.after_ns + NS_PER_S))
        about = About(from_ns=first.asked_ns, to_ns=first.after_ns, nodes=nodes)
        more = f" There are {len(breaches)} such cases." if len(breaches) > 1 else ""
        broken = f"{first}, and no fault was on the node.{more} {promise}"
    logs = ", and no log lost a committed entry" if indexes.ends else ""
    return Part.of(
        RAFT_INVARIANTS,
        details,
        held=f"No index went back while its process ran{logs}; {counted(indexes.reports, 'report')} had one.",
        untested=None if indexes.reports else "No node reported an index.",
        broken=broken,
        about=about,
        extra=True,
    )
