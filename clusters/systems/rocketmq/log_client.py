"""The client of logs in RocketMQ: sends to the one queue of a topic, and pulls from it by offset.

All keys share the queue, so the offsets of a key have gaps. An append is a send, and the offset that the broker answers is its
order. A client that follows goes to the master in its route. A pinned client stays at the broker of its node, so a deposed
master still gets messages, and slaves get reads. RocketMQ does not promise that a read is fresh: a broker reads its own log.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from clusters.kit.answers import PAUSE_S, no_answer, unsupported
from clusters.kit.remoting import BadAnswer, NotSent, RemotingError
from clusters.kit.stored import entry_or_fail, values_in
from clusters.systems.rocketmq import broker_requests
from clusters.systems.rocketmq.bodies import entry_in
from clusters.systems.rocketmq.broker_requests import Refused
from clusters.systems.rocketmq.producer import WITHOUT_MASTER
from harness.op import Fail, Ok

if TYPE_CHECKING:
    from clusters.kit.remoting import Connection
    from clusters.systems.rocketmq.producer import Producer
    from harness.node import Node
    from harness.op import Invocation, Outcome, Value

TOPIC: Final = "labrys"
QUEUE: Final = 0
READ_TIMEOUT_S: Final = 3.0


class LogClient:
    """A `harness.client.RoutedClient` for logs.

    Attributes:
        node: The client's own node.
    """

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

    async def invoke(self, invocation: Invocation) -> Outcome:
        """Carries out an append, or a read of an offset or of a range."""
        match invocation.f, invocation.value:
            case "append", value:
                body = entry_or_fail(invocation.key, value)
                if isinstance(body, Fail):
                    return body
                outcome = await self._producer.send(self._topic, QUEUE, body)
            case "read", int(offset):
                outcome = await self._read(invocation.key, offset, offset)
                if isinstance(outcome, Ok):
                    return Ok(outcome.value[0][1] if outcome.value else None)
            case "read", [int(first), int(last)]:
                outcome = await self._read(invocation.key, first, last)
            case _:
                return unsupported(invocation.f, invocation.value)
        if not isinstance(outcome, Ok):
            await asyncio.sleep(PAUSE_S)
        return outcome

    async def close(self) -> None:
        """Closes the connections."""
        self._producer.close()

    async def _read(self, key: str | None, first: int, last: int) -> Outcome:
        try:
            async with asyncio.timeout(READ_TIMEOUT_S):
                node = await self._producer.at()
                if node is None:
                    return WITHOUT_MASTER
                connection = await self._producer.connected(node)
                least = await self._end_of_master() if self._whole else 0
                return await self._records(connection, key, first, last, least)
        except NotSent as error:
            return Fail(f"not-connected: {error}")
        except TimeoutError:
            return Fail(f"no-answer: no answer in {READ_TIMEOUT_S:g} s")
        except Refused as error:
            return Fail(f"refused: {error}")
        except RemotingError as error:
            return no_answer(f"no-answer: {error}", is_read=True)

    async def _records(self, connection: Connection, key: str | None, first: int, last: int, least: int) -> Outcome:
        """Returns the entries of a key from an offset to another one.

        Raises:
            BadAnswer: The broker gives consumers less than `least` messages, or its answer cannot be read.
        """
        found: list[Value] = []
        offset = max(0, first)
        if least:
            end = await broker_requests.max_offset(connection, self._topic, QUEUE)
            if end < least:
                raise BadAnswer(f"the replica has {end} of {least} messages")
        while offset <= last:
            most = min(last - offset + 1, broker_requests.MOST_MESSAGES)
            pulled = await broker_requests.pull(connection, self._topic, QUEUE, offset, most=most)
            if not pulled.records:
                break
            for record in pulled.records:
                found += [[record.offset, value] for value in values_in(entry_in(record.body), key)]
            offset += len(pulled.records)
        return Ok(found)

    async def _end_of_master(self) -> int:
        """Returns the offset behind the last message that the master gives to consumers."""
        master = await self._producer.routes.master(fresh=True)
        if master is None:
            raise NotSent("the route has no master")
        return await broker_requests.max_offset(await self._producer.connected(master), self._topic, QUEUE)
