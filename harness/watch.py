"""Polls every node at a low rate for its role, term, leader and applied index.

The watch runs from the start of the workload until the replicas are compared. It keeps only changes of roles, terms and
leaders, each with the last poll that still saw the same. So a long run stays small, and no state is shown for a time without a
poll. A node that does not answer in time is a change too. Applied indexes change all the time; the watch keeps them for each
poll.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from harness.leaders import leader_of
from harness.service import first_status
from harness.slowness import slowed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness.clock import Clock
    from harness.node import Node
    from harness.service import NodeStatus, Service

INTERVAL_S = 1.0
TIMEOUT_S = 0.8
MAX_POSITIONS = 5_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """A state that a node reported, different from the one before.

    Attributes:
        time_ns: The time of the first poll that saw it, on the clock of the run.
        node: The name of the node.
        role: Its role, or None if it did not answer in time.
        term: Its term, if it reported one.
        leader: The node that it believed to be the leader, if any.
        until_ns: The time of the last successive poll that saw the same; None if only the first is known.
    """

    time_ns: int
    node: str
    role: str | None
    term: int | None = None
    leader: str | None = None
    until_ns: int | None = None

    @property
    def last_ns(self) -> int:
        """Returns the time of the last poll that saw it."""
        return self.time_ns if self.until_ns is None else self.until_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class Positions:
    """The applied index of each node, poll by poll.

    Attributes:
        time_ns: The time of each poll, on the clock of the run, ascending.
        applied: Node to its applied index in each of these polls; None if it reported none.
    """

    time_ns: Sequence[int] = ()
    applied: Mapping[str, Sequence[int | None]] = field(default_factory=dict)


class Watch:
    """Polls all nodes until it is cancelled.

    Attributes:
        sightings: The changes so far, in the order of time. Each poll can extend the last one of each node.
        positions: The applied indexes of at most `MAX_POSITIONS` polls. If there are more polls, every second one is dropped,
            repeatedly, so that the rest stays evenly spaced.
    """

    def __init__(self, *, service: Service, clock: Clock) -> None:
        self._service = service
        self._nodes = service.nodes
        self._clock = clock
        self._last: dict[str, int] = {}  # node to the place of its newest sighting
        self._polls = 0
        self._stride = 1  # the watch keeps the positions of one in so many polls
        self._times_ns: list[int] = []
        self._applied: dict[str, list[int | None]] = {node.name: [] for node in service.nodes}
        self.sightings: list[Sighting] = []
        self.positions = Positions(time_ns=self._times_ns, applied=self._applied)

    async def run(self) -> None:
        """Polls until cancelled."""
        while True:
            due_s = self._clock.now_s() + INTERVAL_S
            answers = await asyncio.gather(*(self._ask(node) for node in self._nodes))
            # The time of a poll is that of its last answer, without the wait for silent nodes.
            answered_ns = [time_ns for time_ns, status in answers if status is not None]
            time_ns = max(answered_ns or [time_ns for time_ns, _ in answers])
            statuses = {node.name: status for node, (_, status) in zip(self._nodes, answers, strict=True)}
            for name, status in statuses.items():
                self._note(name, status, time_ns)
            self._keep_positions(statuses, time_ns)
            await self._clock.sleep_until_s(due_s)

    def leader(self) -> tuple[str, int | None] | None:
        """Returns the node that claims to lead in the highest term, and this term, by the last sightings."""
        latest = leader_of(map(self.sightings.__getitem__, list(self._last.values())))
        return None if latest is None else (latest.node, latest.term)

    async def _ask(self, node: Node) -> tuple[int, NodeStatus | None]:
        status = await first_status(self._service, node, slowed(TIMEOUT_S))
        return self._clock.now_ns(), status

    def _note(self, name: str, status: NodeStatus | None, time_ns: int) -> None:
        state = (None, None, None) if status is None else (status.role, status.term, status.leader)
        place = self._last.get(name)
        if place is not None:
            before = self.sightings[place]
            if (before.role, before.term, before.leader) == state:
                self.sightings[place] = replace(before, until_ns=time_ns)
                return
        role, term, leader = state
        self._last[name] = len(self.sightings)
        self.sightings.append(
            Sighting(time_ns=time_ns, node=name, role=role, term=term, leader=leader, until_ns=time_ns)
        )

    def _keep_positions(self, statuses: Mapping[str, NodeStatus | None], time_ns: int) -> None:
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
        for name, status in statuses.items():
            self._applied[name].append(None if status is None else status.applied_index)
