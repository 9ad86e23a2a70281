"""Watches, at a low rate, what every node says about itself: role, term, leader, and how far it has applied the log.

The watch runs from the workload's start until the replicas are compared. Of roles, terms and leaders only changes are kept,
each with the last poll that still saw it, so that a long run stays small and nothing is shown for a time at which it was not
seen. A node that does not answer in time is a change too. Applied indexes move all the time; they are kept for each poll.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from harness.leaders import leader_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness.clock import Clock
    from harness.node import Node
    from harness.system import NodeStatus, System

INTERVAL_S = 1.0
TIMEOUT_S = 0.8
MAX_POSITIONS = 5_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """What a node said about itself when it differed from what it had said before.

    Attributes:
        time_ns: When the first poll that saw it had its answers, on the run's clock.
        node: The node's name.
        role: Its role, or None if it did not answer in time.
        term: Its term, if it told one.
        leader: The node it believed to lead, if it knew one.
        until_ns: When the last poll in a row that saw the same had its answers; None where only the first is known.
    """

    time_ns: int
    node: str
    role: str | None
    term: int | None = None
    leader: str | None = None
    until_ns: int | None = None

    @property
    def last_ns(self) -> int:
        """Returns the last time at which this is known to have been seen."""
        return self.time_ns if self.until_ns is None else self.until_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class Positions:
    """How far each node had applied the log, poll by poll.

    Attributes:
        time_ns: When each poll had its answers, on the run's clock, ascending.
        applied: Node to its applied index in each of these polls; None where it did not tell one.
    """

    time_ns: Sequence[int] = ()
    applied: Mapping[str, Sequence[int | None]] = field(default_factory=dict)


class Watch:
    """Polls all nodes until it is cancelled.

    Attributes:
        sightings: The changes so far, in the order of time; the newest of each node grows longer with each poll.
        positions: The applied indexes so far, of at most `MAX_POSITIONS` polls. Where there were more, every second one is
            left out, again and again, so that the rest stays evenly spread.
    """

    def __init__(self, *, system: System, nodes: Sequence[Node], clock: Clock) -> None:
        self._system = system
        self._nodes = nodes
        self._clock = clock
        self._last: dict[str, int] = {}  # node to the place of its newest sighting
        self._polls = 0
        self._stride = 1  # of so many polls, one has its positions kept
        self._times_ns: list[int] = []
        self._applied: dict[str, list[int | None]] = {node.name: [] for node in nodes}
        self.sightings: list[Sighting] = []
        self.positions = Positions(time_ns=self._times_ns, applied=self._applied)

    async def run(self) -> None:
        """Polls until cancelled."""
        while True:
            due_s = self._clock.now_s() + INTERVAL_S
            answers = await asyncio.gather(*(self._ask(node) for node in self._nodes))
            # All nodes were asked at once, so a poll has one time: that of its last answer, not of the wait for silent ones.
            told_ns = [time_ns for time_ns, status in answers if status is not None]
            time_ns = max(told_ns or [time_ns for time_ns, _ in answers])
            statuses = {node.name: status for node, (_, status) in zip(self._nodes, answers, strict=True)}
            for name, status in statuses.items():
                self._note(name, status, time_ns)
            self._keep_positions(statuses, time_ns)
            await self._clock.sleep_until_s(due_s)

    def leader(self) -> tuple[str, int | None] | None:
        """Returns the node that says it leads in the highest term, and that term, as last seen."""
        latest = leader_of(map(self.sightings.__getitem__, list(self._last.values())))
        return None if latest is None else (latest.node, latest.term)

    async def _ask(self, node: Node) -> tuple[int, NodeStatus | None]:
        status = await self._system.status(node, TIMEOUT_S)
        return self._clock.now_ns(), status

    def _note(self, name: str, status: NodeStatus | None, time_ns: int) -> None:
        said = (None, None, None) if status is None else (status.role, status.term, status.leader)
        place = self._last.get(name)
        if place is not None:
            before = self.sightings[place]
            if (before.role, before.term, before.leader) == said:
                self.sightings[place] = replace(before, until_ns=time_ns)
                return
        role, term, leader = said
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
