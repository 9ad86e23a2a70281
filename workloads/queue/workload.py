"""The queue workload: enqueues of unique values, dequeues, and drains after healing."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from harness.combinators import each_stream, independent, mix
from harness.op import Invocation
from workloads.base import JudgedWorkload
from workloads.queue.options import QueueOptions

if TYPE_CHECKING:
    from checker.formats.columns import Columns
    from checker.judging import Judgement
    from harness.combinators import Stream
    from harness.generator import Asker, Generator


class QueueWorkload(JudgedWorkload[QueueOptions]):
    """Enqueues and dequeues over independent queues; see `harness.workload.Workload` and `checker.judging.Judge`."""

    name = "queue"
    summary = "Enqueues and dequeues on independent queues; the checker finds lost, duplicate, unexpected and reordered values."
    Options = QueueOptions
    functions = MappingProxyType(
        {
            "enqueue": "a value that is not null -> the same",
            "dequeue": "null -> the value; fails if the queue is empty",
            "drain": "null -> the list of all values in the queue, in order; it dequeues until the queue is empty",
        }
    )
    final = ("drain",)

    def generator(self, *, seed: int, streams: int) -> Generator:
        """Returns enqueues and dequeues. All enqueued values are distinct."""
        return each_stream(self._operations, seed=seed, streams=streams)

    def judge(self, history: Columns) -> Judgement:
        """Decides one queue; see `workloads.queue.judge`.

        Raises:
            InputError: A queue has no such operation.
        """
        from workloads.queue.judge import find  # noqa: PLC0415 - `--help` needs no judge
        from workloads.queue.judgement import judgement  # noqa: PLC0415

        return judgement(history, find(history, self.options.order), self.options.delivery)

    def _operations(self, stream: Stream) -> Generator:
        def enqueue(_: Asker) -> Invocation:
            return Invocation("enqueue", stream.unique(), stream.key)

        either = mix(stream, (self.options.enqueue_share, enqueue), rest=Invocation("dequeue"))
        return independent(stream, lambda: f"q{stream.below(self.options.queues)}", either)
