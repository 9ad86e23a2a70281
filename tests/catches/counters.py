"""A service of counters in memory and in virtual time, correct or with one planted bug; see `tests.catches.services`."""

from __future__ import annotations

import asyncio
import enum
from types import MappingProxyType
from typing import TYPE_CHECKING

from harness.op import Fail, Ok
from tests.catches import services
from tests.catches.services import now_s

if TYPE_CHECKING:
    from harness.op import Invocation, Outcome


class Bug(enum.StrEnum):
    """The planted bugs."""

    LOST_ADD = "lost add"  # an acknowledged add never takes effect
    LOST_UPDATE = "lost update"  # an add reads, waits and writes, and overwrites adds in between
    ADDED_TWICE = "added twice"  # a repeated request adds once more
    DIRTY_ADD = "dirty read after fail"  # a refused add takes effect
    STALE_READ = "stale read"  # a lagging node answers from its old state
    ROLLBACK = "rollback"  # a new leader lacks the acknowledged adds of the last second


# The probability of each bug; low enough that most operations are right.
RATES = MappingProxyType(
    {
        Bug.LOST_ADD: 0.2,
        Bug.LOST_UPDATE: 0.5,  # without an effect unless another add comes in between
        Bug.ADDED_TWICE: 0.2,
        Bug.DIRTY_ADD: 0.2,
        Bug.STALE_READ: 0.1,
        Bug.ROLLBACK: 0.01,
    }
)


class Service(services.Service[Bug]):
    """Counters on some nodes, each with its adds and their times."""

    def __init__(self, seed: int, bug: Bug | None) -> None:
        super().__init__(seed, bug, RATES)
        self._adds: dict[str | None, list[tuple[float, int]]] = {}

    async def apply(self, invocation: Invocation) -> Outcome:
        """Adds or reads."""
        if self.strikes(Bug.ROLLBACK):
            for key, adds in self._adds.items():
                self._adds[key] = [add for add in adds if add[0] < now_s() - 1]
        adds = self._adds.setdefault(invocation.key, [])
        if invocation.f == "read":
            horizon_s = now_s() - (0.5 if self.strikes(Bug.STALE_READ) else 0)
            return Ok(sum(amount for time_s, amount in adds if time_s <= horizon_s))
        return await self._add(adds, invocation.value)

    async def _add(self, adds: list[tuple[float, int]], amount: int) -> Outcome:
        if self.strikes(Bug.LOST_ADD):
            return Ok(amount)
        if self.strikes(Bug.LOST_UPDATE):
            seen = len(adds)
            await asyncio.sleep(0.02)
            del adds[seen:]
        adds += [(now_s(), amount)] * (2 if self.strikes(Bug.ADDED_TWICE) else 1)
        return Fail("not-leader") if self.strikes(Bug.DIRTY_ADD) else Ok(amount)
