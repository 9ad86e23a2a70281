"""The client of logs in RocketMQ: sends to the one queue of a topic, and pulls from it by offset.

All keys share the queue, so the offsets of a key have gaps. An append is a send, and the offset that the broker answers is its
order. A client that follows goes to the master in its route. A pinned client stays at the broker of its node, so a deposed
master still gets messages, and slaves get reads. RocketMQ does not promise that a read is fresh: a broker reads its own log.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from clusters.kit.answers import PAUSE_S, NoAnswer, NotSent
from clusters.kit.contracts import Entries, Logs, Seen
from clusters.kit.stored import entry_body, values_in
from clusters.systems.rocketmq import broker_requests
from clusters.systems.rocketmq.bodies import entry_in

if TYPE_CHECKING:
    from clusters.systems.dledger.remoting import Connection
    from clusters.systems.rocketmq.producer import Producer
    from harness.node import Node
    from harness.op import Value

TOPIC: Final = "labrys"
QUEUE: Final = 0


class RocketMQLogs(Logs):
    """A `harness.client.RoutedClient` for logs.

    Attributes:
        node: The client's own node.
    """

    serves = "append is a send to one queue, whose offset is the offset; read is a pull by offset"
    read_timeout_s = 3.0

    def __init__(self, *, node: Node, producer: Producer, topic: str, whole: bool) -> None:
        """Connects with the first operation.

        Args:
            node: The client's own node.
            producer: Its producer, at whose broker it also reads.
            topic: The topic.
            whole: Whether it reads only if its broker gives consumers all that the master gives them.
        """
        self.node = node
        self._producer = producer
        self._topic = topic
        self._whole = whole

    @property
    def via(self) -> str | None:
        """Returns the master that received its last operation; None if the client is pinned, or knows no master."""
        return self._producer.via

    async def append(self, key: str, value: Value) -> Seen:
        """Sends a message."""
        offset = await self._producer.send(self._topic, QUEUE, entry_body(key, value))
        return Seen(offset, offset)

    async def read(self, key: str, first: int, last: int) -> Entries:
        """Pulls messages from the broker that the producer asks."""
        node = await self._producer.at()
        connection = await self._producer.connected(node)
        least = await self._end_of_master() if self._whole else 0
        return Entries(await self._records(connection, key, first, last, least))

    async def failed(self, error: Exception) -> None:  # noqa: ARG002 - after each of them
        """Pauses."""
        await asyncio.sleep(PAUSE_S)

    async def close(self) -> None:
        """Closes the connections."""
        await self._producer.close()

    async def _records(
        self, connection: Connection, key: str, first: int, last: int, least: int
    ) -> list[tuple[int, Value]]:
        """Returns the entries of a key from an offset to another one.

        Raises:
            NoAnswer: The broker gives consumers less than `least` messages, or its answer cannot be read.
        """
        entries: list[tuple[int, Value]] = []
        offset = max(0, first)
        if least:
            end = await broker_requests.max_offset(connection, self._topic, QUEUE)
            if end < least:
                raise NoAnswer(f"the replica has {end} of {least} messages")
        while offset <= last:
            most = min(last - offset + 1, broker_requests.MOST_MESSAGES)
            pulled = await broker_requests.pull(connection, self._topic, QUEUE, offset, most=most)
            if not pulled.records:
                break
            for record in pulled.records:
                entries += [(record.offset, value) for value in values_in(entry_in(record.body), key)]
            offset += len(pulled.records)
        return entries

    async def _end_of_master(self) -> int:
        """Returns the offset behind the last message that the master gives to consumers."""
        master = await self._producer.routes.master(fresh=True)
        if master is None:
            raise NotSent("the route has no master")
        return await broker_requests.max_offset(await self._producer.connected(master), self._topic, QUEUE)
