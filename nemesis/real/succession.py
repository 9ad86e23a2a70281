"""Kills one leader after another on real nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.faults import Begun
from nemesis.real.process import KillOnNodes

if TYPE_CHECKING:
    from nemesis.faults.succession import KillLeaders


class KillLeadersOnNodes(KillOnNodes):
    """`leaders-kill`."""

    fault: KillLeaders

    async def begin(self) -> Begun:
        """Kills the leaders one after another."""

        async def kill(victim: str) -> None:
            await self.act([victim], self._kill, "kill")

        self.fault.targets = self.targets = await self.fault.one_after_another(kill)
        return Begun(
            targets=self.targets,
            details={"pids": self.pids_before(), "after_s": self.fault.after_s, "problems": dict(self.problems)},
        )
