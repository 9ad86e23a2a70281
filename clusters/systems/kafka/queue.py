"""The client of queues in Kafka: a queue is a topic, and one group consumes all of them.

An enqueue is a record. A dequeue is the next record of the partitions that the group assigned to the member at the client's
node; its offset is committed after the dequeue has the value. So a value comes out at least once: if the commit fails, it comes
out again. A drain waits until the group has assigned all partitions of the queue to this member, and reads them to their ends.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from clusters.kit.answers import PAUSE_S, UNSUPPORTED, NotDone
from clusters.kit.contracts import Done, Queues, Seen
from clusters.kit.stored import entry_body, queued_value
from clusters.systems.kafka.library import Producer, records
from clusters.systems.kafka.outcomes import NEVER_APPENDED, NOT_ASSIGNED, NOTHING_CAME, name_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clusters.systems.kafka.members import Members
    from clusters.systems.kafka.options import KafkaOptions
    from harness.node import Node
    from harness.op import Value

DEQUEUE_S: Final = 0.5
DRAIN_S: Final = 2.5


class KafkaQueues(Queues):
    """A client of queues.

    Attributes:
        node: The client's own node, which names the brokers.
    """

    serves = "enqueue is a record; dequeue is a record of a group's consumer, which then commits the offset"
    never_happened = NEVER_APPENDED

    def __init__(
        self,
        *,
        node: Node,
        nodes: Sequence[Node],
        members: Members,
        options: KafkaOptions,
        topics: Mapping[str, str],
    ) -> None:
        """Connects with the first operation.

        Args:
            node: The client's own node.
            nodes: All nodes.
            members: The members of the group.
            options: How the producer is configured, and how many partitions a queue has.
            topics: The topic of each queue.
        """
        self.node = node
        self._topics = topics
        self._partitions = options.partitions
        self._library = members.library
        self._name = self._library.name("producer")
        self._members = members
        self._member, transactions = members.join(node)
        own = records(self._name, node=node, nodes=nodes, options=options)
        self._producer = Producer(self._library, self._name, transactions if options.transactional else own)

    def name_of(self, code: str) -> str:
        """Returns the name of an error of the library."""
        return name_of(code)

    async def enqueue(self, key: str, value: Value) -> Done:
        """Sends a record."""
        await self._producer.send(self._topic(key), entry_body(key, value))
        return Done()

    async def dequeue(self, key: str) -> Seen | None:
        """Takes the next record of the group's member at the node."""
        topic = self._topic(key)
        record = await self._ask("next", topic, DEQUEUE_S)
        if record is not None:
            return Seen(_value(record, key))
        if not await self._ask("assigned", topic):
            raise NotDone(NOT_ASSIGNED, f"the group assigned no partition of {topic} to this node")
        raise NotDone(NOTHING_CAME, f"no record came in {DEQUEUE_S:g} s")

    async def drain(self, key: str) -> Seen:
        """Takes the records of all partitions up to their ends."""
        topic = self._topic(key)
        rest = await self._ask("rest", topic, self._partitions, DRAIN_S)
        if rest is None:
            raise NotDone("not-drained", f"the node did not get all partitions of {topic} to the end in {DRAIN_S:g} s")
        return Seen([_value(record, key) for record in rest])

    async def failed(self, error: Exception) -> None:  # noqa: ARG002 - after each of them
        """Pauses."""
        await asyncio.sleep(PAUSE_S)

    async def close(self) -> None:
        """Closes the producer, in the background. The last client of a node ends the membership of the node."""
        self._library.end(self._name, self._name, *self._members.leave(self.node))

    async def _ask(self, method: str, *arguments: Any) -> Any:
        """Calls a method of the member."""
        return await self._library.call(self._name, self._member, method, *arguments)

    def _topic(self, key: str) -> str:
        """Returns the topic of a queue.

        Raises:
            NotDone: There is none.
        """
        if key not in self._topics:
            raise NotDone(UNSUPPORTED, f"there is no queue {key}")
        return self._topics[key]


def _value(body: str, key: str) -> Value:
    return queued_value(body.encode("latin-1"), key)
