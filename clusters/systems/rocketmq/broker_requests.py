"""The requests to a broker and to a name server, and their answers as values.

Source: RocketMQ 5.3.3, `RequestCode`, the classes below `protocol/header` and `protocol/body`, `AdminBrokerProcessor`,
`PullMessageProcessor`.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from clusters.systems.remoting import BadAnswer, Connection
from clusters.systems.rocketmq.broker_outcomes import (
    PULL_NOT_FOUND,
    PULL_OFFSET_MOVED,
    PULL_RETRY_IMMEDIATELY,
    QUERY_NOT_FOUND,
    SUCCESS,
    TOPIC_NOT_EXIST,
)
from clusters.systems.rocketmq.numbers import integer, number_in
from clusters.systems.rocketmq.records import records_in

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clusters.systems.remoting import Answer
    from clusters.systems.rocketmq.records import Record
    from harness.op import Value

PORT: Final = 10911
FAST_PORT: Final = PORT - 2
HA_PORT: Final = PORT + 1
NAME_SERVER_PORT: Final = 9876
BROKER: Final = "broker"  # the name of the group of brokers
GROUP: Final = "labrys"  # the name of the group of producers, and of that of consumers
MOST_MESSAGES: Final = 1000  # in the answer to one pull
ROUTE, CREATE_TOPIC, SEND, PULL, MAX_OFFSET = 105, 17, 310, 11, 30
COMMITTED, COMMIT = 14, 15
EPOCHS, REPLICATION = 1007, 907
MASTER: Final = "0"  # the id of a master, in a route and in its own answers
SUBSCRIPTION: Final = 4  # the system flag of a pull that has its subscription with it
READ_AND_WRITE: Final = 6


class Refused(BadAnswer):
    """The process answered with an error.

    Attributes:
        status: The code.
    """

    def __init__(self, answer: Answer) -> None:
        super().__init__(f"code {answer.status}: {answer.remark[:200] or 'no remark'}")
        self.status = answer.status


@dataclass(frozen=True, slots=True, kw_only=True)
class Pulled:
    """The answer to a pull.

    Attributes:
        records: The messages, in the order of their offsets.
        end: The offset behind the last message that the broker gives to consumers.
    """

    records: Sequence[Record]
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Epochs:
    """What a broker knows of the epochs of its log.

    Attributes:
        broker: Its id; 0 for a master.
        epochs: The number and the start of each epoch in its log, in bytes of the commit log.
        end: The end of its commit log.
    """

    broker: int
    epochs: Sequence[tuple[int, int]]
    end: int

    @property
    def leads(self) -> bool:
        """Returns whether it has the id of a master."""
        return str(self.broker) == MASTER

    @property
    def last(self) -> int | None:
        """Returns the number of the last epoch; None if there is none."""
        return self.epochs[-1][0] if self.epochs else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Replication:
    """What a broker knows of its replication.

    Attributes:
        leads: Whether it is a master.
        master: Of a slave, the address of the master from which it gets messages, `host:port`; None if it has none.
        in_sync: Of a master, the number of slaves in its sync set; 0 for a slave.
    """

    leads: bool
    master: str | None
    in_sync: int


async def master_of(connection: Connection, topic: str) -> str | None:
    """Asks a name server for the master of a topic; returns its address `host:port`, None if the route has no master.

    Raises:
        Refused: The name server does not know the topic, e.g. because no broker is registered there.
        BadAnswer: The answer is not a route.
    """
    answer = await connection.call(ROUTE, None, extension={"topic": topic, "acceptStandardJsonOnly": "true"})
    if answer.status != SUCCESS:
        raise Refused(answer)
    brokers = answer.body.get("brokerDatas")
    if not isinstance(brokers, list) or not all(isinstance(each, dict) for each in brokers):
        raise BadAnswer(f"expected the brokers of a topic, found {str(answer.body)[:100]}")
    addresses: Value = next((each.get("brokerAddrs") for each in brokers if each.get("brokerName") == BROKER), {})
    if not isinstance(addresses, dict):
        raise BadAnswer(f"expected the addresses of brokers, found {str(addresses)[:100]}")
    found = addresses.get(MASTER)
    return found if isinstance(found, str) else None


async def knows_topic(connection: Connection, topic: str) -> bool:
    """Returns whether a broker knows a topic.

    Raises:
        Refused: It answers with an error.
    """
    try:
        await pull(connection, topic, 0, 0, most=1)
    except Refused as refusal:
        if refusal.status == TOPIC_NOT_EXIST:
            return False
        raise
    return True


async def create_topic(connection: Connection, topic: str, queues: int) -> None:
    """Creates a topic at a master; its slaves learn it from the master.

    Raises:
        Refused: The broker does not create it.
    """
    fields = {
        "topic": topic,
        "defaultTopic": "TBW102",
        "readQueueNums": str(queues),
        "writeQueueNums": str(queues),
        "perm": str(READ_AND_WRITE),
        "topicFilterType": "SINGLE_TAG",
        "topicSysFlag": "0",
        "order": "false",
    }
    _succeeded(await connection.call(CREATE_TOPIC, None, extension=fields))


async def send(connection: Connection, topic: str, queue: int, body: bytes, now_ms: int) -> Answer:
    """Sends a message to a queue.

    Args:
        connection: The connection to a broker.
        topic: The topic.
        queue: The number of the queue.
        body: The body of the message.
        now_ms: The time of its birth, in milliseconds since 1970.
    """
    fields = {
        "a": GROUP, "b": topic, "c": "TBW102", "d": "4", "e": str(queue), "f": "0", "g": str(now_ms), "h": "0", "i": "",
        "j": "0", "k": "false", "m": "false", "n": BROKER,
    }  # fmt: skip
    answer, _ = await connection.call_bytes(SEND, body, extension=fields)
    return answer


def offset_of(answer: Answer, queue: int) -> int:
    """Returns the offset that a broker gave to a message.

    Raises:
        BadAnswer: The answer has no offset, or names another queue.
    """
    found = _from_zero(answer.extension, "queueId")
    if found != queue:
        raise BadAnswer(f"expected an offset of the queue {queue}, found one of the queue {found}")
    return _from_zero(answer.extension, "queueOffset")


async def pull(connection: Connection, topic: str, queue: int, offset: int, *, most: int = MOST_MESSAGES) -> Pulled:
    """Returns messages of a queue from an offset on, from the log of this broker.

    Args:
        connection: The connection to a broker.
        topic: The topic.
        queue: The number of the queue.
        offset: The first offset.
        most: The largest number of messages.

    Raises:
        Refused: The broker answers with an error.
        BadAnswer: The messages are not those of this queue from this offset on, without a gap.
    """
    fields = {
        "consumerGroup": GROUP,
        "topic": topic,
        "queueId": str(queue),
        "queueOffset": str(offset),
        "maxMsgNums": str(most),
        "sysFlag": str(SUBSCRIPTION),
        "commitOffset": "0",
        "suspendTimeoutMillis": "0",
        "subscription": "*",
        "subVersion": "0",
        "expressionType": "TAG",
    }
    answer, body = await connection.call_bytes(PULL, b"", extension=fields)
    if answer.status not in {SUCCESS, PULL_NOT_FOUND, PULL_RETRY_IMMEDIATELY, PULL_OFFSET_MOVED}:
        raise Refused(answer)
    end = _from_zero(answer.extension, "maxOffset")
    records = list(records_in(body)) if answer.status == SUCCESS else []
    if not records and offset < end:
        raise Refused(answer)  # e.g. the queue has the place of a message that the log lacks
    for place, record in zip(itertools.count(offset), records, strict=False):
        if (record.topic, record.queue, record.offset) != (topic, queue, place):
            raise BadAnswer(
                f"expected the message {place} of the queue {queue} of {topic}, found the message {record.offset} of the "
                f"queue {record.queue} of {record.topic[:100]}"
            )
    return Pulled(records=records, end=end)


async def max_offset(connection: Connection, topic: str, queue: int) -> int:
    """Returns the offset behind the last message of a queue that the broker gives to consumers; 0 for an unknown topic.

    Raises:
        Refused: It answers with an error.
    """
    answer = await connection.call(MAX_OFFSET, None, extension={"topic": topic, "queueId": str(queue)})
    return _from_zero(_succeeded(answer).extension, "offset")


async def committed(connection: Connection, topic: str, queue: int) -> int:
    """Returns the offset that the group of consumers has committed; 0 if there is none.

    Raises:
        Refused: The broker answers with an error.
    """
    fields = {"consumerGroup": GROUP, "topic": topic, "queueId": str(queue), "setZeroIfNotFound": "false"}
    answer = await connection.call(COMMITTED, None, extension=fields)
    if answer.status == QUERY_NOT_FOUND:
        return 0
    return _from_zero(_succeeded(answer).extension, "offset")


async def commit(connection: Connection, topic: str, queue: int, offset: int) -> None:
    """Commits an offset of the group of consumers.

    Raises:
        Refused: The broker answers with an error.
    """
    fields = {"consumerGroup": GROUP, "topic": topic, "queueId": str(queue), "commitOffset": str(offset)}
    _succeeded(await connection.call(COMMIT, None, extension=fields))


async def epochs(connection: Connection) -> Epochs:
    """Returns the epochs of a broker's log.

    Raises:
        Refused: It answers with an error, e.g. before it has registered.
        BadAnswer: The answer has no epochs.
    """
    body = _succeeded(await connection.call(EPOCHS, None, extension={})).body
    found = body.get("epochList")
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise BadAnswer(f"expected a list of epochs, found {str(body)[:100]}")
    return Epochs(
        broker=integer(body.get("brokerId")),
        epochs=[(integer(each.get("epoch")), integer(each.get("startOffset"))) for each in found],
        end=integer(body.get("maxOffset")),
    )


async def replication(connection: Connection) -> Replication:
    """Returns what a broker knows of its replication.

    Raises:
        Refused: It answers with an error.
        BadAnswer: The answer does not say whether it is a master.
    """
    body = _succeeded(await connection.call(REPLICATION, None, extension={})).body
    leads, of_slave = body.get("master"), body.get("haClientRuntimeInfo")
    if not isinstance(leads, bool):
        raise BadAnswer(f"expected whether the broker is a master, found {str(body)[:100]}")
    master = of_slave.get("masterAddr") if isinstance(of_slave, dict) and not leads else None
    return Replication(
        leads=leads,
        master=master if isinstance(master, str) else None,
        in_sync=integer(body.get("inSyncSlaveNums")) if leads else 0,
    )


def _succeeded(answer: Answer) -> Answer:
    if answer.status != SUCCESS:
        raise Refused(answer)
    return answer


def _from_zero(fields: Mapping[str, str], name: str) -> int:
    """Returns a field that is a whole number from 0 on."""
    found = number_in(fields, name)
    if fields[name].startswith("-"):
        raise BadAnswer(f"expected a whole number from 0 on as {name}, got {fields[name]}")
    return found
