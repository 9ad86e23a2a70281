"""The client of librdkafka that creates topics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .records import silenced

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class Topics:
    """Creates topics."""

    def __init__(self, configuration: Mapping[str, Any]) -> None:
        """Connects with the first topic.

        Args:
            configuration: Of librdkafka.
        """
        self._configuration = configuration

    def create(self, topic: str, assignment: Sequence[Sequence[int]], min_isr: int, timeout_s: float) -> str | None:
        """Creates a topic. Blocks.

        Args:
            topic: Its name.
            assignment: The brokers of each partition, the first leader first.
            min_isr: How many replicas must be in sync.
            timeout_s: The time limit.

        Returns:
            Why it does not exist at the time limit; None if it does.
        """
        from confluent_kafka import KafkaException  # noqa: PLC0415 - an extra, which only runs of Kafka need
        from confluent_kafka.admin import AdminClient  # noqa: PLC0415
        from confluent_kafka.cimpl import NewTopic  # noqa: PLC0415

        admin = AdminClient(silenced(self._configuration))
        new = NewTopic(
            topic,
            num_partitions=len(assignment),
            replica_assignment=[list(replicas) for replicas in assignment],
            config={"min.insync.replicas": str(min_isr)},
        )
        try:
            admin.create_topics([new], request_timeout=timeout_s)[topic].result(timeout_s)
        except (KafkaException, TimeoutError) as error:
            return str(error) or "no answer"
        return None

    def end(self) -> None:
        """Does nothing: it has no connection between two topics."""
