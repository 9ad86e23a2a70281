"""The positions in the log that nodes report, and whether they keep what Raft promises of them.

In Raft, the committed and the applied index of a process only rise, a process applies only what is committed, and no log loses
a committed entry (Ongaro and Ousterhout, figure 2 and section 5.4). A process that starts again may begin lower. So two
successive polls of a node count only if no fault was on the node between them, and Labrys did not restart it.

All rules compare two polls. A node may read its indexes one after the other, and in any order: each index of the later poll is
still read after each one of the poll before.

The term is in the file of a node before it answers in this term (figure 2). So it never goes back, also when a process starts
again, unless a fault damaged the data. A node may report a term that it is about to store. One that knows the leader of a term
has stored it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from harness.about import About
from harness.console.plain import counted
from harness.units import NS_PER_S
from harness.verdict import Part

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from harness.faults import FaultRecord
    from harness.op import Value
    from harness.service import NodeStatus

RAFT_INVARIANTS: Final = "raft-invariants"
COMMITTED: Final = "committed"
APPLIED: Final = "applied"
TERM: Final = "term"
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
        without: What would explain it, and was not there; the end of the sentence.
    """

    before: str
    after: str
    breach: str
    without: str = "no fault was on the node"


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
STORED_TERM: Final = Rule(
    before=TERM,
    after=TERM,
    breach="{node} forgot its term: it knew the leader of term {high:,} at {high_s:.3f} s, and was in term {low:,} at "
    "{low_s:.3f} s",
    without="no fault damaged its data",
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
        terms: The number of reports with a term that a node has stored.
    """

    def __init__(self, *, stores_term: bool = False) -> None:
        """Begins without a report.

        Args:
            stores_term: See `harness.service.Service`.
        """
        self.breaches: list[Breach] = []
        self.reports = 0
        self.ends = 0
        self.terms = 0
        self._stores_term = stores_term
        self._last: dict[str, tuple[int, int, dict[str, int]]] = {}
        self._terms: dict[str, tuple[int, int, int]] = {}

    def note(self, status: NodeStatus | None, node: str, asked_ns: int, time_ns: int) -> None:
        """Notes what a node reported in a poll; None if it did not answer, because it may have started again since.

        Args:
            status: The report of the node.
            node: Its name.
            asked_ns: When the poll began, on the clock of the run. The node read its indexes at this time or later.
            time_ns: The time of the last answer of the poll.
        """
        if status is not None and self._stores_term:
            self._note_term(status, node, asked_ns, time_ns)
        indexes = {} if status is None else _indexes_of(status)
        before_asked_ns, before_ns, before = self._last.pop(node, (asked_ns, time_ns, {}))
        if not indexes:
            return
        self.reports += 1
        self.ends += LAST in indexes
        self._last[node] = (asked_ns, time_ns, indexes)
        for rule in RULES:
            high, low = before.get(rule.before), indexes.get(rule.after)
            if high is not None and low is not None and low < high:
                self._breach(
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

    def _breach(self, breach: Breach) -> None:
        if len(self.breaches) < MAX_BREACHES:
            self.breaches.append(breach)

    def _note_term(self, status: NodeStatus, node: str, asked_ns: int, time_ns: int) -> None:
        """Compares the term of a node with the newest one that it has stored; a silent node or a restart changes nothing."""
        if (term := status.term) is None:
            return
        high, high_asked_ns, high_ns = self._terms.get(node, (term, asked_ns, time_ns))
        if term < high:
            self._breach(
                Breach(
                    rule=STORED_TERM,
                    node=node,
                    before=high,
                    after=term,
                    asked_ns=high_asked_ns,
                    before_ns=high_ns,
                    after_ns=time_ns,
                )
            )
        if status.leader is not None or term < high:
            self.terms += 1
            self._terms[node] = (term, asked_ns, time_ns)


def _indexes_of(status: NodeStatus) -> dict[str, int]:
    indexes = {COMMITTED: status.committed_index, APPLIED: status.applied_index, LAST: status.last_index}
    return {name: index for name, index in indexes.items() if index is not None}


def raft_invariants(
    indexes: Indexes,
    promise: str,
    faults: Sequence[FaultRecord],
    restarted_ns: int | None,
    damaging: Collection[str] = frozenset(),
) -> Part:
    """Returns the extra part `raft-invariants`.

    Args:
        indexes: What the nodes reported.
        promise: The sentence of the service; see `Service.raft_invariants`.
        faults: The record of each fault that began.
        restarted_ns: When Labrys restarted all nodes, on the clock of the run; None if it did not.
        damaging: The kinds of faults that damage data for good.
    """

    def is_allowed(breach: Breach) -> bool:
        if breach.rule is STORED_TERM:
            hit = (fault for fault in faults if fault.planned.kind in damaging and breach.node in fault.targets)
            return any(fault.start_ns <= breach.after_ns for fault in hit)
        by_labrys = restarted_ns is not None and breach.after_ns >= restarted_ns
        return by_labrys or any(
            breach.node in fault.targets and fault.start_ns <= breach.after_ns and fault.end_ns >= breach.asked_ns
            for fault in faults
        )

    breaches = [breach for breach in indexes.breaches if not is_allowed(breach)]
    examples: list[Value] = [str(breach) for breach in breaches[:MAX_EXAMPLES]]
    details: dict[str, Value] = {"promise": promise, "reports": indexes.reports, "breaches": examples}
    broken = about = None
    if breaches:
        first = breaches[0]
        nodes = tuple(dict.fromkeys(breach.node for breach in breaches if breach.after_ns <= first.after_ns + NS_PER_S))
        about = About(from_ns=first.asked_ns, to_ns=first.after_ns, nodes=nodes)
        more = f" There are {len(breaches)} such cases." if len(breaches) > 1 else ""
        broken = f"{first}, and {first.rule.without}.{more} {promise}"
    logs = ", and no log lost a committed entry" if indexes.ends else ""
    terms = ", and no node forgot its term" if indexes.terms else ""
    return Part.of(
        RAFT_INVARIANTS,
        details,
        held=f"No index went back while its process ran{logs}{terms}; {counted(indexes.reports, 'report')} had one.",
        untested=None if indexes.reports else "No node reported an index.",
        broken=broken,
        about=about,
        extra=True,
    )
