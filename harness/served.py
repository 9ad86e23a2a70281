"""Whether a service serves clients: what the answers to their operations show.

A node that says that it serves may still refuse every request, and a node that lacks something may serve all of them. So only
operations of clients show it. A service serves if clients at a quorum of its nodes get answers, and if operations of each sort
that ever succeeded in the run, reads and changes, succeed. An answer is the same as for availability: `ok`, or a `fail` whose
code is an answer of a working system. A refusal that names another node counts as an answer of this node alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from harness.console.plain import counted
from harness.op import NEMESIS, RESOURCE_PHASE, OpType

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from harness.op import Op, Process

READ: Final = "read"
CHANGE: Final = "change"


@dataclass(slots=True, kw_only=True)
class Served:
    """What the answers so far show; `update` adds an event. Only operations whose invokes it got count.

    Attributes:
        nodes: The names of the nodes of the service that have clients.
        quorum: At how many of them clients must get answers.
        reads: The functions that only read.
        codes: The codes of `fail` errors that are answers of a node.
        sorts: The sorts of operations that must succeed, `READ` and `CHANGE`.
        answering: The nodes whose clients got an answer.
        succeeded: The sorts of operations that succeeded.
        waiting: The processes whose operations are in flight.
        asked: The number of operations that were completed.
        met_ns: The time of the event with which all was shown; None before it.
    """

    nodes: Sequence[str]
    quorum: int
    reads: frozenset[str]
    codes: frozenset[str]
    sorts: frozenset[str]
    answering: set[str] = field(default_factory=set)
    succeeded: set[str] = field(default_factory=set)
    waiting: set[Process] = field(default_factory=set)
    asked: int = 0
    met_ns: int | None = None

    def update(self, event: Op) -> None:
        """Adds an event of the history."""
        if event.process == NEMESIS or event.phase == RESOURCE_PHASE:
            return
        if event.type is OpType.INVOKE:
            self.waiting.add(event.process)
            return
        if event.process not in self.waiting:
            return
        self.waiting.remove(event.process)
        self.asked += 1
        if event.type is OpType.OK:
            self.succeeded.add(sort_of(event.f, self.reads))
        elif event.type is not OpType.FAIL or (event.error or "").partition(":")[0] not in self.codes:
            return
        if event.node is not None and event.node in self.nodes:
            self.answering.add(event.node)
        if self.met_ns is None and len(self.answering) >= self.quorum and self.sorts <= self.succeeded:
            self.met_ns = event.time_ns

    def missing(self) -> str:
        """Returns what is not shown, as a clause; empty if nothing is missing."""
        if self.met_ns is not None:
            return ""
        if not self.answering:
            return f"none of {counted(self.asked, 'operation')} of clients was answered"
        if len(self.answering) < self.quorum:
            names = ", ".join(name for name in self.nodes if name in self.answering)
            return f"only clients at {names} got answers, and the quorum is {self.quorum} of {len(self.nodes)} nodes"
        lacking = " and no ".join(sorted(self.sorts - self.succeeded))
        return f"no {lacking} of a client succeeded, although there were {counted(self.asked, 'operation')}"


def sort_of(function: str, reads: frozenset[str]) -> str:
    """Returns whether a function reads or changes."""
    return READ if function in reads else CHANGE


def sorts_in(events: Iterable[Op], reads: frozenset[str]) -> frozenset[str]:
    """Returns the sorts of operations of clients that succeeded."""
    return frozenset(
        sort_of(event.f, reads)
        for event in events
        if event.type is OpType.OK and event.process != NEMESIS and event.phase != RESOURCE_PHASE
    )
