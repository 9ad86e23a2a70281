"""The members of a consumer group: one at each node, which the clients of the node share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clusters.systems.kafka.library import GROUP, member, records

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clusters.systems.kafka.library import Library
    from clusters.systems.kafka.options import KafkaOptions
    from clusters.systems.kafka.program.objects import Handle
    from harness.node import Node


class Members:
    """The members of the group. A node has one while a client of it is open.

    Attributes:
        library: The clients of librdkafka.
    """

    def __init__(self, nodes: Sequence[Node], topics: Sequence[str], library: Library, options: KafkaOptions) -> None:
        self.library = library
        self._nodes = nodes
        self._topics = topics
        self._options = options
        self._open: dict[str, tuple[Handle, Handle, int]] = {}

    def join(self, node: Node) -> tuple[Handle, Handle]:
        """Returns the member at a node for one more client, and the producer of the node.

        Enqueues that are transactions use this producer: one for each client were too many for Kafka.
        """
        member_of, producer, clients = self._open.get(node.name) or (*self._made(node), 0)
        self._open[node.name] = member_of, producer, clients + 1
        return member_of, producer

    def leave(self, node: Node) -> Sequence[str]:
        """Ends the use of the member at a node by one client. Returns what ends with the last one, by name."""
        member_of, producer, clients = self._open.pop(node.name)
        if clients > 1:
            self._open[node.name] = member_of, producer, clients - 1
            return ()
        return member_of.name, producer.name

    def _made(self, node: Node) -> tuple[Handle, Handle]:
        name = self.library.name(node.name)
        producer = records(
            f"{name}-transactions",
            node=node,
            nodes=self._nodes,
            options=self._options,
            transactions=f"{GROUP}-{node.name}",
        )
        return member(name, node=node, nodes=self._nodes, topics=self._topics), producer
