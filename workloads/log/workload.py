"""The log workload: appends, and reads of recent entries; after healing, reads of whole logs."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar

from harness.combinators import each_stream, independent, mix, on_update
from harness.declare import hold_bounds, option
from harness.errors import InputError
from harness.op import Invocation
from workloads.base import JudgedWorkload
from workloads.finals import keys_of
from workloads.log.whole import RANGE, Offsets, WholeLogs, final_ranges

if TYPE_CHECKING:
    from collections.abc import Sequence

    from checker.formats.columns import Columns
    from checker.judging import Judgement
    from harness.combinators import Source, Stream
    from harness.final_reads import FinalReads
    from harness.generator import Asker, Generator
    from harness.node import Node
    from harness.op import Op, Operation, Value
    from harness.verdict import Part


@dataclass(frozen=True, slots=True, kw_only=True)
class LogOptions:
    """The options of the log workload."""

    keys: int = option(
        1, "The number of independent logs; with 1, operations have no key.", low=1, high=1000, shrinks_to=1
    )
    read_share: float = option(0.3, "The share of operations that are reads.", low=0, high=1)
    range_share: float = option(0.5, "The share of reads that cover a range of offsets.", low=0, high=1)
    range_length: int = option(
        20, "The maximum number of offsets that a read covers; final reads cover 1000.", low=1, high=1000
    )
    recent: int = option(100, "Reads start among this many of the highest known offsets.", low=1, high=1_000_000_000)
    linearizable: bool = option(
        default=True,
        help="Each read must return all entries that were known before it began; without it, they may appear later.",
        judges=True,
    )
    follow: bool = option(
        default=False,
        help="Each read begins after the last entry that its process has read, as a watch or a consumer does, and covers 1000 "
        "offsets. Then a read must not skip, repeat or reorder entries, or return older ones.",
        judges=True,
    )

    def __post_init__(self) -> None:
        hold_bounds(self)
        if self.read_share >= 1:
            raise InputError("the log workload needs appends; choose a read share below 1")


class LogWorkload(JudgedWorkload[LogOptions]):
    """Appends and reads by offset, one log for each key; see `harness.workload.Workload` and `checker.judging.Judge`.

    Attributes:
        key_prefix: What each key begins with.
    """

    name = "log"
    summary = (
        "Appends that return an offset, and reads by offset and by range, checked against the guarantees of a log."
    )
    Options = LogOptions
    key_prefix: ClassVar[str] = "l"
    functions = MappingProxyType(
        {
            "append": "a value, not null -> its offset, or null if the system has no offsets",
            "read": (
                "an offset -> the value there, or null; [first, last] -> [[offset, value], ...] from the first to the last "
                "offset"
            ),
        }
    )

    def generator(self, *, seed: int, streams: int) -> Generator:
        """Returns appends, and reads that begin a drawn distance before the highest known offset, but never below 0."""
        offsets = Offsets()
        streamed = each_stream(lambda stream: self._operations(stream, offsets), seed=seed, streams=streams)
        return on_update(offsets.update, streamed)

    def final_generator(self, *, history: Sequence[Op], node: Node) -> Generator:  # noqa: ARG002 - the same for each node
        """Returns reads that cover every log in the history."""
        return WholeLogs(history, keys_of(history))

    def final_part(self, operations: Sequence[Operation], reads: FinalReads) -> Part:
        """Returns the part `final-reads`, with the ranges of offsets."""
        return final_ranges(operations, reads)

    def judge(self, history: Columns) -> Judgement:
        """Decides one log; see `workloads.log.judge`.

        Raises:
            InputError: The workload has no such operation.
        """
        from workloads.log.judge import judge_log  # noqa: PLC0415 - `--help` needs no judge

        return judge_log(history, linearizable=self.options.linearizable, follow=self.options.follow)

    def _operations(self, stream: Stream, offsets: Offsets) -> Generator:
        options = self.options

        def append(_: Asker) -> Invocation:
            stream.skip(3)
            return Invocation("append", stream.unique(), stream.key)

        def read_entry(asker: Asker) -> Invocation:
            back = stream.below(options.recent)
            stream.skip(1)
            return Invocation("read", _from_highest(back) if asker.preview else offsets.before(stream.key, back))

        def read_range(asker: Asker) -> Invocation:
            back, length = stream.below(options.recent), 1 + stream.below(options.range_length)
            if asker.preview:
                return Invocation("read", [_from_highest(back), _from_highest(back - length + 1)])
            first = offsets.before(stream.key, back)
            return Invocation("read", [first, first + length - 1])

        def follow(asker: Asker) -> Invocation:
            back = stream.below(options.recent)
            stream.skip(2)
            if asker.preview:
                return Invocation("read", ["next", f"next+{RANGE - 1}"])
            first = offsets.next_of(asker.process, stream.key, back)
            return Invocation("read", [first, first + RANGE - 1])

        read = follow if options.follow else mix(stream, (options.range_share, read_range), rest=read_entry)
        operations = mix(stream, (options.read_share, read), *self._further(stream, offsets), rest=append)
        return independent(stream, lambda: stream.any_key(self.key_prefix, options.keys), operations)

    def _further(self, stream: Stream, offsets: Offsets) -> Sequence[tuple[float, Source]]:  # noqa: ARG002 - a log has none
        """Returns further operations with their shares. Each draws three numbers, as an append does."""
        return ()


def _from_highest(back: int) -> Value:
    """Returns the words for an offset that only the run knows: `highest` or e.g. `highest-7`."""
    return f"highest{-back:+d}" if back else "highest"
