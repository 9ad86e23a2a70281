"""The built-in conditions on the statuses of nodes, which they poll faster than the watch of the run does."""

from __future__ import annotations

import abc
import asyncio
from typing import TYPE_CHECKING, ClassVar

from harness.blame import without_exit
from harness.errors import InputError
from harness.faults import Fired
from harness.leaders import LEADER, leader_of
from harness.slowness import slowed
from nemesis.conditions import MAX_COUNT, first
from nemesis.options import integer
from nemesis.triggers import Condition

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness.faults import Trigger
    from harness.node import Node
    from harness.op import Value
    from harness.service import NodeStatus, Service
    from harness.world import World
    from nemesis.field import Field
    from nemesis.options import Option
    from nemesis.triggers import Subject

STATUS_POLL_S = 0.05
STATUS_TIMEOUT_S = 0.5
FRESH_S = 0.5  # an older status says nothing about now


class _StatusCondition(Condition):
    """A condition on the statuses of the nodes, which it polls. It names the node that meets it."""

    NAMES_NODE = True

    @classmethod
    def drawn(cls, subject: Subject) -> Sequence[Mapping[str, Value]]:
        """Nothing if there is no status."""
        return super().drawn(subject) if subject.reports else []

    @classmethod
    def prepare(cls, trigger: Trigger, field: Field, world: World | None) -> None:  # noqa: ARG003
        """A service of the system must report a status.

        Raises:
            InputError: None does.
        """
        if not any(service.reports() for service in field.system.services()):
            raise InputError(
                f"the trigger {trigger.name} needs the status of nodes, and {field.system.name} reports none (`statuses`); "
                "docs/guide/new-system.md describes it"
            )

    async def fires(self) -> Fired:
        """Polls the nodes of the service, each in its own rhythm, so that a silent node delays no other."""
        system = self.field.system
        service = system.front() if self.role is None else system.service(self.role)
        asked = await asyncio.gather(*(self._ask(service, node) for node in service.nodes))
        self.begins([status for statuses in asked for status in statuses])
        latest: dict[str, tuple[float, Sequence[NodeStatus]]] = {}
        return await first(self._poll(service, node, latest) for node in service.nodes)

    async def _ask(self, service: Service, node: Node) -> Sequence[NodeStatus]:
        return await without_exit(service.statuses(node, slowed(STATUS_TIMEOUT_S)))

    async def _poll(self, service: Service, node: Node, latest: dict[str, tuple[float, Sequence[NodeStatus]]]) -> Fired:
        clock = self.sight.clock
        while True:
            due_s = clock.now_s() + STATUS_POLL_S
            statuses = await self._ask(service, node)
            latest[node.name] = (clock.now_s(), statuses)
            since_s = clock.now_s() - FRESH_S
            fresh = [status for at_s, some in latest.values() if at_s >= since_s for status in some]
            for status in statuses:
                others = [other for other in fresh if other.node != node.name and other.group == status.group]
                what = self.met(status, others)
                if what is not None and node.name in self.targets:
                    return Fired(time_ns=clock.now_ns(), what=what, measured={"node": node.name, **_figures(status)})
            await clock.sleep_until_s(due_s)

    def begins(self, statuses: Sequence[NodeStatus]) -> None:
        """Takes note of the statuses at the beginning of the wait."""

    @abc.abstractmethod
    def met(self, status: NodeStatus, others: Sequence[NodeStatus]) -> str | None:
        """Returns the words for `Fired` if a status meets the condition; None if not.

        Args:
            status: The status of a node, from now.
            others: The statuses of the other nodes of its group, at most `FRESH_S` old.
        """


class FollowerBehind(_StatusCondition):
    """A possible target that is behind the others."""

    SUMMARY = "A possible target that does not lead has applied so many entries less than another node knows."
    OPTIONS: ClassVar[Mapping[str, Option]] = {
        "entries": integer(10, 1, MAX_COUNT, "How far it is behind the greatest applied or committed index.")
    }

    def met(self, status: NodeStatus, others: Sequence[NodeStatus]) -> str | None:
        """Compares its applied index with the indexes of the others."""
        known = [
            index for other in others for index in (other.applied_index, other.committed_index) if index is not None
        ]
        if status.role == LEADER or status.applied_index is None or not known:
            return None
        if max(known) - status.applied_index < self.trigger.parameters["entries"]:
            return None
        return f"when {status.node} had applied {status.applied_index} of {max(known)} entries"


class TermChange(_StatusCondition):
    """A later term than any before."""

    SUMMARY = "A possible target reports a later term than any node before."

    def begins(self, statuses: Sequence[NodeStatus]) -> None:
        """Takes note of the latest term of each group."""
        self._terms: dict[str | None, int] = {}
        for status in statuses:
            self._note(status)

    def met(self, status: NodeStatus, others: Sequence[NodeStatus]) -> str | None:  # noqa: ARG002
        """Compares its term with the latest one."""
        before = self._note(status)
        if status.term is None or before is None or status.term <= before:
            return None
        return f"when {status.node} reported term {status.term} after term {before}"

    def _note(self, status: NodeStatus) -> int | None:
        """Takes note of a term, and returns the latest one before."""
        before = self._terms.get(status.group)
        if status.term is not None:
            self._terms[status.group] = max(status.term, status.term if before is None else before)
        return before


class NewLeader(_StatusCondition):
    """A new leader."""

    SUMMARY = (
        "A possible target reports that it leads, and another node led before, or no node, or it in an earlier term."
    )

    def begins(self, statuses: Sequence[NodeStatus]) -> None:
        """Takes note of the leader of each group."""
        groups = dict.fromkeys(status.group for status in statuses)
        self._leaders = {group: leader_of(status for status in statuses if status.group == group) for group in groups}

    def met(self, status: NodeStatus, others: Sequence[NodeStatus]) -> str | None:  # noqa: ARG002
        """Compares it with the leader before."""
        before = self._leaders.get(status.group)
        if status.role != LEADER or not _succeeds(status, before):
            return None
        self._leaders[status.group] = status
        term = "" if status.term is None else f" in term {status.term}"
        return f"when {status.node} reported that it leads{term}, after {before.node if before else 'no leader'}"


def _succeeds(status: NodeStatus, before: NodeStatus | None) -> bool:
    if before is None:
        return True
    if status.term is None or before.term is None:
        return status.node != before.node
    return status.term > before.term


class AppliedAboveCommit(_StatusCondition):
    """A possible target that has applied what another node does not know to be committed."""

    SUMMARY = "A possible target has applied entries that another node does not know to be committed."
    OPTIONS: ClassVar[Mapping[str, Option]] = {
        "entries": integer(1, 1, MAX_COUNT, "How far its applied index is above the commit index of the other node.")
    }

    def met(self, status: NodeStatus, others: Sequence[NodeStatus]) -> str | None:
        """Compares its applied index with the commit indexes of the others."""
        if status.applied_index is None:
            return None
        for other in others:
            if other.committed_index is not None:
                ahead = status.applied_index - other.committed_index
                if ahead >= self.trigger.parameters["entries"]:
                    return (
                        f"when {status.node} had applied {status.applied_index} entries, and {other.node} knew of "
                        f"{other.committed_index} committed ones"
                    )
        return None


def _figures(status: NodeStatus) -> dict[str, Value]:
    return {
        "role": status.role,
        "term": status.term,
        "applied_index": status.applied_index,
        "committed_index": status.committed_index,
    }
