"""Requests about one broker group, for tests that lead controllers step by step."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from clusters.systems.rocketmq.outcomes import SUCCESS
from harness.op import Invocation, Ok

if TYPE_CHECKING:
    from harness.client import Client

NAME: Final = "b1"
TRIES: Final = 600
PAUSE_S: Final = 0.1


NEXT: Final = Invocation(f="next", value={}, key=NAME)


def applying(broker: int) -> Invocation:
    """Returns the request that gives a broker its id."""
    return Invocation(f="apply", value={"id": broker, "check": broker}, key=NAME)


class BrokerGroup:
    """One broker group, through the client of a group of controllers.

    Attributes:
        client: The client.
    """

    client: Client

    async def apply(self, broker: int, client: Client | None = None) -> None:
        """Gives a broker its id, through another client if one is given; returns when a controller has answered so."""
        outcome = await self._answer(applying(broker), client)
        assert outcome["code"] == SUCCESS, outcome

    async def next(self) -> int:
        """Returns the next id of the group."""
        return int((await self._answer(NEXT, None))["next"])

    async def _answer(self, invocation: Invocation, client: Client | None) -> dict[str, int]:
        for _ in range(TRIES):
            outcome = await (client or self.client).invoke(invocation)
            if isinstance(outcome, Ok):
                return dict(outcome.value)
            await asyncio.sleep(PAUSE_S)
        raise AssertionError(f"{outcome} after {TRIES} tries")
