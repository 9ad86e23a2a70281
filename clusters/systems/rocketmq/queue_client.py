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

from clusters.kit.answers import PAUSE_S, unsupported
from clusters.kit.remoting import NotSent, RemotingError
from clusters.kit.stored import entry_or_fail, queued_value
from clusters.systems.rocketmq import broker_requests
from clusters.systems.rocketmq.bodies import entry_in
from clusters.systems.rocketmq.broker_outcomes import NO_MASTER, NOTHING_CAME
from harness.op import Fail, Ok

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from clusters.kit.remoting import Connection
    from clusters.systems.rocketmq.broker_requests import Pulled
    from clusters.systems.rocketmq.producer import Producer
    from harness.node import Node
    from harness.op import Invocation, Outcome, Value

ONLY: Final = "only"  # for a workload without keys
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


class QueueClient:
    """A `harness.client.RoutedClient` for queues.

    Attributes:
        node: The client's own node.
    """

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

    @property
    def via(self) -> str | None:
        """Returns the master that received its last enqueue; None if the client is pinned, or knows no master."""
        return self._producer.via

    async def invoke(self, invocation: Invocation) -> Outcome:
        """Carries out an enqueue, a dequeue or a drain."""
        key = invocation.key or ONLY
        topic = self._topics.get(key)
        match invocation.f, topic:
            case "enqueue", Topic():
                outcome = await self._enqueue(topic, key, invocation.value)
            case "dequeue", Topic():
                outcome = await _limited(lambda limit: _dequeue(topic, key, self._process, limit), DEQUEUE_S)
            case "drain", Topic():
                outcome = await _limited(lambda limit: _drain(topic, key, limit), DRAIN_S)
            case _:
                return unsupported(invocation.f, invocation.value)
        if not isinstance(outcome, Ok):
            await asyncio.sleep(PAUSE_S)
        return outcome

    async def close(self) -> None:
        """Closes the connections of the producer. The consumers belong to all clients."""
        self._producer.close()

    async def _enqueue(self, topic: Topic, key: str, value: Value) -> Outcome:
        body = entry_or_fail(key, value)
        if isinstance(body, Fail):
            return body
        outcome = await self._producer.send(topic.name, self._process % len(topic.consumers), body)
        return Ok(value) if isinstance(outcome, Ok) else outcome


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
            RemotingError: It gives no usable answer.
        """
        whole = False
        try:
            connection = await self._connected()
            place = self._place
            if place is None:
                place = await broker_requests.committed(connection, self._topic, self._queue)
            pulled = await broker_requests.pull(connection, self._topic, self._queue, place, most=most)
            whole = True
        finally:
            if not whole:  # also if the call is cancelled
                self._place = None
        self._place = min(place, pulled.end)  # a log that became shorter
        return self._place, pulled

    async def rest(self) -> tuple[int, Sequence[bytes]]:
        """Pulls all messages up to the end of the queue, and does not take them. It asks for the route first.

        Returns:
            The place behind the last one, and the bodies.

        Raises:
            NotSent: There is no master, or it cannot be reached.
            RemotingError: It gives no usable answer.
        """
        bodies: list[bytes] = []
        await self._producer.routes.master(fresh=True)
        place, pulled = await self.pull(broker_requests.MOST_MESSAGES)
        while pulled.records:
            bodies += [record.body for record in pulled.records]
            place += len(pulled.records)
            connection = await self._connected()
            pulled = await broker_requests.pull(connection, self._topic, self._queue, place)
        return place, bodies

    async def take(self, place: int) -> None:
        """Takes the messages before a place, and tries to commit it. If that fails, they may come out again."""
        self._place = place
        try:
            async with asyncio.timeout(COMMIT_S):
                await broker_requests.commit(await self._connected(), self._topic, self._queue, place)
        except (RemotingError, TimeoutError):
            self._place = None

    async def _connected(self) -> Connection:
        node = await self._producer.at()
        if node is None:
            raise NotSent(f"{NO_MASTER}: the route has no master")
        return await self._producer.connected(node)


async def _dequeue(topic: Topic, key: str, turn: int, limit: asyncio.Timeout) -> Outcome:
    """Takes the next message of one of the message queues, of those that are free first."""
    count = len(topic.consumers)
    turns = [topic.consumers[(turn + more) % count] for more in range(count)]
    for consumer in sorted(turns, key=lambda each: each.busy.locked()):
        async with consumer.busy:
            place, pulled = await consumer.pull(1)
            if pulled.records:
                limit.reschedule(None)
                await consumer.take(place + 1)
                return Ok(queued_value(entry_in(pulled.records[0].body), key))
    return Fail(f"{NOTHING_CAME}: no message is in {topic.name}")


async def _drain(topic: Topic, key: str, limit: asyncio.Timeout) -> Outcome:
    """Takes all messages of all message queues. If one of them cannot be read to its end, it takes none."""
    async with contextlib.AsyncExitStack() as held:
        for consumer in topic.consumers:
            await held.enter_async_context(consumer.busy)
        found = [await consumer.rest() for consumer in topic.consumers]
        limit.reschedule(None)
        for consumer, (place, _) in zip(topic.consumers, found, strict=True):
            await consumer.take(place)
    return Ok([queued_value(entry_in(body), key) for _, bodies in found for body in bodies])


async def _limited(operation: Callable[[asyncio.Timeout], Awaitable[Outcome]], limit_s: float) -> Outcome:
    """Carries out a dequeue or a drain with a time limit, which it lifts before it takes something. So `fail` takes nothing."""
    try:
        async with asyncio.timeout(limit_s) as limit:
            return await operation(limit)
    except TimeoutError:
        return Fail(f"no-answer: no answer in {limit_s:g} s")
    except NotSent as error:
        return Fail(f"not-connected: {error}")
    except RemotingError as error:
        return Fail(f"no-answer: {error}")
