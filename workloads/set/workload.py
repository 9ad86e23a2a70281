"""The set workload: adds of unique elements, and reads of the whole set."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from harness.combinators import each_stream
from harness.declare import hold_bounds, option
from harness.op import Invocation
from workloads.base import JudgedWorkload

if TYPE_CHECKING:
    from checker.formats.columns import Columns
    from checker.judging import Judgement
    from harness.combinators import Source, Stream
    from harness.generator import Asker, Generator


@dataclass(frozen=True, slots=True, kw_only=True)
class SetOptions:
    """The options of the set workload.

    A read returns the whole set, so reads of a large set are expensive. Reads become rarer as the set grows: all reads
    together return at most about `read_cost` elements for each add.
    """

    keys: int = option(
        1, "The number of independent sets; with 1, operations have no key.", low=1, high=10_000, shrinks_to=1
    )
    reads_every: int = option(
        100, "The number of adds for each read, while the set is small.", low=1, high=1_000_000_000
    )
    read_cost: int = option(
        20, "The maximum mean number of elements that reads return for each add.", low=1, high=1_000_000
    )
    linearizable: bool = option(
        default=True,
        help="Each read must return all elements acknowledged before it began; without it, they may appear later.",
        judges=True,
    )

    exact_reads: bool = option(
        default=True,
        help="Each read must return an element once, and only if an add of it may have begun; without it, a warning says so.",
        judges=True,
    )
    rest: float = option(
        5.0,
        "Without --linearizable: a read shows a loss if it is a final one, or begins this many seconds after the last add.",
        low=0,
        high=3600,
        judges=True,
    )

    def __post_init__(self) -> None:
        hold_bounds(self)


class SetWorkload(JudgedWorkload[SetOptions]):
    """Adds of unique elements, and reads of all; see `harness.workload.Workload` and `checker.judging.Judge`."""

    name = "set"
    summary = (
        "Adds of unique elements and reads of the whole set; the checker finds lost, stale and unexpected elements."
    )
    Options = SetOptions
    functions = MappingProxyType(
        {
            "add": "an element -> the same",
            "read": "null -> the list of all elements, in any order; a client keeps duplicates",
        }
    )

    def generator(self, *, seed: int, streams: int) -> Generator:
        """Returns adds of new elements, and sometimes a read."""
        return each_stream(self._operations, seed=seed, streams=streams)

    def judge(self, history: Columns) -> Judgement:
        """Decides one set."""
        from workloads.set.judge import judge  # noqa: PLC0415 - `--help` needs no judge

        options = self.options
        return judge(history, linearizable=options.linearizable, rest_s=options.rest, exact=options.exact_reads)

    def _operations(self, stream: Stream) -> Source:
        options, added = self.options, [0] * self.options.keys

        def add_or_read(_: Asker) -> Invocation:
            kind, key_number = stream.random(), stream.below(options.keys)
            key = f"s{key_number}" if options.keys > 1 else None
            # All streams add to the same sets, so this is about the number of elements, and the size of a read's result.
            elements = added[key_number] * stream.streams
            gap = max(options.reads_every, elements / options.read_cost)
            if kind * (gap + 1) < 1:
                return Invocation("read", None, key)
            added[key_number] += 1
            return Invocation("add", stream.unique() + stream.streams, key)

        return add_or_read
