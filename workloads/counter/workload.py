"""The counter workload: its operations and its checks."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar

from checker.columns import of_operations
from checker.judging import part_of
from harness.op import Invocation
from workloads.counter.generators import CounterGenerator, Stream
from workloads.counter.judge import judge
from workloads.counter.options import CounterOptions
from workloads.finals import UntilRead, final_reads, keys_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from checker.columns import Columns
    from checker.judging import Judgement
    from harness.generator import Generator
    from harness.node import Node
    from harness.op import Op, Operation, Value
    from harness.verdict import Part
    from harness.workload import Observed


class CounterWorkload:
    """Adds and reads with bounds; see `harness.workload.Workload` and `checker.judging.Judge`.

    Attributes:
        name: `counter`.
        summary: A description in one line.
        Options: Its options.
        functions: Add and read.
        model: None: the workload judges each counter itself.
    """

    name = "counter"
    summary = (
        "Adds of positive and negative amounts; each read must lie between the lowest and the highest possible count."
    )
    Options = CounterOptions
    functions: ClassVar[Mapping[str, str]] = MappingProxyType(
        {
            "add": "an integer, which may be negative -> the same",
            "read": "null -> the count, an integer; 0 at first",
        }
    )
    model = None

    def __init__(self, options: CounterOptions | None = None) -> None:
        self._options = options or CounterOptions()

    def generator(self, *, seed: int, streams: int) -> Generator:
        """Returns adds and reads."""
        return CounterGenerator(self._options, seed=seed, streams=streams)

    def describe_streams(self, *, seed: int, streams: int, count: int) -> Value:
        """Returns the first operations of each stream as JSON-like data."""
        described = []
        for number in range(streams):
            stream = Stream(self._options, seed=seed, number=number)
            drawn = [stream.next() for _ in range(count)]
            operations = [{"f": each.f, "key": each.key, "value": each.value} for each in drawn]
            described.append({"stream": number, "operations": operations})
        return described

    def final_generator(self, *, history: Sequence[Op], node: Node) -> Generator:  # noqa: ARG002 - the same for each node
        """Returns a read of every counter in the history."""
        return UntilRead(Invocation("read", None, key) for key in keys_of(history))

    def judge(self, history: Columns) -> Judgement:
        """Decides one counter."""
        return judge(history)

    def check(self, operations: Sequence[Operation], observed: Observed) -> Sequence[Part]:
        """Returns the parts `counter` and, if the test has them, `final-reads`."""
        part = part_of(self, of_operations(operations), operation=operations.__getitem__, faults=observed.faults)
        reads = observed.final_reads
        return [part] if reads is None else [part, final_reads(operations, reads)]
