"""Watches, at a low rate, what every node says about itself during a run: role, term, leader.

Only changes are kept, so that a long run stays small. A node that does not answer in time is a change too.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.clock import Clock
    from harness.node import Node
    from harness.system import NodeStatus, System

INTERVAL_S = 1.0
TIMEOUT_S = 0.8


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """What a node said about itself when it differed from what it had said before.

    Attributes:
        time_ns: When the answer had come, on the run's clock.
        node: The node's name.
        role: Its role, or None if it did not answer in time.
        term: Its term, if it told one.
        leader: The node it believed to lead, if it knew one.
    """

    time_ns: int
    node: str
    role: str | None
    term: int | None = None
    leader: str | None = None


class Watch:
    """Polls all nodes until it is cancelled.

    Attributes:
        sightings: The changes so far, in the order of time.
    """

    def __init__(self, *, system: System, nodes: Sequence[Node], clock: Clock) -> None:
        self._system = system
        self._nodes = nodes
        self._clock = clock
        self._last: dict[str, Sighting] = {}
        self.sightings: list[Sighting] = []

    async def run(self) -> None:
        """Polls until cancelled."""
        while True:
            due_s = self._clock.now_s() + INTERVAL_S
            answers = await asyncio.gather(*(self._system.status(node, TIMEOUT_S) for node in self._nodes))
            for node, answer in zip(self._nodes, answers, strict=True):
                self._note(node, answer)
            await self._clock.sleep_until_s(due_s)

    def leader(self) -> tuple[str, int | None] | None:
        """Returns the node that says it leads in the highest term, and that term, as last seen."""
        leading = [seen for seen in self._last.values() if seen.role == "leader"]
        if not leading:
            return None
        latest = max(leading, key=lambda seen: -1 if seen.term is None else seen.term)
        return latest.node, latest.term

    def _note(self, node: Node, answer: NodeStatus | None) -> None:
        now_ns = self._clock.now_ns()
        if answer is None:
            sighting = Sighting(time_ns=now_ns, node=node.name, role=None)
        else:
            sighting = Sighting(
                time_ns=now_ns, node=node.name, role=answer.role, term=answer.term, leader=answer.leader
            )
        before = self._last.get(node.name)
        if before is None or _said(before) != _said(sighting):
            self._last[node.name] = sighting
            self.sightings.append(sighting)


def _said(sighting: Sighting) -> tuple[str | None, int | None, str | None]:
    return sighting.role, sighting.term, sighting.leader
