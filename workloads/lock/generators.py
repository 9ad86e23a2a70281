"""The generators of the lock workload: of its main phase, and of its final acquires.

The process that acquired a lock also releases it, after a while. The generator knows the process from the completion event. In
a closed loop, a worker waits while its process holds a lock. In an open loop, an arrival is dropped if its process still holds
a lock. A process with an `info` never works again, and never releases its lock.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from harness.generator import Later
from harness.op import FINAL_PHASE, Invocation, OpType
from harness.units import NS_PER_S
from workloads.lock.streams import Stream

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harness.generator import Answer, Asker
    from harness.op import Op, Process, Value
    from workloads.lock.options import LockOptions

ATTEMPTS: Final = 5
_NS_PER_MS: Final = NS_PER_S // 1000


@dataclass(slots=True)
class _Hold:
    """A lock that a process holds according to the answers.

    Attributes:
        key: The lock.
        token: Its fencing token; None if there is none.
        until_ns: The time of its release.
        attempts: The number of further attempts to release it.
    """

    key: str | None
    token: Value
    until_ns: int
    attempts: int = ATTEMPTS

    def release(self) -> Invocation:
        """Returns the release of the lock."""
        return Invocation("release", self.token, self.key)


class _Holds:
    """The locks that the processes hold."""

    def __init__(self) -> None:
        self._holds: dict[Process, _Hold] = {}

    def __len__(self) -> int:
        return len(self._holds)

    def of(self, process: Process) -> _Hold | None:
        """Returns the lock that a process holds; None if it holds none."""
        return self._holds.get(process)

    def acquired(self, event: Op, hold_ns: int) -> None:
        """Records a lock that a process acquired."""
        self._holds[event.process] = _Hold(event.key, event.value, event.time_ns + hold_ns)

    def update(self, event: Op) -> None:
        """Handles the end of a release. A failed release is repeated a limited number of times."""
        hold = self._holds.get(event.process)
        if hold is None or event.type is OpType.INVOKE:
            return
        hold.attempts -= 1
        if event.type is not OpType.FAIL or not hold.attempts:
            del self._holds[event.process]


class LockGenerator:
    """Gives each worker the turns of its stream, without end, and each process the release of the lock that it acquired."""

    def __init__(self, options: LockOptions, *, seed: int, streams: int) -> None:
        self._streams = [Stream(options, seed=seed, number=number, streams=streams) for number in range(streams)]
        self._holds = _Holds()
        self._acquiring: dict[Process, int] = {}  # the planned time of the hold, for each process in an acquire

    def ask(self, asker: Asker) -> Answer:
        """Returns the release of the process' lock when it is due; without a lock, the next turn of the stream."""
        hold = self._holds.of(asker.process)
        if hold is not None:
            return Later(hold.until_ns) if asker.now_ns < hold.until_ns else hold.release()
        turn = self._streams[asker.worker].next()
        if turn.f == "acquire":
            self._acquiring[asker.process] = round(turn.hold_ms * _NS_PER_MS)
        return Invocation(turn.f, None, turn.key)

    def update(self, event: Op) -> None:
        """Records acquires and releases."""
        if event.type is OpType.INVOKE:
            return
        hold_ns = self._acquiring.pop(event.process, None)
        if hold_ns is None:
            self._holds.update(event)
        elif event.type is OpType.OK:
            self._holds.acquired(event, hold_ns)


class OnceEach:
    """Acquires and releases each lock once. The workers share the locks.

    A failed acquire is repeated after a pause, a limited number of times. A worker without a lock waits for the others, so this
    generator is for closed loops, such as final phases.
    """

    def __init__(self, keys: Iterable[str | None], *, pause_s: float) -> None:
        self._due = deque((key, ATTEMPTS, 0) for key in keys)
        self._pause_ns = round(pause_s * NS_PER_S)
        self._in_flight: dict[Process, tuple[str | None, int]] = {}
        self._holds = _Holds()

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
        return Invocation("acquire", None, key, phase=FINAL_PHASE)

    def update(self, event: Op) -> None:
        """Records acquires and releases, and queues a lock again if its acquire did not succeed."""
        if event.type is OpType.INVOKE:
            return
        if event.process not in self._in_flight:
            self._holds.update(event)
            return
        key, attempts = self._in_flight.pop(event.process)
        if event.type is OpType.OK:
            self._holds.acquired(event, 0)
        elif attempts:
            self._due.append((key, attempts, event.time_ns + self._pause_ns))
