"""Polls the services of every node at a low rate for its role, term, leader and applied index.

The watch runs from the start of the workload until the replicas are compared. It keeps only changes of roles, terms and
leaders, each with the last poll that still saw the same. So a long run stays small, and no state is shown for a time without a
poll. A node that does not answer in time is a change too. Applied indexes change all the time; the watch keeps them for each
poll.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence  # noqa: TC003 - members are read by their annotations
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from harness.blame import without_exit
from harness.console.members import Integer, TimeNs  # noqa: TC001 - members are read by their annotations
from harness.indexes import Indexes
from harness.leaders import leader_of
from harness.slowness import slowed

if TYPE_CHECKING:
    from harness.clock import Clock
    from harness.node import Node
    from harness.service import NodeStatus, Service
    from harness.system import System

INTERVAL_S = 1.0
TIMEOUT_S = 0.8
MAX_POSITIONS = 5_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """A state that a node reported, different from the one before; `results.json` has its members.

    Attributes:
        time_ns: The time of the first poll that saw it, on the clock of the run.
        node: The name of the node.
        role: Its role, or None if it did not answer in time.
        term: Its term, if it reported one.
        leader: The node that it believed to be the leader, if any.
        until_ns: The time of the last successive poll that saw the same; None if only the first is known.
    """

    time_ns: TimeNs
    node: str
    role: str | None
    term: Integer | None = None
    leader: str | None = None
    until_ns: TimeNs | None = None

    @property
    def last_ns(self) -> int:
        """Returns the time of the last poll that saw it."""
        return self.time_ns if self.until_ns is None else self.until_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class Positions:
    """The applied index of each node, poll by poll, of at most 5,000 polls that are evenly spread.

    Attributes:
        time_ns: The time of each poll, on the clock of the run, ascending.
        applied: Node to its applied index in each of these polls; None if it reported none.
    """

    time_ns: Sequence[TimeNs] = ()
    applied: Mapping[str, Sequence[Integer | None]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Checks that each node has one index for each poll."""
        for node, indexes in self.applied.items():
            if len(indexes) != len(self.time_ns):
                raise ValueError(
                    f"expected {len(self.time_ns)} applied indexes of {node}, as many as times, found {len(indexes)}"
                )


class Lane:
    """The reports about one leader: of a service, or of a group of its nodes.

    Attributes:
        sightings: The changes, in the order of time.
    """

    def __init__(self) -> None:
        self.sightings: list[Sighting] = []
        self._last: dict[str, int] = {}  # node to the place of its newest sighting

    def knows(self, node: str) -> bool:
        """Returns whether a poll noted this node."""
        return node in self._last

    def latest(self) -> list[Sighting]:
        """Returns the newest sighting of each node."""
        return [self.sightings[index] for index in self._last.values()]

    def note(self, name: str, status: NodeStatus | None, time_ns: int) -> None:
        """Notes what a node reported in a poll; None if it did not answer."""
        state = (None, None, None) if status is None else (status.role, status.term, status.leader)
        index = self._last.get(name)
        if index is not None:
            before = self.sightings[index]
            if (before.role, before.term, before.leader) == state:
                self.sightings[index] = replace(before, until_ns=time_ns)
                return
        role, term, leader = state
        self._last[name] = len(self.sightings)
        self.sightings.append(
            Sighting(time_ns=time_ns, node=name, role=role, term=term, leader=leader, until_ns=time_ns)
        )


class Watch:
    """Polls the services of a system until it is cancelled.

    Attributes:
        sightings: The changes of the service that clients use, in the order of time. A poll can extend the last one of a node.
        others: The same for each other leader: of another service, by its role, and of a group of nodes, by the role and the
            group, e.g. `broker east`.
        indexes: The reports of this service that break a rule of Raft.
        positions: The applied indexes of this service in at most `MAX_POSITIONS` polls. If there are more polls, every second
            one is dropped, repeatedly, so that the rest stays evenly spaced.
    """

    def __init__(self, *, system: System, clock: Clock) -> None:
        self._front = system.front()
        others = [service for service in system.services() if service is not self._front and service.reports()]
        asked = (self._front, *others) if self._front.reports() else others
        self._asked = [(service, node) for service in asked for node in service.nodes]
        self._clock = clock
        self._lanes: dict[tuple[str, str | None], Lane] = {
            (service.role, None): Lane() for service in (self._front, *others)
        }
        self._polls = 0
        self._stride = 1  # the watch keeps the positions of one in so many polls
        self._times_ns: list[int] = []
        self._applied: dict[str, list[int | None]] = {
            node.name: [] for service, node in self._asked if service is self._front
        }
        self.sightings = self._lanes[self._front.role, None].sightings
        self.others = {service.role: self._lanes[service.role, None].sightings for service in others}
        self.positions = Positions(time_ns=self._times_ns, applied=self._applied)
        self.indexes = Indexes(stores_term=self._front.stores_term)

    async def run(self) -> None:
        """Polls until cancelled; returns at once if no service has a status."""
        while self._asked:
            asked_ns = self._clock.now_ns()
            due_s = self._clock.now_s() + INTERVAL_S
            answers = await asyncio.gather(*(self._ask(service, node) for service, node in self._asked))
            # The time of a poll is that of its last answer, without the wait for silent nodes.
            answered_ns = [time_ns for time_ns, statuses in answers if statuses]
            time_ns = max(answered_ns or [time_ns for time_ns, _ in answers])
            for (service, node), (_, statuses) in zip(self._asked, answers, strict=True):
                self._note(service, node.name, statuses, time_ns)
                if service is self._front:
                    self.indexes.note(statuses[0] if statuses else None, node.name, asked_ns, time_ns)
            if self._applied:
                self._keep_positions([statuses for _, statuses in answers[: len(self._applied)]], time_ns)
            await self._clock.sleep_until_s(due_s)

    def leader(self) -> tuple[str, int | None] | None:
        """Returns the node that claims to lead the service of the clients in the highest term, and this term."""
        latest = leader_of(self._lanes[self._front.role, None].latest())
        return None if latest is None else (latest.node, latest.term)

    async def _ask(self, service: Service, node: Node) -> tuple[int, Sequence[NodeStatus]]:
        statuses = await without_exit(service.statuses(node, slowed(TIMEOUT_S)))
        return self._clock.now_ns(), statuses

    def _note(self, service: Service, node: str, statuses: Sequence[NodeStatus], time_ns: int) -> None:
        """Notes the statuses of a process. A group that it reported before, and reports no more, has no answer."""
        by_group = {status.group: status for status in statuses}
        known = [group for (role, group), lane in self._lanes.items() if role == service.role and lane.knows(node)]
        for group in dict.fromkeys((*by_group, *known) or (None,)):
            if (service.role, group) not in self._lanes:
                lane = self._lanes[service.role, group] = Lane()
                self.others[f"{service.role} {group}"] = lane.sightings
            self._lanes[service.role, group].note(node, by_group.get(group), time_ns)

    def _keep_positions(self, answers: Sequence[Sequence[NodeStatus]], time_ns: int) -> None:
        due = self._polls % self._stride == 0
        self._polls += 1
        if not due:
            return
        if len(self._times_ns) == MAX_POSITIONS:
            self._stride *= 2
            del self._times_ns[1::2]
            for indexes in self._applied.values():
                del indexes[1::2]
            if (self._polls - 1) % self._stride:
                return
        self._times_ns.append(time_ns)
        for indexes, statuses in zip(self._applied.values(), answers, strict=True):
            indexes.append(statuses[0].applied_index if statuses else None)
