"""One consumer of a group: it gets records of several topics, and commits the offset of a record after it was processed.

A record whose offset is not committed is delivered again: that is at least once. All methods block.
"""

from __future__ import annotations

import time
from collections import defaultdict, deque
from typing import TYPE_CHECKING, Any, Final

from clusters.systems.kafka.producer import connection

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness.node import Node

GROUP: Final = "labrys"
SESSION_MS: Final = 3000
POLL_S: Final = 0.05
COMMIT_S: Final = 1.5
REQUEST_S: Final = 1.0


class Group:
    """A member of the group."""

    def __init__(self, *, node: Node, nodes: Sequence[Node], topics: Sequence[str]) -> None:
        """Joins the group with the first request.

        Args:
            node: The node that it asks first.
            nodes: All nodes.
            topics: The topics that it consumes.
        """
        self._topics = topics
        self._configuration = {
            **connection(node, nodes),
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
            "on_commit": lambda error, _: self._commits.append(error),
        }
        self._commits: list[Any] = []
        self._waiting: Mapping[str, deque[Any]] = defaultdict(deque)
        self._ends: dict[tuple[str, int], int] = {}  # the offset at which a partition had no more records
        self._consumer: Any = None

    def assigned(self, topic: str) -> Sequence[int]:
        """Returns the partitions of a topic that the group assigned to this member."""
        found: Sequence[Any] = () if self._consumer is None else self._consumer.assignment()
        return [each.partition for each in found if each.topic == topic]

    def next(self, topic: str, wait_s: float) -> Any | None:
        """Returns the next record of a topic; None if none came in time. Its offset is not committed yet."""
        deadline_s = time.monotonic() + wait_s
        while not self._waiting[topic] and time.monotonic() < deadline_s:
            self._poll()
        return self._waiting[topic].popleft() if self._waiting[topic] else None

    def rest(self, topic: str, partitions: int, wait_s: float) -> Sequence[Any] | None:
        """Returns all records of a topic; None if it did not read them to the end in time. No offset is committed yet.

        Args:
            topic: The topic.
            partitions: Its partitions. The group must assign all of them to this member.
            wait_s: The time limit.
        """
        deadline_s = time.monotonic() + wait_s
        while len(self.assigned(topic)) < partitions:
            if time.monotonic() > deadline_s:
                return None
            self._poll()
        ends = self._ends_of(topic, partitions, deadline_s)
        while ends is None or any(self._ends.get(place, -1) < end for place, end in ends.items()):
            if time.monotonic() > deadline_s or len(self.assigned(topic)) < partitions:
                return None
            self._poll()
            ends = ends or self._ends_of(topic, partitions, deadline_s)
        found = list(self._waiting[topic])
        self._waiting[topic].clear()
        return found

    def commit(self, records: Sequence[Any]) -> bool:
        """Commits the offsets behind records, and returns whether the group has them; if not, it delivers them again."""
        from confluent_kafka import KafkaException, TopicPartition  # noqa: PLC0415 - an extra

        behind = {(each.topic(), each.partition()): each.offset() + 1 for each in records}
        self._commits.clear()
        deadline_s = time.monotonic() + COMMIT_S
        try:
            self._consumer.commit(offsets=[TopicPartition(*place, at) for place, at in behind.items()])
            while not self._commits and time.monotonic() < deadline_s:
                self._poll()
        except KafkaException:
            return False
        return bool(self._commits) and self._commits[0] is None

    def leave(self) -> None:
        """Leaves the group, without a commit."""
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None

    def _poll(self) -> None:
        from confluent_kafka import Consumer, KafkaError  # noqa: PLC0415

        if self._consumer is None:
            self._consumer = Consumer(self._configuration)
            self._consumer.subscribe(list(self._topics), on_revoke=self._forget, on_lost=self._forget)
        record = self._consumer.poll(POLL_S)
        if record is None:
            return
        error = record.error()
        if error is None:
            self._waiting[record.topic()].append(record)
        elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - the library's name of it
            self._ends[record.topic(), record.partition()] = record.offset()

    def _forget(self, _consumer: Any, _partitions: Any) -> None:
        """Drops what it has not processed: the group delivers it to the next member."""
        self._waiting = defaultdict(deque)
        self._ends.clear()

    def _ends_of(self, topic: str, partitions: int, deadline_s: float) -> Mapping[tuple[str, int], int] | None:
        """Returns the end of each partition as its leader has it; None if one does not answer in time."""
        from confluent_kafka import KafkaException, TopicPartition  # noqa: PLC0415

        found = {}
        for number in range(partitions):
            left_s = min(REQUEST_S, deadline_s - time.monotonic())
            try:
                ends = (
                    self._consumer.get_watermark_offsets(TopicPartition(topic, number), timeout=left_s)
                    if left_s > 0
                    else None
                )
            except KafkaException:
                ends = None
            if ends is None:
                return None
            found[topic, number] = ends[1]
        return found
