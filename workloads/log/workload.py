"""The log workload: its operations and its checks."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar

from checker.columns import of_operations
from checker.judging import part_of
from workloads.finals import keys_of
from workloads.log.generators import LogGenerator, WholeLogs
from workloads.log.judge import judge_log
from workloads.log.options import LogOptions
from workloads.log.parts import final_ranges
from workloads.log.streams import Stream

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from checker.columns import Columns
    from checker.judging import Judgement
    from harness.generator import Generator
    from harness.node import Node
    from harness.op import Op, Operation, Value
    from harness.verdict import Part
    from harness.workload import Observed
    from workloads.log.streams import Draw


class LogWorkload:
    """Appends and reads by offset, one log for each key; see `harness.workload.Workload` and `checker.judging.Judge`.

    Attributes:
        name: `log`; also the name of the judge's part of a verdict.
        summary: A description in one line.
        Options: Its options.
        functions: Append and read.
        model: None, as the workload judges histories itself.
    """

    name = "log"
    summary = (
        "Appends that return an offset, and reads by offset and by range, checked against the guarantees of a log."
    )
    Options = LogOptions
    functions: ClassVar[Mapping[str, str]] = MappingProxyType(
        {
            "append": "a value -> its offset, or null if the system has no offsets",
            "read": (
                "an offset -> the value there, or null; [first, last] -> [[offset, value], ...] from the first to the last "
                "offset"
            ),
        }
    )
    model = None

    def __init__(self, options: LogOptions | None = None) -> None:
        self._options = options or LogOptions()

    def generator(self, *, seed: int, streams: int) -> Generator:
        """Returns the generator of the main phase, which never ends."""
        return LogGenerator(self._options, seed=seed, streams=streams)

    def describe_streams(self, *, seed: int, streams: int, count: int) -> Value:
        """Returns the first operations of each stream as JSON-like data.

        The offset of a read is `highest` or e.g. `highest-7`, counted back from the highest offset that the run knows then.
        """
        described = []
        for number in range(streams):
            stream = Stream(self._options, seed=seed, number=number, streams=streams)
            described.append({"stream": number, "operations": [_describe(stream.next()) for _ in range(count)]})
        return described

    def final_generator(self, *, history: Sequence[Op], node: Node) -> Generator:  # noqa: ARG002 - the same for each node
        """Returns reads that cover every log in the history."""
        return WholeLogs(history, keys_of(history))

    def judge(self, history: Columns) -> Judgement:
        """Decides one log; see `workloads.log.judge`.

        Raises:
            InputError: The workload has no such operation.
        """
        return judge_log(history, linearizable=self._options.linearizable)

    def check(self, operations: Sequence[Operation], observed: Observed) -> Sequence[Part]:
        """Returns the part `log` and, if the test has them, `final-reads`."""
        parts = [part_of(self, of_operations(operations), operation=operations.__getitem__, faults=observed.faults)]
        if observed.final_reads is not None:
            parts.append(final_ranges(operations, observed.final_reads))
        return parts


def _describe(draw: Draw) -> Value:
    key, value, back, length = draw
    if value is not None:
        return {"f": "append", "key": key, "value": value}
    last = "" if length is None else _from_highest(back - length + 1)
    return {"f": "read", "key": key, "value": _from_highest(back) if length is None else [_from_highest(back), last]}


def _from_highest(back: int) -> str:
    return f"highest{-back:+d}" if back else "highest"
