"""What a broker has, so that the brokers can be compared at rest: its messages, and the epochs of its log.

All brokers of a group have the same commit log, byte for byte. So two brokers whose logs end at the same place must have the
same messages at the same places, and the same epochs. An epoch without a message may be missing: a slave learns it with the
first message, or with a heartbeat.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from clusters.kit.answers import Refused
from clusters.systems.rocketmq import broker_requests

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from clusters.systems.dledger.remoting import Connection
    from clusters.systems.rocketmq.broker_requests import LogState
    from harness.op import Value

SHOWN_CHARACTERS: Final = 60
GONE: Final = "a place in the queue whose message the log lacks"


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy:
    """The copy of the log on one broker.

    Attributes:
        end: The end of its commit log in bytes.
        state: Under `topic/queue/offset`, the place of each message in the commit log and its body; under `epoch N`, the place
            at which each epoch with a message starts.
        whole: Whether the messages reach to the end of the log. If not, the broker does not give the others to consumers.
    """

    end: int
    state: Mapping[str, Value]
    whole: bool


async def copy_of(
    connection: Connection, topics: Mapping[str, int], log_state: Callable[[Connection], Awaitable[LogState]]
) -> Copy | None:
    """Pulls all messages of a broker; None if its log or its epochs change in the meantime.

    Args:
        connection: A connection to it.
        topics: The topics, with the number of their message queues.
        log_state: Asks for the end of its log and for its epochs.

    Raises:
        NoAnswer: It does not answer, or its answer cannot be read.
    """
    before = await log_state(connection)
    state: dict[str, Value] = {}
    end = 0
    for topic, queues in topics.items():
        for queue in range(queues):
            end = max(end, await _add_queue(connection, topic, queue, state))
    after = await log_state(connection)
    if (before.end, before.epochs) != (after.end, after.epochs):
        return None
    state |= {f"epoch {number}": start for number, start in after.epochs if start < after.end}
    return Copy(end=after.end, state=state, whole=end == after.end)


async def _add_queue(connection: Connection, topic: str, queue: int, state: dict[str, Value]) -> int:
    """Adds the messages of a queue, and returns where the last one ends in the commit log; 0 without a message."""
    offset = end = 0
    while True:
        try:
            pulled = await broker_requests.pull(connection, topic, queue, offset)
        except Refused:
            state[f"{topic}/{queue}/{offset}"] = GONE
            return end
        if not pulled.records:
            return end
        for record in pulled.records:
            state[f"{topic}/{queue}/{record.offset}"] = [record.place, _shown(record.body)]
            end = record.place + record.size
        offset += len(pulled.records)


def _shown(body: bytes) -> str:
    """Returns a body as text. A long one has its first characters and its digest, so that other bodies differ."""
    text = body.decode(errors="backslashreplace")
    if len(text) <= SHOWN_CHARACTERS:
        return text
    return f"{text[:SHOWN_CHARACTERS]}... sha256 {hashlib.sha256(body).hexdigest()}"
