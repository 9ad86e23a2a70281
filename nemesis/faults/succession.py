"""Kills one leader after another: the leader, and then its successor, soon after its election.

A new leader makes its followers' logs equal to its own before it serves. A buggy system can lose data here if the new leader
dies at this moment. Never more than a minority is down, so a correct Raft group loses time, but no acknowledged data.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from harness.targets import Named
from nemesis import options as opt
from nemesis import targets as tgt
from nemesis.errors import FaultError
from nemesis.faults.process import Kill
from nemesis.grudges import minority

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from harness.faults import PlannedFault
    from nemesis.fault import Drawing, Drawn
    from nemesis.field import Field

LEAST_AFTER_S = 0.1
MOST_AFTER_S = 4.0
PROVING_S = 1.0  # the part of the fault's time that is left for the proof


class KillLeaders(Kill):
    """`leaders-kill`."""

    SUMMARY: ClassVar[str] = (
        "Kills the leader, and each next leader `after` seconds from its election, until a minority is down; starts them "
        "again at the end."
    )
    TARGETS: ClassVar[tuple[tgt.Target, ...]] = (tgt.LEADER_MINORITY,)
    OPTIONS: ClassVar[Mapping[str, opt.Option]] = {
        "after": opt.number(
            None, 0.0, 60.0, "The seconds from an election to the kill of the new leader; drawn if not given."
        )
    }

    def __init__(self, *, planned: PlannedFault, targets: tuple[str, ...], field: Field) -> None:
        super().__init__(planned=planned, targets=targets, field=field)
        self.after_s = float(self.options.get("after", LEAST_AFTER_S))

    @classmethod
    def draw(cls, drawing: Drawing) -> Drawn:
        """Draws the order of nodes and, if it is not given, the life of a new leader, log-uniformly."""
        drawn = super().draw(drawing)
        after_s = LEAST_AFTER_S * (MOST_AFTER_S / LEAST_AFTER_S) ** drawing.rng.random()
        return drawn.with_usual({"after": round(after_s, 2)})

    async def one_after_another(self, kill: Callable[[str], Awaitable[None]]) -> tuple[str, ...]:
        """Kills the leader, waits for the next one, and kills it too, until a minority is down or the time is over.

        Args:
            kill: Kills the process on a node.

        Returns:
            The nodes whose process it killed.

        Raises:
            FaultError: There was no leader, or it could not be killed.
        """
        loop = asyncio.get_running_loop()
        until_s = loop.time() + self.planned.lasts_s - PROVING_S
        named = self.targets if isinstance(self.planned.target, Named) else ()
        killed: list[str] = []
        for turn in range(len(named) or minority(len(self.members))):
            wait_s = self.after_s if killed else 0.0
            leader = await self.field.leader(max(0.0, until_s - wait_s - loop.time()), self.role)
            if leader is None:
                self.problems["next"] = "no node reported in time that it leads"
                break
            await asyncio.sleep(wait_s)
            victim = named[turn] if named else leader
            occupied = replace(self.occupied, nodes=frozenset({victim}))
            if any(other is not self for other in self.field.holders(occupied)):
                self.problems[victim] = "left out, because another fault affects it"
                break
            await kill(victim)
            killed.append(victim)
        if not killed:
            raise FaultError(f"fault {self.name} killed no process:  {'; '.join(self.problems.values())}")
        return tuple(killed)
