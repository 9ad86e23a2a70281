"""The client of queues in Kafka: a queue is a topic, and one group consumes all of them.

An enqueue is a record. A dequeue is the next record of the partitions that the group assigned to the member at the client's
node; its offset is committed after the dequeue has the value. So a value comes out at least once: if the commit fails, it comes
out again. A drain waits until the group has assigned all partitions of the queue to this member, and reads them to their ends.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

from clusters.systems.answers import PAUSE_S, unsupported
from clusters.systems.kafka.outcomes import NOT_ASSIGNED, NOTHING_CAME
from clusters.systems.kafka.producer import Records
from clusters.systems.stored import entry_or_fail, queued_value
from harness.op import Fail, Ok

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clusters.systems.kafka.consumer import Members
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
        self._own = Records(node=node, nodes=nodes, options=options)
        self._members = members
        self._member = members.join(node)
        self._records = self._member.transactions if options.transactional else self._own
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="labrys-kafka")

    async def invoke(self, invocation: Invocation) -> Outcome:
        """Carries out an enqueue, a dequeue or a drain."""
        outcome = await asyncio.get_running_loop().run_in_executor(self._thread, self._carry_out, invocation)
        if not isinstance(outcome, Ok):
            await asyncio.sleep(PAUSE_S)
        return outcome

    async def close(self) -> None:
        """Closes the producer, in the background. The last client of a node ends the membership of the node."""
        self._members.leave(self.node)
        self._thread.submit(self._own.end)
        self._thread.shutdown(wait=False)

    def _carry_out(self, invocation: Invocation) -> Outcome:
        key = invocation.key or ONLY
        topic = self._topics.get(key)
        match invocation.f, topic:
            case "enqueue", str():
                return self._enqueue(topic, key, invocation.value)
            case "dequeue", str():
                return self._dequeue(topic, key)
            case "drain", str():
                return self._drain(topic, key)
        return unsupported(invocation.f, invocation.value)

    def _enqueue(self, topic: str, key: str, value: Value) -> Outcome:
        body = entry_or_fail(key, value)
        if isinstance(body, Fail):
            return body
        outcome = self._records.send(topic, body)
        return Ok(value) if isinstance(outcome, Ok) else outcome

    def _dequeue(self, topic: str, key: str) -> Outcome:
        record = self._member.next(topic, DEQUEUE_S)
        if record is None:
            if not self._member.assigned(topic):
                return Fail(f"{NOT_ASSIGNED}: the group assigned no partition of {topic} to this node")
            return Fail(f"{NOTHING_CAME}: no record came in {DEQUEUE_S:g} s")
        return Ok(_value(record, key))

    def _drain(self, topic: str, key: str) -> Outcome:
        records = self._member.rest(topic, self._partitions, DRAIN_S)
        if records is None:
            return Fail(f"not-drained: the node did not get all partitions of {topic} to the end in {DRAIN_S:g} s")
        return Ok([_value(record, key) for record in records])


def _value(record: object, key: str) -> Value:
    return queued_value(record.value() or b"", key)  # type: ignore[attr-defined]
