"""Messages of several clients in one request, as the accumulator of RocketMQ's own producers makes them.

All clients that follow the route share the batches. A batch has the messages of one message queue for one broker. It collects
them for a time, and is then sent once. Each message has its own outcome and offset: the answer has the offset of the first one,
and the others are behind it in their order.

Source: RocketMQ 5.3.3, `ProduceAccumulator`, `SendMessageProcessor.sendBatchMessage`.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from clusters.kit.remoting import NotSent, RemotingError
from clusters.systems.rocketmq import broker_requests
from clusters.systems.rocketmq.broker_outcomes import SUCCESS, refused
from clusters.systems.rocketmq.brokers import connect
from harness.op import Fail, Info, Ok

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clusters.kit.remoting import Connection
    from harness.node import Node
    from harness.op import Outcome

Place = tuple[str, str, int]  # the node, the topic and the message queue

CONNECT_S: Final = 1.0
ANSWER_S: Final = 5.0
MOST_MESSAGES: Final = 100
MOST_BYTES: Final = 2 * 1024 * 1024  # a broker takes 4 MiB, and one message of a test has at most 1 MB


@dataclass(slots=True)
class _Batch:
    bodies: list[bytes] = field(default_factory=list)
    outcomes: list[asyncio.Future[Outcome]] = field(default_factory=list)

    @property
    def is_full(self) -> bool:
        """Returns whether the next message begins another batch."""
        return len(self.bodies) >= MOST_MESSAGES or sum(map(len, self.bodies)) >= MOST_BYTES


class Batches:
    """Collects messages, and sends them in batches."""

    def __init__(self, *, hold_s: float, certain: Mapping[int, Sequence[str]]) -> None:
        """Connects with the first batch.

        Args:
            hold_s: The time for which a batch collects messages.
            certain: The refusals that are certain; see `broker_outcomes`.
        """
        self._hold_s = hold_s
        self._certain = certain
        self._open: dict[Place, _Batch] = {}
        self._idle: dict[str, list[Connection]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def send(self, node: Node, topic: str, queue: int, body: bytes) -> Outcome:
        """Sends a message with others, once. Returns its offset, or the outcome of the whole batch.

        Args:
            node: The node of the broker.
            topic: The topic.
            queue: The number of the message queue.
            body: The body of the message.
        """
        place = (node.name, topic, queue)
        batch = self._open.get(place)
        if batch is None or batch.is_full:
            batch = self._open[place] = _Batch()
            task = asyncio.create_task(self._send_later(node, place, batch))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        outcome: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        batch.bodies.append(body)
        batch.outcomes.append(outcome)
        return await outcome

    async def _send_later(self, node: Node, place: Place, batch: _Batch) -> None:
        try:
            await asyncio.sleep(self._hold_s)
            if self._open.get(place) is batch:
                del self._open[place]
            _, topic, queue = place
            found = await self._sent(node, topic, queue, batch.bodies)
            for waits, outcome in zip(batch.outcomes, found, strict=True):
                if not waits.done():  # the run may have given it up
                    waits.set_result(outcome)
        finally:
            for waits in batch.outcomes:
                waits.cancel()  # has no effect on one that is done

    async def _sent(self, node: Node, topic: str, queue: int, bodies: Sequence[bytes]) -> Sequence[Outcome]:
        """Sends a batch, and returns the outcome of each message."""
        idle = self._idle.setdefault(node.name, [])
        outcome: Fail | Info
        try:
            async with asyncio.timeout(ANSWER_S):
                connection = await self._connected(node, idle)
                answer = await broker_requests.send_batch(connection, topic, queue, bodies, broker_requests.now_ms())
            idle.append(connection)
            if answer.status == SUCCESS:
                first = broker_requests.offset_of(answer, queue)
                return [Ok(first + more, order=first + more) for more in range(len(bodies))]
            outcome = refused(answer.status, answer.remark, self._certain)
        except NotSent as error:
            outcome = Fail(f"not-connected: {error}")
        except TimeoutError:
            outcome = Info(f"no-answer: no answer in {ANSWER_S:g} s")
        except RemotingError as error:
            outcome = Info(f"no-answer: {error}")
        return [outcome] * len(bodies)

    async def _connected(self, node: Node, idle: list[Connection]) -> Connection:
        """Returns a connection that no other batch uses.

        Raises:
            NotSent: The broker cannot be reached.
        """
        while idle:
            found = idle.pop()
            if not found.closed:
                return found
        return await connect(node, CONNECT_S)
