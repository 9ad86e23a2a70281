"""The client of logs in Kafka: one producer of one process, and reads of the replica of one broker.

All keys share one partition, so the offsets of a key have gaps. An append is a record, and its offset is the order of the
operation. The library librdkafka chooses the broker that it sends a record to, so the history names the leader that the client
knows as the one that got it.

A read asks the broker that leads, and returns records below its high watermark. A pinned client asks its own broker, and reads
only once this replica knows all records to be committed that the leader does. Kafka does not promise that a read is fresh: a
leader that was replaced and does not know it yet answers too.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from clusters.kit.answers import PAUSE_S, NoAnswer, NotDone, NotSent, RefusedByCode
from clusters.kit.contracts import REFUSED, Entries, Logs, Seen
from clusters.kit.stored import entry_body, values_in
from clusters.systems.kafka.library import Producer, records
from clusters.systems.kafka.outcomes import NEVER_APPENDED, NO_LEADER, NOT_LEADER, name_of
from clusters.systems.kafka.wire import NOT_LEADER_OR_FOLLOWER, OFFSET_OUT_OF_RANGE, Broker

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clusters.systems.kafka.library import Library
    from clusters.systems.kafka.options import KafkaOptions
    from harness.node import Node
    from harness.op import Value

TOPIC: Final = "labrys"


class KafkaLogs(Logs):
    """A `harness.client.RoutedClient` for logs.

    Attributes:
        node: The client's own node.
        via: The leader that received its last operation; None if the client is pinned, or knows no leader.
    """

    serves = "append is a record in one partition, whose offset is the offset; read is a fetch from the leader"
    never_happened = NEVER_APPENDED
    read_timeout_s = 3.0

    def __init__(
        self, *, node: Node, nodes: Sequence[Node], library: Library, options: KafkaOptions, topic: str, pinned: bool
    ) -> None:
        """Connects with the first operation.

        Args:
            node: The client's own node.
            nodes: All nodes; the id of a broker is its place, from 1.
            library: The clients of librdkafka.
            options: How the producer is configured.
            topic: The topic.
            pinned: Whether it reads only from its own node.
        """
        self.node = node
        self.via: str | None = None
        self._nodes = nodes
        self._topic = topic
        self._pinned = pinned
        self._leader: Node | None = None
        self._brokers = {asked.name: Broker(asked.address) for asked in nodes}
        self._library = library
        self._name = library.name("producer")
        own = records(self._name, node=node, nodes=nodes, options=options)
        self._producer = Producer(library, self._name, own)
        self._closed = False

    def name_of(self, code: str | int) -> str:
        """Returns the name of an error of the library, or of a broker that does not lead."""
        if isinstance(code, str):
            return name_of(code)
        return NOT_LEADER if code == NOT_LEADER_OR_FOLLOWER else REFUSED

    async def append(self, key: str, value: Value) -> Seen:
        """Sends a record to the leader, as far as the library knows it."""
        body = entry_body(key, value)
        await self._know_leader()
        offset = await self._producer.send(self._topic, body, 0)
        return Seen(offset, offset)

    async def read(self, key: str, first: int, last: int) -> Entries:
        """Fetches records from the leader, or from the client's own node if it is pinned."""
        await self._know_leader()
        if self._leader is None:
            raise NotDone(NO_LEADER, "no node names the leader")
        least = await self._brokers[self._leader.name].end(self._topic) if self._pinned else 0
        asked = self.node if self._pinned else self._leader
        return Entries(await self._records(self._brokers[asked.name], key, first, last, least))

    async def failed(self, error: Exception) -> None:  # noqa: ARG002 - it may be an old leader's after each of them
        """Forgets the leader, and pauses."""
        self._leader = None
        await asyncio.sleep(PAUSE_S)

    async def close(self) -> None:
        """Closes the connections. The library ends its threads in the background."""
        for broker in self._brokers.values():
            await broker.close()
        if not self._closed:
            self._library.end(self._name, self._name)
        self._closed = True

    async def _records(self, broker: Broker, key: str, first: int, last: int, least: int) -> list[tuple[int, Value]]:
        entries: list[tuple[int, Value]] = []
        offset = first
        if least:
            known = await broker.high_watermark(self._topic)
            if known < least:
                raise NoAnswer(f"the replica knows {known} of {least} records to be committed")
        while offset <= last:
            try:
                fetched = await broker.fetch(self._topic, offset)
            except RefusedByCode as error:
                if error.code != OFFSET_OUT_OF_RANGE:
                    raise
                break
            entries += [
                (offset, value)
                for offset, body in fetched.records
                if offset <= last
                for value in values_in(body, key)
            ]  # fmt: skip
            if fetched.end <= offset:
                break
            offset = fetched.end
        return entries

    async def _know_leader(self) -> None:
        """Asks the own node for the leader, and the others if it names none."""
        for node in sorted(self._nodes, key=lambda node: node != self.node):
            if self._leader is not None:
                break
            try:
                async with asyncio.timeout(1.0):
                    partition = await self._brokers[node.name].partition(self._topic)
            except (NotSent, NoAnswer, TimeoutError):
                continue
            if partition is not None and 1 <= partition.leader <= len(self._nodes):
                self._leader = self._nodes[partition.leader - 1]
        self.via = None if self._pinned or self._leader is None else self._leader.name
