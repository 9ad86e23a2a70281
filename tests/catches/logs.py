"""A log service in memory and in virtual time, correct or with one planted bug."""

from __future__ import annotations

import asyncio
import enum
from types import MappingProxyType
from typing import TYPE_CHECKING

from harness.op import Fail, Ok
from tests.catches.services import Service, now_s

if TYPE_CHECKING:
    from harness.op import Invocation, Outcome, Value


class Bug(enum.StrEnum):
    """The planted bugs."""

    LOST_APPEND = "lost append"  # an acknowledged append never takes effect
    SAME_OFFSET = "two values at one offset"  # the answer of an append has the offset of the append before
    APPLIED_TWICE = "append applied twice"  # a repeated request appends once more
    DIRTY_READ = "dirty read"  # a read has an entry that another entry replaces a moment later
    REFUSED_APPLIED = "refused append applied"  # a refused append takes effect
    STALE_READ = "stale follower read"  # a lagging node answers from its old state
    REORDERED = "reordered"  # an append gets an offset that an old leader had reserved
    TRUNCATED = (
        "truncation after acknowledgement"  # a new leader lacks the acknowledged entries of the last half second
    )
    WATCH_SKIPS = "watch that skips an event"
    WATCH_REPEATS = "watch that shows an event twice"
    WATCH_DISORDERS = "watch that shows an event before an older one"
    WATCH_OLDER = "watch that shows an event older than its start"


# The bugs of a watch, which only reads that follow the log can have.
OF_WATCHES = (Bug.WATCH_SKIPS, Bug.WATCH_REPEATS, Bug.WATCH_DISORDERS, Bug.WATCH_OLDER)
# The probability of each bug; low enough that most operations are right.
RATES = MappingProxyType(
    {
        Bug.LOST_APPEND: 0.02,
        Bug.SAME_OFFSET: 0.02,
        Bug.APPLIED_TWICE: 0.05,
        Bug.DIRTY_READ: 0.1,
        Bug.REFUSED_APPLIED: 0.05,
        Bug.STALE_READ: 0.1,
        Bug.REORDERED: 0.1,
        Bug.TRUNCATED: 0.01,
        **dict.fromkeys(OF_WATCHES, 0.1),
    }
)
LAG_S = 0.5


class LogService(Service[Bug]):
    """One log for each key.

    Args:
        seed: The seed of all random numbers.
        bug: The planted bug; None for the correct version.
        offsets: Whether appends return offsets.
        gap: The number of offsets that the service itself uses after every tenth entry, like a Raft log for its terms.
    """

    def __init__(self, seed: int, bug: Bug | None, *, offsets: bool = True, gap: int = 0) -> None:
        super().__init__(seed, bug, RATES)
        self._offsets = offsets
        self._gap = gap
        self._logs: dict[str | None, dict[int, tuple[float, Value]]] = {}
        self._next: dict[str | None, int] = {}
        self._reserved: dict[str | None, int] = {}

    async def apply(self, invocation: Invocation) -> Outcome:
        """Appends or reads."""
        key, value = invocation.key, invocation.value
        if self.strikes(Bug.TRUNCATED):
            self._truncate(key)
        if invocation.f == "read":
            return await self._read(key, value)
        if self.strikes(Bug.LOST_APPEND):
            return self._answer(self._take(key))
        if self._next.get(key) and self.strikes(Bug.SAME_OFFSET):
            return self._answer(self._next[key] - 1)
        offset = self._append(key, value)
        if self.strikes(Bug.APPLIED_TWICE):
            self.start(self._again(key, value))
        return Fail("not-leader") if self.strikes(Bug.REFUSED_APPLIED) else self._answer(offset)

    def _answer(self, offset: int) -> Outcome:
        return Ok(offset if self._offsets else None)

    def _take(self, key: str | None) -> int:
        """Reserves and returns the next free offset."""
        if key not in self._reserved and self.strikes(Bug.REORDERED):
            self._reserved[key] = self._free(key)
            self.start(self._hand_out(key))
        return self._free(key)

    def _free(self, key: str | None) -> int:
        offset = self._next.get(key, 0)
        self._next[key] = offset + 1
        if offset % 10 == 9:
            self._next[key] += self._gap
        return offset

    async def _hand_out(self, key: str | None) -> None:
        """Gives the next append after some time the offset that was reserved for it."""
        await asyncio.sleep(0.3)
        offset = self._reserved[key]
        self._reserved[key] = -offset - 1  # due

    def _append(self, key: str | None, value: Value) -> int:
        due = self._reserved.get(key, 0)
        if due < 0:
            offset = -due - 1
            del self._reserved[key]
        else:
            offset = self._take(key)
        self._logs.setdefault(key, {})[offset] = now_s(), value
        return offset

    async def _again(self, key: str | None, value: Value) -> None:
        await asyncio.sleep(0.2)
        self._append(key, value)

    async def _read(self, key: str | None, asked: int | list[int]) -> Outcome:
        log = self._logs.get(key, {})
        if self.strikes(Bug.STALE_READ):
            log = {offset: entry for offset, entry in log.items() if entry[0] < now_s() - LAG_S}
        first, last = asked if isinstance(asked, list) else (asked, asked)
        entries = [[offset, log[offset][1]] for offset in range(first, last + 1) if offset in log]
        if entries and self.strikes(Bug.DIRTY_READ):
            del self._logs[key][entries[-1][0]]
        if isinstance(asked, list):
            return Ok(self._shown(log, entries))
        return Ok(entries[0][1] if entries else None)

    def _shown(self, log: dict[int, tuple[float, Value]], entries: list[list[Value]]) -> list[list[Value]]:
        """Returns the entries as a watch shows them."""
        older = [offset for offset in log if entries and offset < entries[0][0]]
        if older and self.strikes(Bug.WATCH_OLDER):
            return [[older[-1], log[older[-1]][1]], *entries]
        if len(entries) > 1:
            *before, last = entries
            if self.strikes(Bug.WATCH_SKIPS):
                return [*before[:-1], last]
            if self.strikes(Bug.WATCH_REPEATS):
                return [*entries, last]
            if self.strikes(Bug.WATCH_DISORDERS):
                return [*before[:-1], last, before[-1]]
        return entries

    def _truncate(self, key: str | None) -> None:
        log = self._logs.get(key, {})
        kept = {offset: entry for offset, entry in log.items() if entry[0] < now_s() - LAG_S}
        if len(kept) < len(log):
            self._logs[key] = kept
            self._next[key] = max(kept, default=-1) + 1
