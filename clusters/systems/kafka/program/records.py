"""One producer of librdkafka: it sends one record at a time, and returns how it ended.

With the configuration of a transactional producer, each record is a transaction of its own. All methods block.
"""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    # What became of a record: `ok` and its offset; `refused` or `not-sent`, the name of the error and its text; `aborted` or
    # `busy`, and a text; `unknown`, a code and a text.
    Answer = Sequence[str | int | None]

LATE_S: Final = 2.0  # after the deadline of a record, the library must have said how it ended
ABORT_S: Final = 2.0
BUSY_S: Final = 1.0


def silenced(configuration: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the configuration of a client that writes nothing to the standard error: each record has its own report."""
    logger = logging.getLogger("librdkafka")
    logger.setLevel(logging.CRITICAL + 1)
    return {**configuration, "logger": logger, "error_cb": lambda _: None}


class Records:
    """Sends records. Several threads may use it; a transaction waits for the one before it."""

    def __init__(self, configuration: Mapping[str, Any]) -> None:
        """Connects with the first record.

        Args:
            configuration: Of librdkafka. With `transactional.id`, each record is a transaction.
        """
        self._configuration = silenced(configuration)
        self._transactional = "transactional.id" in configuration
        self._delivery_s: float = configuration["message.timeout.ms"] / 1000
        self._producer: Any = None
        self._busy = threading.Lock()

    def send(self, topic: str, body: str, partition: int) -> Answer:
        """Sends a record, and waits until the library says how it ended.

        Args:
            topic: The topic.
            body: The bytes of the record, each as the character with its number.
            partition: The partition; -1: any.
        """
        if not self._busy.acquire(timeout=BUSY_S):
            return "busy", f"the transaction before it did not end in {BUSY_S:g} s"
        try:
            return self._send(topic, body.encode("latin-1"), partition)
        finally:
            self._busy.release()

    def _send(self, topic: str, body: bytes, partition: int) -> Answer:
        from confluent_kafka import KafkaException, Producer  # noqa: PLC0415 - an extra, which only runs of Kafka need

        deadline_s = time.monotonic() + self._delivery_s + LATE_S
        reports: list[tuple[Any, int | None]] = []
        sent = False
        try:
            if self._producer is None:
                self._producer = Producer(self._configuration)
                if self._transactional:
                    self._producer.init_transactions(self._delivery_s)
            if self._transactional:
                self._producer.begin_transaction()
            self._producer.produce(
                topic, body, partition=partition, on_delivery=lambda error, done: reports.append((error, done.offset()))
            )
            sent = True
            if self._transactional:
                return self._commit(deadline_s)
        except KafkaException as error:
            if self._transactional:
                self.end()
            return "refused" if sent else "not-sent", error.args[0].name(), error.args[0].str()
        return self._reported(reports, deadline_s)

    def _reported(self, reports: Sequence[tuple[Any, int | None]], deadline_s: float) -> Answer:
        """Waits for the report of a record."""
        while not reports and (left_s := deadline_s - time.monotonic()) > 0:
            self._producer.poll(left_s)
        if not reports:
            waited_s = self._delivery_s + LATE_S
            return "unknown", "no-report", f"librdkafka did not say in {waited_s:g} s how the record ended"
        trouble, offset = reports[0]
        if trouble is not None:
            return "refused", trouble.name(), trouble.str()
        if offset is None or offset < 0:
            return "unknown", "no-offset", f"librdkafka reports the offset {offset}"
        return "ok", offset

    def _commit(self, deadline_s: float) -> Answer:
        """Commits the transaction. If the library demands its abort, an abort that succeeds is certain.

        Raises:
            KafkaException: It is not known how the transaction ends.
        """
        from confluent_kafka import KafkaException  # noqa: PLC0415

        while True:
            try:
                self._producer.commit_transaction(max(0.1, deadline_s - time.monotonic()))
            except KafkaException as error:
                trouble = error.args[0]
                if trouble.txn_requires_abort():
                    self._producer.abort_transaction(ABORT_S)
                    return "aborted", trouble.str()
                if not trouble.retriable() or time.monotonic() > deadline_s:
                    raise
            else:
                return "ok", None

    def end(self) -> None:
        """Gives up what is not sent. The library ends its threads in the background."""
        if self._producer is not None:
            self._producer.purge(in_queue=True, in_flight=True, blocking=False)
            self._producer = None
