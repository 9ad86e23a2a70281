"""The counter workload: adds, and reads whose results must lie between bounds."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from harness.combinators import each_stream, mix
from harness.declare import hold_bounds, option
from harness.errors import InputError
from harness.op import Invocation
from workloads.base import JudgedWorkload

if TYPE_CHECKING:
    from checker.formats.columns import Columns
    from checker.judging import Judgement
    from harness.combinators import Stream
    from harness.generator import Asker, Generator


@dataclass(frozen=True, slots=True, kw_only=True)
class CounterOptions:
    """The options of the counter workload."""

    keys: int = option(
        1, "The number of independent counters; with 1, operations have no key.", low=1, high=10_000, shrinks_to=1
    )
    read_share: float = option(0.5, "The share of operations that are reads.", low=0, high=1)
    negative_share: float = option(0.25, "The share of adds that have a negative amount.", low=0, high=1)
    largest: int = option(5, "The largest amount of an add; the smallest is 1.", low=1, high=1_000_000_000)
    rest: float = option(
        0.0,
        "Only reads that begin this many seconds after the last add has ended must lie within the bounds; 0: all reads.",
        low=0,
        high=3600,
        judges=True,
    )

    def __post_init__(self) -> None:
        hold_bounds(self)
        if not 0 < self.read_share < 1:
            raise InputError(
                f"expected a share of reads between 0 and 1, not {self.read_share}; without reads, or without adds, nothing is"
                " tested"
            )


class CounterWorkload(JudgedWorkload[CounterOptions]):
    """Adds and reads with bounds; see `harness.workload.Workload` and `checker.judging.Judge`."""

    name = "counter"
    summary = (
        "Adds of positive and negative amounts; each read must lie between the lowest and the highest possible count."
    )
    Options = CounterOptions
    functions = MappingProxyType(
        {
            "add": "an integer, which may be negative -> the same",
            "read": "null -> the count, an integer; 0 at first",
        }
    )

    def generator(self, *, seed: int, streams: int) -> Generator:
        """Returns adds and reads."""
        return each_stream(self._operations, seed=seed, streams=streams)

    def judge(self, history: Columns) -> Judgement:
        """Decides one counter."""
        from workloads.counter.judge import judge  # noqa: PLC0415 - `--help` needs no judge

        return judge(history, rest_s=self.options.rest)

    def _operations(self, stream: Stream) -> Generator:
        options = self.options

        def read(_: Asker) -> Invocation:
            key = stream.any_key("c", options.keys)
            stream.skip(2)
            return Invocation("read", None, key)

        def add(_: Asker) -> Invocation:
            key, amount = stream.any_key("c", options.keys), 1 + stream.below(options.largest)
            return Invocation("add", -amount if stream.random() < options.negative_share else amount, key)

        return mix(stream, (options.read_share, read), rest=add)
