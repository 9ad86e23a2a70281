"""The built-in conditions with which faults begin; `nemesis.builtin` names them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.capabilities import SIMULATED
from harness.faults import Fired
from nemesis.errors import FaultError
from nemesis.triggers import Condition

if TYPE_CHECKING:
    from harness.capabilities import Capabilities
    from harness.faults import Trigger
    from harness.world import World
    from nemesis.field import Field


class RareMessage(Condition):
    """A rare message from or to a possible target. Without one, it fires at its limit."""

    SUMMARY = (
        "A rare message between simulated nodes, from or to a possible target; or the limit, without such a message."
    )

    ALWAYS = True

    @classmethod
    def lacks(cls, node: str, can: Capabilities) -> str | None:
        """Only simulated nodes show their messages."""
        if SIMULATED in can.available:
            return None
        return f"{node} does not show Labrys its messages, so no fault can wait for one; use --cluster sim, or no --fault-wait"

    @classmethod
    def prepare(cls, trigger: Trigger, field: Field, world: World | None) -> None:  # noqa: ARG003
        """Lets the world count messages from the start, as rare ones are those of which there were few."""
        if world is not None:
            world.count_messages()

    async def fires(self) -> Fired:
        """Waits for the message, or for the limit."""
        if self.world is None:
            raise FaultError("real nodes do not show their messages; use another trigger, `labrys faults` lists them")
        message = await self.world.rare_message(frozenset(self.targets), self.trigger.limit_s)
        now_ns = self.sight.clock.now_ns()
        if message is None:
            return Fired(time_ns=now_ns, what=f"without a rare message in {self.trigger.limit_s:g} s")
        when = "before" if message.held else "after"
        return Fired(time_ns=now_ns, what=f"{when} {message.kind} from {message.source} to {message.target}")
