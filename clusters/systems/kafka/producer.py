"""One producer of librdkafka: it sends one record at a time, and returns how it ended.

With `--transactional`, each record is a transaction of its own. All methods block.
"""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING, Any, Final

from clusters.systems.kafka.options import Acks
from clusters.systems.kafka.outcomes import ABORTED, NOT_SENT, not_sent, refused
from clusters.systems.kafka.wire import PORT
from harness.op import Fail, Info, Ok

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clusters.systems.kafka.options import KafkaOptions
    from harness.node import Node
    from harness.op import Outcome

DELIVERY_MS: Final = 4000
REQUEST_MS: Final = 3000
LATE_S: Final = 2.0  # after the deadline of a record, the library must have said how it ended
ABORT_S: Final = 2.0
ANY_PARTITION: Final = -1
BUSY_S: Final = 1.0


def connection(node: Node, nodes: Sequence[Node]) -> dict[str, Any]:
    """Returns the configuration of a client of librdkafka at a node that it asks first."""
    own = sorted(nodes, key=lambda each: each != node)
    return {
        "bootstrap.servers": ",".join(f"{each.address}:{PORT}" for each in own),
        "socket.connection.setup.timeout.ms": 1000,
        "reconnect.backoff.ms": 50,
        "reconnect.backoff.max.ms": 500,
        "topic.metadata.refresh.interval.ms": 1000,
        "logger": _silent(),  # otherwise it writes to the standard error
        "error_cb": lambda _: None,  # each record has its own report
    }


def _silent() -> logging.Logger:
    logger = logging.getLogger("librdkafka")
    logger.setLevel(logging.CRITICAL + 1)
    return logger


class Records:
    """Sends records. Several threads may use it; a transaction waits for the one before it."""

    def __init__(self, *, node: Node, nodes: Sequence[Node], options: KafkaOptions, name: str = "") -> None:
        """Connects with the first record.

        Args:
            node: The node that it asks first.
            nodes: All nodes.
            options: How it is configured.
            name: Its name if it is transactional; a later producer with it ends what an earlier one left open.
        """
        numbered = options.idempotent or options.transactional
        self._transactional = options.transactional
        self._configuration = {
            **connection(node, nodes),
            "acks": "all" if options.acks is Acks.ALL else "1",
            "enable.idempotence": numbered,
            "message.timeout.ms": DELIVERY_MS,
            "request.timeout.ms": REQUEST_MS,
            "linger.ms": 0,
        }
        if not numbered:
            self._configuration["retries"] = 0
        if options.transactional:
            self._configuration |= {"transactional.id": name, "transaction.timeout.ms": DELIVERY_MS}
        self._producer: Any = None
        self._busy = threading.Lock()

    def send(self, topic: str, body: bytes, partition: int = ANY_PARTITION) -> Outcome:
        """Sends a record, and waits until the library says how it ended; the answer is its offset."""
        if not self._busy.acquire(timeout=BUSY_S):
            return Fail(f"{NOT_SENT}: the transaction before it did not end in {BUSY_S:g} s")
        try:
            return self._send(topic, body, partition)
        finally:
            self._busy.release()

    def _send(self, topic: str, body: bytes, partition: int) -> Outcome:
        from confluent_kafka import KafkaException, Producer  # noqa: PLC0415 - an extra, which only runs of Kafka need

        deadline_s = time.monotonic() + DELIVERY_MS / 1000 + LATE_S
        reports: list[tuple[Any, int | None]] = []
        sent = False
        try:
            if self._producer is None:
                self._producer = Producer(self._configuration)
                if self._transactional:
                    self._producer.init_transactions(DELIVERY_MS / 1000)
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
            name, text = error.args[0].name(), error.args[0].str()
            return refused(name, text) if sent else not_sent(name, text)
        return self._reported(reports, deadline_s)

    def _reported(self, reports: Sequence[tuple[Any, int | None]], deadline_s: float) -> Outcome:
        """Waits for the report of a record."""
        while not reports and (left_s := deadline_s - time.monotonic()) > 0:
            self._producer.poll(left_s)
        if not reports:
            return Info(f"no-report: librdkafka did not say in {DELIVERY_MS / 1000 + LATE_S:g} s how the record ended")
        trouble, offset = reports[0]
        if trouble is not None:
            return refused(trouble.name(), trouble.str())
        if offset is None or offset < 0:
            return Info(f"no-offset: librdkafka reports the offset {offset}")
        return Ok(offset, order=offset)

    def _commit(self, deadline_s: float) -> Outcome:
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
                    return Fail(f"{ABORTED}: {trouble.str()[:200]}")
                if not trouble.retriable() or time.monotonic() > deadline_s:
                    raise
            else:
                return Ok(None)

    def end(self) -> None:
        """Gives up what is not sent. The library ends its threads in the background."""
        if self._producer is not None:
            self._producer.purge(in_queue=True, in_flight=True, blocking=False)
            self._producer = None
