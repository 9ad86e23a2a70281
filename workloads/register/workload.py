"""The register workload: reads, writes and compare-and-sets on many keys."""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Final

from checker.identity import identity
from harness.combinators import KeysInTurn, each_stream, independent, mix, on_update
from harness.console.documents import shown
from harness.console.plain import counted, counted_of
from harness.declare import hold_bounds, option
from harness.errors import InputError
from harness.op import Invocation, OpType
from harness.verdict import Part
from workloads.base import BaseWorkload

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from harness.combinators import Source, Stream
    from harness.generator import Asker, Generator
    from harness.op import Op, Operation, Process, Value
    from harness.workload import Observed

SMALL_DOMAIN: Final = 5


class Values(enum.StrEnum):
    """The values of the writes."""

    UNIQUE = "unique"
    SMALL = "small"


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterOptions:
    """The options of the register workload."""

    values: Values = option(
        Values.UNIQUE,
        "unique: no value is written twice, so checking is fast. small: all values are from 0 to 4, as in Jepsen.",
    )
    mix: str = option("2:1:1", "The ratio of reads, writes and compare-and-sets.")
    hot_keys: int = option(
        2, "The number of hot keys, which are in use during the whole run.", low=0, high=1000, shrinks_to=1
    )
    hot_share: float = option(
        0.5, "The share of operations on the hot keys.", low=0, high=1, hunted=(0.5, 1.0), shrinks_to=1
    )
    ops_per_key: int = option(
        100,
        "The maximum number of operations on each other key; one key follows the other.",
        low=1,
        high=1_000_000_000,
    )

    linearizable: bool = option(
        default=True,
        help="Each operation must fit into one order that real time allows; without it, only the changes and the final reads "
        "must, and other reads may return any value that was written before.",
    )

    @property
    def parts(self) -> tuple[float, float, float]:
        """Returns the ratio of reads, writes and compare-and-sets."""
        return parse_mix(self.mix)

    def __post_init__(self) -> None:
        hold_bounds(self)
        read, write, cas = self.parts
        if read <= 0 or write + cas <= 0:
            raise InputError("a mix needs reads, and writes or compare-and-sets; without both, nothing is tested")
        if self.values is Values.UNIQUE and write <= 0:
            raise InputError(
                "a mix of unique values needs writes: a compare-and-set expects a value that was seen before"
            )


def parse_mix(text: str) -> tuple[float, float, float]:
    """Parses a ratio of reads, writes and compare-and-sets, e.g. `2:1:1`.

    Raises:
        InputError: The text has another form.
    """
    number = r"([0-9]{1,6}(?:\.[0-9]{1,6})?)"
    match = re.fullmatch(f"{number}:{number}:{number}", text.strip())
    if match is None:
        raise InputError(f"a mix is reads:writes:compare-and-sets, e.g. 2:1:1, not {shown(text)}")
    read, write, cas = (float(part) for part in match.groups())
    return read, write, cas


