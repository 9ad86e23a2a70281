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

from clusters.kit.answers import NoAnswer, NotDone, NotSent
from clusters.systems.rocketmq import broker_requests
from clusters.systems.rocketmq.broker_outcomes import SUCCESS, refusal
from clusters.systems.rocketmq.brokers import connect

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clusters.systems.dledger.remoting import Connection
    from harness.node import Node

Place = tuple[str, str, int]  # the node, the topic and the message queue
Result = int | NotDone | NotSent | NoAnswer  # the offset of a message, or the error of its batch

CONNECT_S: Final = 1.0
ANSWER_S: Final = 5.0
MOST_MESSAGES: Final = 100
MOST_BYTES: Final = 2 * 1024 * 1024  # a broker takes 4 MiB, and one message of a test has at most 1 MB


@dataclass(slots=True)
class _Batch:
    bodies: list[bytes] = field(default_factory=list)
    results: list[asyncio.Future[Result]] = field(default_factory=list)

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

    async def send(self, node: Node, topic: str, queue: int, body: bytes) -> int:
        """Sends a message with others, once, and returns its offset.

        Args:
            node: The node of the broker.
            topic: The topic.
            queue: The number of the message queue.
            body: The body of the message.

        Raises:
            NotDone: The broker certainly refused the whole batch; `InDoubt`: it refused it otherwise.
            NotSent: The broker cannot be reached.
            NoAnswer: It gives no usable answer.
        """
        batch_key = (node.name, topic, queue)
        batch = self._open.get(batch_key)
        if batch is None or batch.is_full:
            batch = self._open[batch_key] = _Batch()
            task = asyncio.create_task(self._send_later(node, batch_key, batch))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        waits: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        batch.bodies.append(body)
        batch.results.append(waits)
        result = await waits
        if isinstance(result, int):
            return result
        raise result

    async def _send_later(self, node: Node, batch_key: Place, batch: _Batch) -> None:
        try:
            await asyncio.sleep(self._hold_s)
            if self._open.get(batch_key) is batch:
                del self._open[batch_key]
            _, topic, queue = batch_key
            results = await self._sent(node, topic, queue, batch.bodies)
            for waits, result in zip(batch.results, results, strict=True):
                if not waits.done():  # the run may have given it up
                    waits.set_result(result)
        finally:
            for waits in batch.results:
                waits.cancel()  # has no effect on one that is done

    async def _sent(self, node: Node, topic: str, queue: int, bodies: Sequence[bytes]) -> Sequence[Result]:
        """Sends a batch, and returns the result of each message."""
        idle = self._idle.setdefault(node.name, [])
        try:
            async with asyncio.timeout(ANSWER_S):
                connection = await self._connected(node, idle)
                answer = await broker_requests.send_batch(connection, topic, queue, bodies, broker_requests.now_ms())
            idle.append(connection)
            if answer.status != SUCCESS:
                return [refusal(answer.status, answer.remark, self._certain)] * len(bodies)
            first = broker_requests.offset_of(answer, queue)
            return range(first, first + len(bodies))
        except TimeoutError:
            return [NoAnswer(f"no answer in {ANSWER_S:g} s")] * len(bodies)
        except (NotSent, NoAnswer) as error:
            return [error] * len(bodies)

    async def _connected(self, node: Node, idle: list[Connection]) -> Connection:
        """Returns a connection that no other batch uses.

        Raises:
            NotSent: The broker cannot be reached.
        """
        while idle:
            connection = idle.pop()
            if not connection.closed:
                return connection
        return await connect(node, CONNECT_S)
