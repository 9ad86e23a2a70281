"""The client of queues in Kafka: a queue is a topic, and one group consumes all of them.

An enqueue is a record. A dequeue is the next record of the partitions that the group assigned to the member at the client's
node; its offset is committed after the dequeue has the value. So a value comes out at least once: if the commit fails, it comes
out again. A drain waits until the group has assigned all partitions of the queue to this member, and reads them to their ends.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from clusters.kit.answers import PAUSE_S, NoAnswer, unsupported
from clusters.kit.stored import entry_or_fail, queued_value
from clusters.systems.kafka.library import Producer, records
from clusters.systems.kafka.outcomes import NOT_ASSIGNED, NOTHING_CAME
from harness.op import Fail, Info, Ok

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clusters.systems.kafka.members import Members
    from clusters.systems.kafka.options import KafkaOptions
    from harness.node import Node
    from harness.op import Invocation, Outcome, Value

ONLY: Final = "only"  # for a workload without keys
DEQUEUE_S: Final = 0.5
DRAIN_S: Final = 2.5


class KafkaQueueClient:
    """A client of queues.

    Attributes:
        node: The client's own node, which names the brokers.
    """

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

    async def invoke(self, invocation: Invocation) -> Outcome:
        """Carries out an enqueue, a dequeue or a drain."""
        try:
            outcome = await self._carry_out(invocation)
        except NoAnswer as error:
            outcome = Info(f"no-answer: {error}")
        if not isinstance(outcome, Ok):
            await asyncio.sleep(PAUSE_S)
        return outcome

    async def close(self) -> None:
        """Closes the producer, in the background. The last client of a node ends the membership of the node."""
        self._library.end(self._name, self._name, *self._members.leave(self.node))

    async def _ask(self, method: str, *arguments: Any) -> Any:
        """Calls a method of the member."""
        return await self._library.call(self._name, self._member, method, *arguments)

    async def _carry_out(self, invocation: Invocation) -> Outcome:
        key = invocation.key or ONLY
        topic = self._topics.get(key)
        match invocation.f, topic:
            case "enqueue", str():
                return await self._enqueue(topic, key, invocation.value)
            case "dequeue", str():
                return await self._dequeue(topic, key)
            case "drain", str():
                return await self._drain(topic, key)
        return unsupported(invocation.f, invocation.value)

    async def _enqueue(self, topic: str, key: str, value: Value) -> Outcome:
        body = entry_or_fail(key, value)
        if isinstance(body, Fail):
            return body
        outcome = await self._producer.send(topic, body)
        return Ok(value) if isinstance(outcome, Ok) else outcome

    async def _dequeue(self, topic: str, key: str) -> Outcome:
        record = await self._ask("next", topic, DEQUEUE_S)
        if record is None:
            if not await self._ask("assigned", topic):
                return Fail(f"{NOT_ASSIGNED}: the group assigned no partition of {topic} to this node")
            return Fail(f"{NOTHING_CAME}: no record came in {DEQUEUE_S:g} s")
        return Ok(_value(record, key))

    async def _drain(self, topic: str, key: str) -> Outcome:
        records = await self._ask("rest", topic, self._partitions, DRAIN_S)
        if records is None:
            return Fail(f"not-drained: the node did not get all partitions of {topic} to the end in {DRAIN_S:g} s")
        return Ok([_value(record, key) for record in records])


def _value(body: str, key: str) -> Value:
    return queued_value(body.encode("latin-1"), key)