class RegisterWorkload(BaseWorkload[RegisterOptions]):
    """Reads, writes and compare-and-sets over independent keys; see `harness.workload.Workload`.

    Some keys are hot, in use during the whole run. The others come one after the other.
    """

    name = "register"
    summary = "Reads, writes and compare-and-sets on independent registers, checked for linearizability."
    Options = RegisterOptions
    functions = MappingProxyType(
        {
            "read": "null -> the value, or null if there is none",
            "write": "a value -> the same",
            "cas": "[expected, new] -> the same; fails if the register does not hold the expected value",
        }
    )
    model = "cas-register"
    # What hot keys and the others begin with. If both are the same, the numbers of the others follow those of the hot ones.
    hot_prefix: ClassVar[str] = "h"
    key_prefix: ClassVar[str] = "k"

    def generator(self, *, seed: int, streams: int) -> Generator:
        """Returns a mix of the functions, each operation on a hot key or on the key whose turn it is."""
        if self.options.values is Values.SMALL:
            return each_stream(lambda stream: self._mixed(stream, *small(stream)), seed=seed, streams=streams)
        seen = LastSeen()
        streamed = each_stream(lambda stream: self._mixed(stream, *unique(stream, seen)), seed=seed, streams=streams)
        return on_update(seen.update, streamed)

    def parts(self, operations: Sequence[Operation], observed: Observed) -> list[Part]:
        """Returns `linearizable` and `reads-saw-writes`. If operations have an order, there is also `order-agrees`.

        If reads may be old, `settled` and `reads-were-written` are there instead of `linearizable`: whether the changes and the
        final reads are linearizable, and each read returns a value that was written.
        """
        from checker.linearizable import linearizability  # noqa: PLC0415 - `--help` needs no judge

        if not self.options.linearizable:
            from workloads.register.settled import settled  # noqa: PLC0415

            return [*settled(self.model, operations, observed.faults), reads_saw_writes(operations)]
        return [*linearizability(self.model, operations, observed.faults), reads_saw_writes(operations)]

    def _mixed(self, stream: Stream, read: Source, write: Source, cas: Source) -> Generator:
        options = self.options
        reads, writes, changes = options.parts
        hot_below = options.hot_share if options.hot_keys else 0.0
        first = options.hot_keys if self.hot_prefix == self.key_prefix else 0
        in_turn = KeysInTurn(stream, options.ops_per_key, prefix=self.key_prefix, first=first)

        def key() -> str:
            position = stream.random()
            if position >= hot_below:
                return in_turn()
            return f"{self.hot_prefix}{int(position / hot_below * options.hot_keys)}"

        return independent(stream, key, mix(stream, (reads, read), (writes, write), (changes, cas)))


def small(stream: Stream) -> tuple[Source, Source, Source]:
    """Returns reads, writes and compare-and-sets of values from 0 to 4."""

    def read(_: Asker) -> Invocation:
        stream.skip(2)
        return Invocation("read")

    def write(_: Asker) -> Invocation:
        value = stream.below(SMALL_DOMAIN)
        stream.skip(1)
        return Invocation("write", value, stream.key)

    def cas(_: Asker) -> Invocation:
        new, expected = stream.below(SMALL_DOMAIN), stream.below(SMALL_DOMAIN)
        return Invocation("cas", [expected, new], stream.key)

    return read, write, cas


def unique(stream: Stream, seen: LastSeen) -> tuple[Source, Source, Source]:
    """Returns reads, and writes and compare-and-sets of values that nobody else writes.

    A compare-and-set expects the latest value in the answers about its key. Until there is one, a read takes its place.
    """
    read = Invocation("read")

    def write(_: Asker) -> Invocation:
        return Invocation("write", stream.unique(), stream.key)

    def cas(asker: Asker) -> Invocation:
        expected = "last-seen" if asker.preview else seen.values.get(stream.key)
        return read if expected is None else Invocation("cas", [expected, stream.unique()], stream.key)

    return read, write, cas


class LastSeen:
    """The latest value of each key in the answers.

    Attributes:
        values: The values, by key.
    """

    def __init__(self) -> None:
        self.values: dict[str | None, int] = {}

    def update(self, event: Op) -> None:
        """Stores the latest value of a key."""
        if event.type is not OpType.OK:
            return
        # A client can return anything, so other values are ignored.
        match event.f, event.value:
            case ("read" | "write", int(value)) | ("cas", [_, int(value)]):
                self.values[event.key] = value
            case "read", None:
                self.values.pop(event.key, None)


def reads_saw_writes(operations: Sequence[Operation]) -> Part:
    """Checks that some read returned a value that another process wrote, and that its own process did not write."""
    writers: dict[tuple[str | None, Hashable], set[Process]] = {}
    for operation in operations:
        if operation.f != "read":
            written = operation.value[1] if operation.f == "cas" else operation.value
            writers.setdefault((operation.key, identity(written)), set()).add(operation.process)
    reads = seen = 0
    for operation in operations:
        if operation.f == "read" and operation.type is OpType.OK:
            reads += 1
            writing = writers.get((operation.key, identity(operation.result)))
            seen += writing is not None and operation.process not in writing
    details: dict[str, Value] = {"reads": reads, "of_others": seen}
    nothing = f"None of {counted(reads, 'read')} saw a write of another process, so nothing was tested."
    return Part.of(
        "reads-saw-writes",
        details,
        held=f"{counted_of(seen, reads, 'read')} saw a write of another process.",
        untested=None if seen else nothing,
    )
