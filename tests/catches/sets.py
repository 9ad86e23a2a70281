"""A service of sets in memory and in virtual time, correct or with one planted bug; see `tests.catches.services`."""

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
    ROLLBACK = "rollback"  # a new leader lacks the acknowledged adds of the last second
    STALE_READ = "stale read"  # a lagging node answers from its old state
    LOST_PAGE = "lost page"  # a read leaves out some elements, old or new
    DIRTY_ADD = "dirty read after fail"  # a refused add takes effect
    PHANTOM = "phantom"  # a read returns an element without an add
    ADDED_TWICE = "added twice"  # a repeated request adds the element again, as to a list
    TWO_ORDERS = "two orders"  # until they are acknowledged, two sides show adds in different orders


# The probability of each bug; low enough that most operations are right.
RATES = MappingProxyType(
    {
        Bug.LOST_ADD: 0.02,
        Bug.ROLLBACK: 0.01,
        Bug.STALE_READ: 0.1,
        Bug.LOST_PAGE: 0.1,
        Bug.DIRTY_ADD: 0.02,
        Bug.PHANTOM: 0.3,
        Bug.ADDED_TWICE: 0.02,
        Bug.TWO_ORDERS: 0.3,  # without an effect unless two reads come in between
    }
)


class Service(services.Service[Bug]):
    """Sets on some nodes: lists of elements, each with the times from which two sides show it."""

    def __init__(self, seed: int, bug: Bug | None) -> None:
        super().__init__(seed, bug, RATES)
        self._sets: dict[str | None, list[tuple[int, float, float]]] = {}

    async def apply(self, invocation: Invocation) -> Outcome:
        """Adds or reads."""
        if self.strikes(Bug.ROLLBACK):
            for key, members in self._sets.items():
                self._sets[key] = [member for member in members if max(member[1:]) < now_s() - 1]
        members = self._sets.setdefault(invocation.key, [])
        return await self._add(members, invocation.value) if invocation.f == "add" else Ok(self._read(members))

    async def _add(self, members: list[tuple[int, float, float]], element: int) -> Outcome:
        if self.strikes(Bug.LOST_ADD):
            return Ok(element)
        one_s = other_s = now_s()
        if self.strikes(Bug.TWO_ORDERS):
            one_s, other_s = self.draws.choice([(one_s, other_s + 0.15), (one_s + 0.15, other_s)])
        members += [(element, one_s, other_s)] * (2 if self.strikes(Bug.ADDED_TWICE) else 1)
        await asyncio.sleep(max(one_s, other_s) - now_s())
        return Fail("not-leader") if self.strikes(Bug.DIRTY_ADD) else Ok(element)

    def _read(self, members: list[tuple[int, float, float]]) -> list[int]:
        side = self.draws.choice([1, 2])
        lag_s = 0.5 if self.strikes(Bug.STALE_READ) else 0.0
        elements = [member[0] for member in members if member[side] <= now_s() - lag_s]
        if elements and self.strikes(Bug.LOST_PAGE):
            first = self.draws.randrange(len(elements))
            del elements[first : first + 5]
        if self.strikes(Bug.PHANTOM):
            elements.append(-1)
        self.draws.shuffle(elements)
        return elements
