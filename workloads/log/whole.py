"""The reads of whole logs after healing: their offsets, their generator, and their part of the verdict."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from harness.combinators import until_ok
from harness.op import FINAL_PHASE, Invocation, OpType
from harness.verdict import Part, Verdict
from workloads.finals import final_reads

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from harness.final_reads import FinalReads
    from harness.generator import Answer, Asker
    from harness.op import Op, Operation, Process, Value

RANGE: Final = 1000  # the number of offsets of a final read
BEYOND: Final = 100  # final reads cover at least so many offsets above the highest known one
MAX_RANGES: Final = 10_000  # in a log with more ranges, final reads leave out ranges without a known offset
_MAX_OFFSET: Final = 10**18 - 1
_MAX_NAMED: Final = 20


class Offsets:
    """The known offsets of each log, from answers and reads.

    An append that was acknowledged without an offset counts as one further offset, until reads have higher ones.
    """

    def __init__(self) -> None:
        self._highest: dict[str | None, int] = {}
        self._since: dict[str | None, int] = {}
        self._ranges: dict[str | None, set[int]] = {}
        self._reading: dict[Process, int] = {}
        self._next: dict[tuple[Process, str | None], int] = {}
        self._last_read: dict[tuple[Process, str | None], int] = {}

    def highest(self, key: str | None) -> int:
        """Returns the highest known offset; 0 if nothing is known."""
        return max(0, self._highest.get(key, -1) + self._since.get(key, 0))

    def before(self, key: str | None, back: int) -> int:
        """Returns the offset that lies so far before the highest known one; at least 0."""
        return max(0, self.highest(key) - back)

    def next_of(self, process: Process, key: str | None, back: int) -> int:
        """Returns the offset after the last one that a process has read by ranges; before its first entry, `before`."""
        return self._next.setdefault((process, key), self.before(key, back))

    def last_read(self, process: Process, key: str | None) -> int | None:
        """Returns the highest offset that a process has read by ranges; None before its first entry."""
        return self._last_read.get((process, key))

    def ranges(self, key: str | None) -> Sequence[int]:
        """Returns the numbers of the ranges of `RANGE` offsets that final reads cover."""
        last = (self.highest(key) + BEYOND) // RANGE
        if last < MAX_RANGES:
            return range(last + 1)
        return sorted({*self._ranges.get(key, ()), last})

    def update(self, event: Op) -> None:
        """Records the offsets in an event. It ignores bad results."""
        if event.type is OpType.INVOKE:
            if event.f == "read" and type(event.value) is int:
                self._reading[event.process] = event.value
            return
        offset = self._reading.pop(event.process, None)
        if event.type is not OpType.OK:
            return
        if event.f == "append" and event.value is None:
            self._since[event.key] = self._since.get(event.key, 0) + 1
        elif event.f == "append":
            self._learn(event.key, event.value)
        elif offset is not None:
            self._learn(event.key, None if event.value is None else offset)
        elif event.f == "read" and isinstance(event.value, list):
            for entry in event.value:
                if isinstance(entry, list) and entry and self._learn(event.key, entry[0]):
                    followed = event.process, event.key
                    self._next[followed] = max(self._next.get(followed, 0), entry[0] + 1)
                    self._last_read[followed] = max(self._last_read.get(followed, 0), entry[0])

    def _learn(self, key: str | None, offset: Value) -> bool:
        """Returns whether it is an offset."""
        if type(offset) is not int or not 0 <= offset <= _MAX_OFFSET:
            return False
        more = offset - self._highest.get(key, -1)
        if more > 0:
            self._highest[key] = offset
            self._since[key] = max(0, self._since.get(key, 0) - more)
        self._ranges.setdefault(key, set()).add(offset // RANGE)
        return True


class WholeLogs:
    """Reads whole logs, in ranges of `RANGE` offsets. It continues while the reads find higher offsets."""

    def __init__(self, history: Sequence[Op], keys: Sequence[str | None]) -> None:
        self._keys = keys
        self._offsets = Offsets()
        for event in history:
            self._offsets.update(event)
        self._requested: set[tuple[str | None, int]] = set()
        self._reads = until_ok(self._due())

    def ask(self, asker: Asker) -> Answer:
        """Returns a read that has not succeeded yet."""
        answer = self._reads.ask(asker)
        if answer is None:
            self._reads = until_ok(self._due())
            answer = self._reads.ask(asker)
        return answer

    def update(self, event: Op) -> None:
        """Records the offsets and the outcome of a read."""
        self._offsets.update(event)
        self._reads.update(event)

    def _due(self) -> Iterator[Invocation]:
        for key in self._keys:
            for number in self._offsets.ranges(key):
                if (key, number) not in self._requested:
                    self._requested.add((key, number))
                    yield Invocation("read", [number * RANGE, (number + 1) * RANGE - 1], key, FINAL_PHASE)


def final_ranges(operations: Sequence[Operation], reads: FinalReads) -> Part:
    """Checks that each range of each log was read after healing, and names the nodes.

    Args:
        operations: All operations of the run.
        reads: The results of the final reads.
    """
    part = final_reads(operations, reads)
    was_read: dict[tuple[str | None, str], bool] = {}
    for operation in operations:
        if operation.phase == FINAL_PHASE:
            name = operation.key, str(operation.value)
            was_read[name] = was_read.get(name, False) or operation.type is OpType.OK
    unread = [f"{'' if key is None else f'{key} '}{value}" for (key, value), read in was_read.items() if not read]
    details = {**part.details, "ranges": len(was_read), "unread_ranges": unread[:_MAX_NAMED]}
    if part.verdict is Verdict.VALID and unread:
        reason = (
            f"{len(unread)} of {len(was_read)} ranges of offsets could not be read after healing, "
            f"so an append lost there was not seen; the first is {unread[0]}."
        )
        return Part(name=part.name, verdict=Verdict.UNKNOWN, reason=reason, details=details)
    return replace(part, details=details)
