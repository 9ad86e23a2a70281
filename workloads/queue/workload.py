"""The queue workload: its operations and its checks."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar

from checker.columns import of_operations
from checker.judging import part_of
from harness.op import Invocation
from workloads.finals import UntilRead, final_reads, keys_of
from workloads.queue.generators import QueueGenerator
from workloads.queue.judge import find
from workloads.queue.judgement import judgement
from workloads.queue.options import QueueOptions
from workloads.queue.streams import Stream

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from checker.columns import Columns
    from checker.judging import Judgement
    from harness.generator import Generator
    from harness.node import Node
    from harness.op import Op, Operation, Value
    from harness.verdict import Part
    from harness.workload import Observed


class QueueWorkload:
    """Enqueues and dequeues over independent queues; see `harness.workload.Workload` and `checker.judging.Judge`.

    Attributes:
        name: `queue`.
        summary: A description in one line.
        Options: Its options.
        functions: Enqueue, dequeue and drain.
        model: None; see `judge`.
    """

    name = "queue"
    summary = "Enqueues and dequeues on independent queues; the checker finds lost, duplicate, unexpected and reordered values."
    Options = QueueOptions
    functions: ClassVar[Mapping[str, str]] = MappingProxyType(
        {
            "enqueue": "a value that is not null -> the same",
            "dequeue": "null -> the value; fails if the queue is empty",
            "drain": "null -> the list of all values in the queue, in order; it dequeues until the queue is empty",
        }
    )
    model = None

    def __init__(self, options: QueueOptions | None = None) -> None:
        self._options = options or QueueOptions()

    def generator(self, *, seed: int, streams: int) -> Generator:
        """Returns the generator of the main phase, which never ends."""
        return QueueGenerator(self._options, seed=seed, streams=streams)

    def describe_streams(self, *, seed: int, streams: int, count: int) -> Value:
        """Returns the first operations of each stream as JSON-like data."""
        return [self._describe(seed, number, streams, count) for number in range(streams)]

    def _describe(self, seed: int, number: int, streams: int, count: int) -> Value:
        stream = Stream(self._options, seed=seed, number=number, streams=streams)
        drawn = [stream.next() for _ in range(count)]
        operations = [{"f": draw.f, "key": draw.key, "value": draw.value} for draw in drawn]
        return {"stream": number, "operations": operations}

    def final_generator(self, *, history: Sequence[Op], node: Node) -> Generator:  # noqa: ARG002 - the same for each node
        """Returns a drain of every queue in the history."""
        return UntilRead(Invocation("drain", None, key) for key in keys_of(history))

    def judge(self, history: Columns) -> Judgement:
        """Decides one queue; see `workloads.queue.judge`.

        Raises:
            InputError: A queue has no such operation.
        """
        return judgement(history, find(history, self._options.order), self._options.delivery)

    def check(self, operations: Sequence[Operation], observed: Observed) -> Sequence[Part]:
        """Returns the parts `queue` and, if the test has them, `final-reads`."""
        columns = of_operations(operations)
        parts = [part_of(self, columns, operation=operations.__getitem__, faults=observed.faults)]
        if observed.final_reads is not None:
            parts.append(final_reads(operations, observed.final_reads))
        return parts
