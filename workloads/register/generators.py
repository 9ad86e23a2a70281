"""The generator of the register workload's main phase."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.op import Invocation, OpType
from workloads.register.options import Values
from workloads.register.streams import Stream

if TYPE_CHECKING:
    from harness.generator import Answer, Asker
    from harness.op import Op
    from workloads.register.options import RegisterOptions


class RegisterGenerator:
    """Gives each worker the operations of its stream, without end.

    A compare-and-set on unique values expects the latest value in the answers about its key. Until there is one, the generator
    gives a read instead.
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

    def update(self, event: Op) -> None:
        """Stores the latest value of a key."""
        if event.type is not OpType.OK or not self._unique:
            return
        # A client can return anything, so other values are ignored.
        match event.f, event.value:
            case ("read" | "write", int(value)) | ("cas", [_, int(value)]):
                self._seen[event.key] = value
            case "read", None:
                self._seen.pop(event.key, None)
