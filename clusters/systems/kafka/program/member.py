"""A member of a consumer group, which several threads share.

A member gets records all the time, in a thread of its own. It commits the offset behind a record after a client has taken it. A
record whose offset is not committed is delivered again: that is at least once.
"""

from __future__ import annotations

import threading
from collections import defaultdict, deque
from typing import TYPE_CHECKING, Any, Final

from .records import silenced

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

POLL_S: Final = 0.05
COMMIT_S: Final = 1.5
REQUEST_S: Final = 1.0


class Member:
    """A member of the group. Its methods block; several threads may call them."""

    def __init__(self, configuration: Mapping[str, Any], topics: Sequence[str]) -> None:
        """Joins the group with the first request.

        Args:
            configuration: Of librdkafka.
            topics: The topics that it consumes.
        """
        self._topics = topics
        self._configuration = {**silenced(configuration), "on_commit": self._committed}
        self._news = threading.Condition()  # guards what follows, and tells of a change
        self._assigned: Sequence[tuple[str, int]] = ()
        self._waiting: Mapping[str, deque[Any]] = defaultdict(deque)
        self._ends: dict[tuple[str, int], int] = {}  # the offset at which a partition had no more records
        self._behind: dict[tuple[str, int], int] = {}  # the offset behind what clients have taken
        self._uncommitted: set[tuple[str, int]] = set()
        self._commits = 0  # the answers to commits
        self._asked: dict[str, int] = {}  # the topics whose ends a client wants to know, with their partitions
        self._known: dict[str, Mapping[tuple[str, int], int]] = {}  # their ends
        self._left = False
        self._consumer: Any = None

    def assigned(self, topic: str) -> Sequence[int]:
        """Returns the partitions of a topic that the group assigned to this member."""
        self._opened()
        with self._news:
            return [number for name, number in self._assigned if name == topic]

    def next(self, topic: str, wait_s: float) -> str | None:
        """Takes the next record of a topic, and returns its bytes, each as a character; None if none came in time."""
        self._opened()
        with self._news:
            if not self._news.wait_for(lambda: self._waiting[topic], wait_s):
                return None
            record = self._waiting[topic].popleft()
            self._take([record])
        return _body(record)

    def rest(self, topic: str, partitions: int, wait_s: float) -> Sequence[str] | None:
        """Takes all records of a topic; None if it did not get them to the end in time, and took none.

        Args:
            topic: The topic.
            partitions: Its partitions. The group must assign all of them to this member.
            wait_s: The time limit.

        Returns:
            The bytes of each record, as from `next`.
        """
        self._opened()
        with self._news:
            self._known.pop(topic, None)
            self._asked[topic] = partitions

            def whole() -> bool:
                ends = self._known.get(topic)
                return ends is not None and all(self._ends.get(partition, -1) >= end for partition, end in ends.items())

            if not self._news.wait_for(whole, wait_s):
                self._asked.pop(topic, None)
                return None
            records = list(self._waiting[topic])
            self._waiting[topic].clear()
            if records:
                answers = self._commits
                self._take(records)
                self._news.wait_for(lambda: self._commits > answers, COMMIT_S)
        return [_body(record) for record in records]

    def end(self) -> None:
        """Leaves the group, in the background."""
        with self._news:
            self._left = True

    def _opened(self) -> Any:
        """Returns the consumer, which joins the group with the first call."""
        from confluent_kafka import Consumer  # noqa: PLC0415 - an extra, which only runs of Kafka need

        with self._news:
            if self._consumer is None:
                self._consumer = Consumer(self._configuration)
                self._consumer.subscribe(
                    list(self._topics), on_assign=self._assign, on_revoke=self._forget, on_lost=self._forget
                )
                threading.Thread(target=self._poll, name="labrys-kafka-member", daemon=True).start()
            return self._consumer

    def _poll(self) -> None:
        from confluent_kafka import KafkaError  # noqa: PLC0415

        while not self._left:
            self._request()
            record = self._consumer.poll(POLL_S)
            if record is None:
                continue
            error = record.error()
            with self._news:
                if error is None:
                    self._waiting[record.topic()].append(record)
                elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - the library's name of it
                    self._ends[record.topic(), record.partition()] = record.offset()
                self._news.notify_all()
        self._request()  # close() waits for the answer
        self._consumer.close()

    def _assign(self, _consumer: Any, partitions: Sequence[Any]) -> None:
        with self._news:
            self._assigned = [(partition.topic, partition.partition) for partition in partitions]

    def _forget(self, _consumer: Any, _partitions: Any) -> None:
        """Drops what no client has taken: the group delivers it to the next member."""
        with self._news:
            self._assigned = ()
            self._waiting = defaultdict(deque)
            self._ends.clear()
            self._known.clear()
            self._behind.clear()
            self._uncommitted.clear()

    def _take(self, records: Sequence[Any]) -> None:
        """Lets the thread of the member commit the offsets behind records. If that fails, the group delivers them again."""
        for record in records:
            partition = record.topic(), record.partition()
            self._behind[partition] = max(self._behind.get(partition, 0), record.offset() + 1)
            self._uncommitted.add(partition)

    def _committed(self, _error: Any, _partitions: Any) -> None:
        with self._news:
            self._commits += 1
            self._news.notify_all()

    def _request(self) -> None:
        """Sends what clients want. Only the thread of the member calls the library: a call of another one can block all."""
        from confluent_kafka import KafkaException, TopicPartition  # noqa: PLC0415

        with self._news:
            offsets = [TopicPartition(*partition, self._behind[partition]) for partition in self._uncommitted]
            self._uncommitted.clear()
            asked = {
                topic: partitions
                for topic, partitions in self._asked.items()
                if sum(name == topic for name, _ in self._assigned) == partitions
            }
        try:
            if offsets:
                self._consumer.commit(offsets=offsets)
            for topic, partitions in asked.items():
                places = [(topic, number) for number in range(partitions)]
                ends = [
                    self._consumer.get_watermark_offsets(TopicPartition(*partition), REQUEST_S) for partition in places
                ]
                if None not in ends:
                    with self._news:
                        self._asked.pop(topic, None)
                        self._known[topic] = {partition: end[1] for partition, end in zip(places, ends, strict=True)}
                        self._news.notify_all()
        except KafkaException:
            return  # e.g. the group has no coordinator now


def _body(record: Any) -> str:
    return (record.value() or b"").decode("latin-1")
