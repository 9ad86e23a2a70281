"""The clients of librdkafka for the clients of a run: in this process, or in virtual time in a program of the simulation.

The library has threads and sockets of its own. A program of the simulation has them there, so the seed decides their turns too.
"""

from __future__ import annotations

import asyncio
import itertools
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from clusters.kit.client_program import ClientProgram
from clusters.systems.kafka.options import Acks
from clusters.systems.kafka.outcomes import offset_in
from clusters.systems.kafka.program.objects import Handle, Objects
from clusters.systems.kafka.wire import PORT
from harness.clock import in_virtual_time

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clusters.systems.kafka.options import KafkaOptions
    from harness.node import Node

LIBRARY: Final = "confluent_kafka"
ANY_PARTITION: Final = -1
DELIVERY_MS: Final = 4000
REQUEST_MS: Final = 3000
GROUP: Final = "labrys"
SESSION_MS: Final = 3000


class Library:
    """The clients of the library that the clients of a run share."""

    def __init__(self) -> None:
        self._objects = Objects()
        self._program = ClientProgram(Path(__file__).parent / "program", (LIBRARY,))
        self._numbers = itertools.count(1)

    def name(self, what: str) -> str:
        """Returns a name that nobody else has."""
        return f"{what}-{next(self._numbers)}"

    async def call(self, caller: str, handle: Handle, method: str, *arguments: Any) -> Any:
        """Calls a method of a client of the library; see `Objects.call`.

        Raises:
            NoAnswer: The method raised an error in the program.
        """
        if in_virtual_time():
            return await self._program.ask({"call": [caller, handle, method, arguments]})
        return await asyncio.wrap_future(self._objects.call(caller, handle, method, arguments))

    def end(self, caller: str, *names: str) -> None:
        """Ends clients of the library, in the background; see `Objects.end`."""
        if in_virtual_time():
            self._program.tell({"end": [caller, names]})
        else:
            self._objects.end(caller, names)


class Producer:
    """A producer of the library, as one caller uses it."""

    def __init__(self, library: Library, caller: str, handle: Handle) -> None:
        self._library = library
        self._caller = caller
        self._handle = handle

    async def send(self, topic: str, body: bytes, partition: int = ANY_PARTITION) -> int | None:
        """Sends a record, and returns its offset; None for one in a transaction. For the errors see `outcomes.offset_in`."""
        text = body.decode("latin-1")  # each byte as the character with its number
        return offset_in(await self._library.call(self._caller, self._handle, "send", topic, text, partition))


def records(name: str, *, node: Node, nodes: Sequence[Node], options: KafkaOptions, transactions: str = "") -> Handle:
    """Returns a producer.

    Args:
        name: A name that no other client of the library has.
        node: The node that it asks first.
        nodes: All nodes.
        options: How it is configured.
        transactions: Its name for the brokers if it is transactional. A later producer with this name ends what an earlier one
            left open.
    """
    numbered = options.idempotent or options.transactional
    configuration = {
        **_connection(node, nodes),
        "acks": "all" if options.acks is Acks.ALL else "1",
        "enable.idempotence": numbered,
        "message.timeout.ms": DELIVERY_MS,
        "request.timeout.ms": REQUEST_MS,
        "linger.ms": 0,
    }
    if not numbered:
        configuration["retries"] = 0
    if options.transactional:
        configuration |= {"transactional.id": transactions, "transaction.timeout.ms": DELIVERY_MS}
    return Handle(name, "records", (configuration,))


def member(name: str, *, node: Node, nodes: Sequence[Node], topics: Sequence[str]) -> Handle:
    """Returns a member of the group; the arguments are as for `records`, and the topics that it consumes."""
    configuration = {
        **_connection(node, nodes),
        "group.id": GROUP,
        "session.timeout.ms": SESSION_MS,
        "heartbeat.interval.ms": SESSION_MS // 6,
        "max.poll.interval.ms": 5 * SESSION_MS,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        "isolation.level": "read_committed",
        "fetch.wait.max.ms": 100,
        "fetch.error.backoff.ms": 100,
        "socket.timeout.ms": SESSION_MS,
    }
    return Handle(name, "member", (configuration, topics))


def topics(name: str, nodes: Sequence[Node]) -> Handle:
    """Returns the client that creates topics."""
    servers = ",".join(f"{node.address}:{PORT}" for node in nodes)
    return Handle(name, "topics", ({"bootstrap.servers": servers, "log_level": 0},))


def _connection(node: Node, nodes: Sequence[Node]) -> Mapping[str, Any]:
    """Returns the configuration of a client that asks a node first."""
    own = sorted(nodes, key=lambda other: other != node)
    return {
        "bootstrap.servers": ",".join(f"{other.address}:{PORT}" for other in own),
        "socket.connection.setup.timeout.ms": 1000,
        "reconnect.backoff.ms": 50,
        "reconnect.backoff.max.ms": 500,
        "topic.metadata.refresh.interval.ms": 1000,
    }
