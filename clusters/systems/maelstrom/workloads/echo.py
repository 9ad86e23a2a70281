"""The workload echo: each answer must be the value that was sent."""

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
class EchoOptions:
    """The options of the workload echo."""

    largest: int = option(128, "The number of different values that clients send.", low=1, high=1_000_000_000)

    def __post_init__(self) -> None:
        hold_bounds(self)


class EchoWorkload(JudgedWorkload[EchoOptions]):
    """Values that come back; see `harness.workload.Workload`, and `checker.judging.Judge` for the judge."""

    name = "echo"
    summary = "Clients send values, and each answer must be the value that was sent."
    Options = EchoOptions
    functions = MappingProxyType({"echo": "any value -> the same"})
    final = ()

    def generator(self, *, seed: int, streams: int) -> Generator:
        """Returns values to send."""

        def operations(stream: Stream) -> Source:
            def echo(_: Asker) -> Invocation:
                return Invocation("echo", f"Please echo {stream.below(self.options.largest)}")

            return echo

        return each_stream(operations, seed=seed, streams=streams)

    def judge(self, history: Columns) -> Judgement:
        """Compares each answer with what was sent."""
        from clusters.systems.maelstrom.workloads.echo_judge import judge  # noqa: PLC0415 - `--help` needs no judge

        return judge(history)
