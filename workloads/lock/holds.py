"""The locks that processes hold during a run, and the acquires after healing.

The process that acquired a lock also releases it, after a while. The generator knows the process from the completion event. In
a closed loop, a worker waits while its process holds a lock. In an open loop, an arrival is dropped if its process still holds
a lock. A process with an `info` never works again, and never releases its lock.

With a resource, the holder writes to it at the beginning of its hold, and again at the end, before the release.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from harness.console.plain import counted
from harness.generator import Later
from harness.op import FINAL_PHASE, RESOURCE_PHASE, Invocation, OpType
from harness.units import NS_PER_S
from harness.verdict import Verdict
from workloads.finals import final_reads

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from harness.final_reads import FinalReads
    from harness.generator import Answer, Asker, Generator
    from harness.op import Op, Operation, Process, Value
    from harness.verdict import Part

ATTEMPTS: Final = 5
WRITES: Final = 2  # at the beginning and at the end of a hold
_NS_PER_MS: Final = NS_PER_S // 1000


@dataclass(slots=True)
class _Hold:
    """A lock that a process holds according to the answers.

    Attributes:
        key: The lock.
        token: Its fencing token; None if there is none.
        until_ns: The time of its release.
        attempts: The number of further attempts to release it.
        writes: The number of further writes to the resource.
    """

    key: str | None
    token: Value
    until_ns: int
    attempts: int = ATTEMPTS
    writes: int = 0

    def release(self) -> Invocation:
        """Returns the release of the lock."""
        return Invocation("release", self.token, self.key)

    def due(self, now_ns: int) -> Invocation | Later:
        """Returns what the holder does next: a write, the release, or a wait for the end of the hold."""
        if now_ns < self.until_ns and self.writes < WRITES:
            return Later(self.until_ns)
        return Invocation("write", self.token, self.key, RESOURCE_PHASE) if self.writes else self.release()


class Holds:
    """The locks that the processes hold, and the planned times of the holds."""

    def __init__(self, *, writes: int = 0) -> None:
        """Begins without a lock.

        Args:
            writes: The number of writes to the resource in a hold.
        """
        self._writes = writes
        self._holds: dict[Process, _Hold] = {}
        self._planned_ns: dict[Process, int] = {}  # for each process in an acquire

    def __len__(self) -> int:
        return len(self._holds)

    def of(self, process: Process) -> _Hold | None:
        """Returns the lock that a process holds; None if it holds none."""
        return self._holds.get(process)

    def plan(self, process: Process, hold_ms: float) -> None:
        """Says how long a process will hold the lock that it is about to acquire."""
        self._planned_ns[process] = round(hold_ms * _NS_PER_MS)

    def update(self, event: Op) -> None:
        """Records an acquire, or the end of a release. A failed release is repeated a limited number of times."""
        if event.type is OpType.INVOKE:
            return
        hold_ns = self._planned_ns.pop(event.process, None)
        hold = self._holds.get(event.process)
        if hold_ns is not None:
            if event.type is OpType.OK:
                self._holds[event.process] = _Hold(event.key, event.value, event.time_ns + hold_ns, writes=self._writes)
        elif hold is not None and event.f == "write" and event.type is not OpType.INFO:
            hold.writes -= 1
        elif hold is not None:
            hold.attempts -= 1
            if event.type is not OpType.FAIL or not hold.attempts:
                del self._holds[event.process]


class Releasing:
    """Answers the writes of a holder and its release when they are due; without a lock, the next turn of a stream."""

    def __init__(self, holds: Holds, turns: Generator) -> None:
        self._holds = holds
        self._turns = turns

    def ask(self, asker: Asker) -> Answer:
        """Returns a write, the release or the turn, or lets the process wait while it holds its lock."""
        hold = self._holds.of(asker.process)
        return self._turns.ask(asker) if hold is None else hold.due(asker.now_ns)

    def update(self, event: Op) -> None:
        """Records acquires and releases."""
        self._holds.update(event)


class OnceEach:
    """Acquires and releases each lock once. The workers share the locks.

    A failed acquire is repeated after a pause, a limited number of times. A worker without a lock waits for the others, so this
    generator is for closed loops, such as final phases.
    """

    def __init__(self, keys: Iterable[str | None], *, pause_s: float) -> None:
        self._due = deque((key, ATTEMPTS, 0) for key in keys)
        self._pause_ns = round(pause_s * NS_PER_S)
        self._in_flight: dict[Process, tuple[str | None, int]] = {}
        self._holds = Holds()

    def ask(self, asker: Asker) -> Answer:
        """Returns the release of the process' lock, or the acquire of a remaining lock."""
        hold = self._holds.of(asker.process)
        if hold is not None:
            return hold.release()._replace(phase=FINAL_PHASE)
        if not self._due:
            return Later() if self._in_flight or len(self._holds) else None
        key, attempts, at_ns = self._due[0]
        if asker.now_ns < at_ns:
            return Later(at_ns, or_event=True)
        self._due.popleft()
        self._in_flight[asker.process] = key, attempts - 1
        self._holds.plan(asker.process, 0)
        return Invocation("acquire", None, key, phase=FINAL_PHASE)

    def update(self, event: Op) -> None:
        """Records acquires and releases, and queues a lock again if its acquire did not succeed."""
        self._holds.update(event)
        if event.type is OpType.INVOKE or event.process not in self._in_flight:
            return
        key, attempts = self._in_flight.pop(event.process)
        if event.type is not OpType.OK and attempts:
            self._due.append((key, attempts, event.time_ns + self._pause_ns))


def final_acquires(operations: Sequence[Operation], reads: FinalReads) -> Part:
    """Returns the part `final-reads`, with a reason about locks.

    Args:
        operations: All operations of the run.
        reads: The results of the final operations.
    """
    part = final_reads([operation for operation in operations if operation.f == "acquire"], reads)
    keys, unread = part.details["keys"], part.details["unread"]
    if reads.missing is not None or not keys:
        return part
    if part.verdict is Verdict.UNKNOWN:
        named = ", ".join(map(str, unread))
        reason = f"Some of {counted(keys, 'lock')} could not be acquired after healing: {named}."
    else:
        through = ", ".join(f"{node} ({count})" for node, count in part.details["keys_by_node"].items())
        left_out = "".join(f" {node} was left out: it {why}." for node, why in reads.left_out.items())
        what = f"All {keys:,} locks were" if keys > 1 else "The only lock was"
        reason = f"{what} acquired again after healing, through {through}.{left_out}"
    return replace(part, reason=reason)
