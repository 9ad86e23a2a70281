"""The generators of the register workload: its main phase, and the last reads."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from harness.generator import Later
from harness.op import FINAL_PHASE, Invocation, OpType
from workloads.register.options import Values
from workloads.register.streams import Stream

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harness.generator import Answer, Asker
    from harness.op import Op, Process
    from workloads.register.options import RegisterOptions

FINAL_ATTEMPTS = 5


class RegisterGenerator:
    """Answers each worker the operations of its stream, for ever.

    A compare-and-set on unique values expects the value that anyone saw last on its key. While nobody has seen one, a read
    takes its place.
    """

    def __init__(self, options: RegisterOptions, *, seed: int, streams: int) -> None:
        self._unique = options.values is Values.UNIQUE
        self._streams = [Stream(options, seed=seed, number=number, streams=streams) for number in range(streams)]
        self._seen: dict[str | None, int] = {}

    def ask(self, asker: Asker) -> Answer:
        """Returns the next operation of the asker's stream."""
        f, key, value, expected = self._streams[asker.worker].next()
        if f != "cas":
            return Invocation(f, value, key)
        if self._unique:
            expected = self._seen.get(key)
        return Invocation("read", None, key) if expected is None else Invocation("cas", [expected, value], key)

    def told(self, event: Op) -> None:
        """Remembers what was seen last."""
        if event.type is not OpType.OK or not self._unique:
            return
        # What a client answered may be anything.
        match event.f, event.value:
            case ("read" | "write", int(value)) | ("cas", [_, int(value)]):
                self._seen[event.key] = value
            case "read", None:
                self._seen.pop(event.key, None)


class FinalReads:
    """Reads each key until it was read once, in a bounded number of attempts; the workers share the keys."""

    def __init__(self, keys: Iterable[str]) -> None:
        self._due = deque((key, FINAL_ATTEMPTS) for key in keys)
        self._in_flight: dict[Process, tuple[str, int]] = {}

    def ask(self, asker: Asker) -> Answer:
        """Returns a read of a key that was not read yet."""
        if not self._due:
            return Later() if self._in_flight else None
        key, attempts = self._due.popleft()
        self._in_flight[asker.process] = key, attempts - 1
        return Invocation("read", None, key, FINAL_PHASE)

    def told(self, event: Op) -> None:
        """Takes a key up again whose read did not succeed."""
        if event.type is OpType.INVOKE or event.process not in self._in_flight:
            return
        key, attempts = self._in_flight.pop(event.process)
        if event.type is not OpType.OK and attempts:
            self._due.append((key, attempts))


def keys_of(history: Iterable[Op]) -> list[str]:
    """Returns all keys that clients touched, in the order in which they did first."""
    return list(dict.fromkeys(op.key for op in history if op.key is not None))
