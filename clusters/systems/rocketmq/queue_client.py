"""The client of queues in RocketMQ: a queue is a topic, whose messages are in several message queues.

An enqueue is a send. A producer always sends to the same message queue, so its values stay in their order. All clients share
one consumer for each message queue. A consumer keeps its place in memory, as RocketMQ's own do, and commits it at the master
(15) after a client has the value. After an error it asks the master for the committed place (14). So values come out at least
once: the broker writes committed places to its disk and to its slaves in the background.

Labrys assigns the message queues itself: there is no group that divides them among its members.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from clusters.kit.answers import PAUSE_S, UNSUPPORTED, NoAnswer, NotDone, NotSent, Refused, worded
from clusters.kit.contracts import Done, Queues, Seen
from clusters.kit.stored import entry_body, queued_value
from clusters.systems.rocketmq import broker_requests
from clusters.systems.rocketmq.bodies import entry_in
from clusters.systems.rocketmq.broker_outcomes import NOTHING_CAME

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clusters.systems.dledger.remoting import Connection
    from clusters.systems.rocketmq.broker_requests import Pulled
    from clusters.systems.rocketmq.producer import Producer
    from harness.node import Node
    from harness.op import Value

DEQUEUE_S: Final = 2.0
DRAIN_S: Final = 4.0
COMMIT_S: Final = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """The topic of a queue, with the consumers of its message queues.

    Attributes:
        name: Its name.
        consumers: The consumer of each message queue.
    """

    name: str
    consumers: Sequence[Consumer]


class RocketMQQueues(Queues):
    """A `harness.client.RoutedClient` for queues.

    Attributes:
        node: The client's own node.
    """

    serves = "enqueue is a send; dequeue is a pull of one message, whose offset is committed afterwards"

    def __init__(self, *, process: int, node: Node, producer: Producer, topics: Mapping[str, Topic]) -> None:
        """Connects with the first operation.

        Args:
            process: The process, which decides to which message queue it sends.
            node: The client's own node.
            producer: Its producer.
            topics: The topic of each queue.
        """
        self.node = node
        self._process = process
        self._producer = producer
        self._topics = topics
        self._sends = False

    @property
    def via(self) -> str | None:
        """Returns the master that received its last enqueue; None if the client is pinned, or knows no master."""
        return self._producer.via

    def was_sent(self) -> bool:
        """Returns whether the operation is an enqueue. A dequeue or a drain that fails has taken nothing."""
        return self._sends

    async def enqueue(self, key: str, value: Value) -> Done:
        """Sends a message to the message queue of the process."""
        self._sends = True
        topic = self._topic(key)
        await self._producer.send(topic.name, self._process % len(topic.consumers), entry_body(key, value))
        return Done()

    async def dequeue(self, key: str) -> Seen | None:
        """Takes the next message of one of the message queues, of those that are free first."""
        self._sends = False
        topic = self._topic(key)
        count = len(topic.consumers)
        turns = [topic.consumers[(self._process + more) % count] for more in range(count)]
        async with asyncio.timeout(DEQUEUE_S) as limit:
            for consumer in sorted(turns, key=lambda turn: turn.busy.locked()):
                async with consumer.busy:
                    offset, pulled = await consumer.pull(1)
                    if pulled.records:
                        limit.reschedule(None)
                        await consumer.take(offset + 1)
                        return Seen(queued_value(entry_in(pulled.records[0].body), key))
        raise NotDone(NOTHING_CAME, f"no message is in {topic.name}")

    async def drain(self, key: str) -> Seen:
        """Takes all messages of all message queues. If one of them cannot be read to its end, it takes none."""
        self._sends = False
        topic = self._topic(key)
        async with asyncio.timeout(DRAIN_S) as limit, contextlib.AsyncExitStack() as stack:
            for consumer in topic.consumers:
                await stack.enter_async_context(consumer.busy)
            rests = [await consumer.rest() for consumer in topic.consumers]
            limit.reschedule(None)
            for consumer, (offset, _) in zip(topic.consumers, rests, strict=True):
                await consumer.take(offset)
        return Seen([queued_value(entry_in(body), key) for _, bodies in rests for body in bodies])

    async def failed(self, error: Exception) -> None:  # noqa: ARG002 - after each of them
        """Pauses."""
        await asyncio.sleep(PAUSE_S)

    async def close(self) -> None:
        """Closes the connections of the producer. The consumers belong to all clients."""
        await self._producer.close()

    def _topic(self, key: str) -> Topic:
        """Returns the topic of a queue.

        Raises:
            NotDone: There is none.
        """
        if key not in self._topics:
            raise NotDone(UNSUPPORTED, f"there is no queue {key}")
        return self._topics[key]


class Consumer:
    """The consumer of one message queue. The caller holds `busy` while it uses it.

    Attributes:
        busy: Held by the operation that uses the consumer.
    """

    def __init__(self, *, topic: str, queue: int, producer: Producer) -> None:
        """Connects with the first request.

        Args:
            topic: The topic.
            queue: The number of the message queue.
            producer: A producer that follows, for its route and its connections.
        """
        self.busy = asyncio.Lock()
        self._topic = topic
        self._queue = queue
        self._producer = producer
        self._place: int | None = None  # the offset of the next message; None: the committed one

    async def pull(self, most: int) -> tuple[int, Pulled]:
        """Pulls the next messages, and does not take them. Returns the place of the first one too.

        Raises:
            NotSent: There is no master, or it cannot be reached.
            NoAnswer: It gives no usable answer.
            Refused: It answers with an error.
        """
        whole = False
        try:
            connection = await self._connected()
            offset = self._place
            if offset is None:
                offset = await broker_requests.committed(connection, self._topic, self._queue)
            pulled = await broker_requests.pull(connection, self._topic, self._queue, offset, most=most)
            whole = True
        finally:
            if not whole:  # also if the call is cancelled
                self._place = None
        self._place = min(offset, pulled.end)  # a log that became shorter
        return self._place, pulled

    async def rest(self) -> tuple[int, Sequence[bytes]]:
        """Pulls all messages up to the end of the queue, and does not take them. It asks for the route first.

        Returns:
            The place behind the last one, and the bodies.

        Raises:
            NotSent: There is no master, or it cannot be reached.
            NoAnswer: It gives no usable answer.
            Refused: It answers with an error.
        """
        bodies: list[bytes] = []
        await self._producer.routes.master(fresh=True)
        offset, pulled = await self.pull(broker_requests.MOST_MESSAGES)
        while pulled.records:
            bodies += [record.body for record in pulled.records]
            offset += len(pulled.records)
            connection = await self._connected()
            pulled = await broker_requests.pull(connection, self._topic, self._queue, offset)
        return offset, bodies

    async def take(self, offset: int) -> None:
        """Takes the messages before a place, and tries to commit it. If that fails, they may come out again."""
        self._place = offset
        try:
            async with asyncio.timeout(COMMIT_S):
                await broker_requests.commit(await self._connected(), self._topic, self._queue, offset)
        except (NotSent, NoAnswer, Refused, TimeoutError):
            self._place = None

    async def _connected(self) -> Connection:
        try:
            node = await self._producer.at()
        except NotDone as error:
            raise NotSent(worded(error.code, str(error))) from error
        return await self._producer.connected(node)
