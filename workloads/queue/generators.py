"""The generator of the queue workload's main phase."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workloads.queue.streams import Stream

if TYPE_CHECKING:
    from harness.generator import Answer, Asker
    from harness.op import Op
    from workloads.queue.options import QueueOptions


class QueueGenerator:
    """Gives each worker the operations of its stream, without end."""

    def __init__(self, options: QueueOptions, *, seed: int, streams: int) -> None:
        self._streams = [Stream(options, seed=seed, number=number, streams=streams) for number in range(streams)]

    def ask(self, asker: Asker) -> Answer:
        """Returns the next operation of the asker's stream."""
        return self._streams[asker.worker].next()

    def update(self, event: Op) -> None:
        """Does nothing: the operations do not depend on answers."""
