"""A queue service in memory and in virtual time, correct or with one planted bug; see `tests.catches.services`."""

from __future__ import annotations

import enum
from collections import defaultdict
from types import MappingProxyType
from typing import TYPE_CHECKING

from harness.op import Fail, Ok
from tests.catches.services import Service, now_s

if TYPE_CHECKING:
    from harness.op import Invocation, Outcome, Value


class Bug(enum.StrEnum):
    """The planted bugs."""

    LOST_ENQUEUE = "lost enqueue"  # an acknowledged value is never put in
    TWO_AT_ONCE = "dequeue takes two"  # a dequeue removes the second value too
    SHORT_DRAIN = "drain stops early"  # a dequeue drops the rest of the queue
    ROLLBACK = "rollback"  # a new leader lacks the acknowledged values of the last second
    DELIVERED_TWICE = "delivered twice"  # a value stays in the queue after it came out
    ENQUEUED_TWICE = "enqueued twice"  # a repeated request puts the value in once more
    DIRTY_ENQUEUE = "dirty enqueue after fail"  # a refused value is put in
    GARBAGE = "garbage"  # a dequeue returns a value that was not put in
    WRONG_QUEUE = "wrong queue"  # a value goes into a neighbouring queue
    SWAPPED = "swapped"  # a value is put in before its predecessor
    FROM_BEHIND = "from behind"  # a dequeue takes the newest value


# The probability of each bug; low enough that most operations are right.
RATES = MappingProxyType(
    dict.fromkeys(Bug, 0.05) | {Bug.ROLLBACK: 0.01, Bug.SWAPPED: 0.2, Bug.FROM_BEHIND: 0.2, Bug.SHORT_DRAIN: 1.0}
)


class Queues(Service[Bug]):
    """Queues on some nodes, first in, first out."""

    def __init__(self, seed: int, bug: Bug | None) -> None:
        super().__init__(seed, bug, RATES)
        self._queues: defaultdict[str, list[tuple[float, Value]]] = defaultdict(list)
        self._taken: list[tuple[float, str, tuple[float, Value]]] = []

    async def apply(self, invocation: Invocation) -> Outcome:
        """Carries out a request."""
        key, value = invocation.key or "", invocation.value
        if self.strikes(Bug.ROLLBACK):
            self._roll_back()
        if invocation.f == "enqueue":
            return self._enqueue(key, value)
        if invocation.f == "dequeue":
            return self._dequeue(key)
        queue = self._queues[key]
        if len(queue) > 2 and self.strikes(Bug.SHORT_DRAIN):
            del queue[len(queue) // 2 :]
        return Ok([self._take(key) for _ in range(len(queue))])

    def _enqueue(self, key: str, value: Value) -> Outcome:
        if self.strikes(Bug.LOST_ENQUEUE):
            return Ok(value)
        if self.strikes(Bug.WRONG_QUEUE):
            key = next(name for name in ("q0", "q1") if name != key)
        queue = self._queues[key]
        queue.append((now_s(), value))
        if self.strikes(Bug.ENQUEUED_TWICE):
            queue.append((now_s(), value))
        if len(queue) > 1 and self.strikes(Bug.SWAPPED):
            queue[-2:] = reversed(queue[-2:])
        return Fail("not-leader") if self.strikes(Bug.DIRTY_ENQUEUE) else Ok(value)

    def _dequeue(self, key: str) -> Outcome:
        queue = self._queues[key]
        if not queue:
            return Fail("empty")
        if self.strikes(Bug.GARBAGE):
            return Ok(-1 - len(self._taken))
        if self.strikes(Bug.DELIVERED_TWICE):
            return Ok(queue[0][1])
        if len(queue) > 1 and self.strikes(Bug.TWO_AT_ONCE):
            del queue[1]
        return Ok(self._take(key, -1 if len(queue) > 1 and self.strikes(Bug.FROM_BEHIND) else 0))

    def _take(self, key: str, index: int = 0) -> Value:
        entry = self._queues[key].pop(index)
        self._taken.append((now_s(), key, entry))
        return entry[1]

    def _roll_back(self) -> None:
        horizon_s = now_s() - 1.0
        for _, key, entry in reversed([taken for taken in self._taken if taken[0] >= horizon_s]):
            self._queues[key].insert(0, entry)
        self._taken = [taken for taken in self._taken if taken[0] < horizon_s]
        for key, queue in self._queues.items():
            self._queues[key] = [entry for entry in queue if entry[0] < horizon_s]
