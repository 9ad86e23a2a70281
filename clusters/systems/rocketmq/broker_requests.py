"""The requests to a broker and to a name server, and their answers as values.

Source: RocketMQ 5.3.3, `RequestCode`, the classes below `protocol/header` and `protocol/body`, `AdminBrokerProcessor`,
`PullMessageProcessor`.
"""

from __future__ import annotations

import itertools
import re
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from clusters.kit.answers import NoAnswer, Refused
from clusters.systems.rocketmq.broker_outcomes import (
    PULL_NOT_FOUND,
    PULL_OFFSET_MOVED,
    PULL_RETRY_IMMEDIATELY,
    QUERY_NOT_FOUND,
    SUCCESS,
    TOPIC_NOT_EXIST,
)
from clusters.systems.rocketmq.numbers import integer, number, number_in
from clusters.systems.rocketmq.records import records_in
from harness.clock import wall_s

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clusters.systems.dledger.remoting import Answer, Connection
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
SEND_BATCH, END_TRANSACTION = 320, 37
COMMITTED, COMMIT = 14, 15
EPOCHS, REPLICATION = 1007, 907
CONFIGURATION, RUNTIME = 26, 28
MS_PER_S: Final = 1000
MASTER: Final = "0"  # the id of a master, in a route and in its own answers
SUBSCRIPTION: Final = 4  # the system flag of a pull that has its subscription with it
READ_AND_WRITE: Final = 6
PLAIN, HALF = 0, 4  # the system flag of a message
COMMITS, ROLLS_BACK = 8, 12  # the end of a transaction
IN_BATCH: Final = struct.Struct(
    ">iiiii"
)  # size, magic, checksum, flag, length of the body; the broker ignores the second and third
NO_PROPERTIES: Final = struct.pack(">h", 0)
MESSAGE_ID: Final = re.compile(
    r"[0-9A-Fa-f]{32}(?:[0-9A-Fa-f]{24})?"
)  # address, port, and 8 bytes with the place in the commit log
MOST_CONFIGURATION: Final = 1024 * 1024


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
class LogState:
    """The end of a broker's log, and its epochs.

    Attributes:
        epochs: The number and the start of each epoch in its log, in bytes of the commit log; none if the broker tells none.
        end: The end of its commit log.
    """

    epochs: Sequence[tuple[int, int]] = ()
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Epochs(LogState):
    """What a broker in controller mode knows of its log.

    Attributes:
        broker: Its id; 0 for a master.
    """

    broker: int

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
        NoAnswer: The answer is not a route.
    """
    answer = await connection.call(ROUTE, None, extension={"topic": topic, "acceptStandardJsonOnly": "true"})
    if answer.status != SUCCESS:
        raise _refusal(answer)
    brokers = answer.body.get("brokerDatas")
    if not isinstance(brokers, list) or not all(isinstance(broker, dict) for broker in brokers):
        raise NoAnswer(f"expected the brokers of a topic, found {str(answer.body)[:100]}")
    addresses: Value = next((broker.get("brokerAddrs") for broker in brokers if broker.get("brokerName") == BROKER), {})
    if not isinstance(addresses, dict):
        raise NoAnswer(f"expected the addresses of brokers, found {str(addresses)[:100]}")
    address = addresses.get(MASTER)
    return address if isinstance(address, str) else None


async def knows_topic(connection: Connection, topic: str) -> bool:
    """Returns whether a broker knows a topic.

    Raises:
        Refused: It answers with an error.
    """
    try:
        await pull(connection, topic, 0, 0, most=1)
    except Refused as refusal:
        if refusal.code != str(TOPIC_NOT_EXIST):
            raise
        return False
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


def now_ms() -> int:
    """Returns the time of birth of a message that is made now, in milliseconds since 1970."""
    return int(wall_s() * MS_PER_S)


async def send(connection: Connection, topic: str, queue: int, body: bytes, now_ms: int) -> Answer:
    """Sends a message to a queue.

    Args:
        connection: The connection to a broker.
        topic: The topic.
        queue: The number of the queue.
        body: The body of the message.
        now_ms: The time of its birth, in milliseconds since 1970.
    """
    answer, _ = await connection.call_bytes(SEND, body, extension=_sent(topic, queue, now_ms))
    return answer


async def send_batch(connection: Connection, topic: str, queue: int, bodies: Sequence[bytes], now_ms: int) -> Answer:
    """Sends several messages to a queue in one request; the offset in the answer is that of the first one.

    Args:
        connection: The connection to a broker.
        topic: The topic.
        queue: The number of the queue.
        bodies: The bodies of the messages.
        now_ms: The time of their birth, in milliseconds since 1970.
    """
    fields = _sent(topic, queue, now_ms) | {"m": "true"}
    answer, _ = await connection.call_bytes(SEND_BATCH, b"".join(map(in_batch, bodies)), extension=fields)
    return answer


def in_batch(body: bytes) -> bytes:
    """Returns a message as a batch has it. Source: `MessageDecoder.encodeMessage`."""
    size = IN_BATCH.size + len(body) + len(NO_PROPERTIES)
    return IN_BATCH.pack(size, 0, 0, 0, len(body)) + body + NO_PROPERTIES


async def send_half(connection: Connection, topic: str, queue: int, body: bytes, now_ms: int, *, name: str) -> Answer:
    """Sends a half message: consumers get it after its transaction is committed.

    Args:
        connection: The connection to a broker.
        topic: The topic.
        queue: The number of the queue.
        body: The body of the message.
        now_ms: The time of its birth, in milliseconds since 1970.
        name: The id of the transaction.
    """
    properties = "".join(
        f"{key}\x01{value}\x02" for key, value in [("TRAN_MSG", "true"), ("PGROUP", GROUP), ("UNIQ_KEY", name)]
    )
    fields = _sent(topic, queue, now_ms) | {"f": str(HALF), "i": properties}
    answer, _ = await connection.call_bytes(SEND, body, extension=fields)
    return answer


async def end_transaction(connection: Connection, topic: str, half: Answer, name: str, *, commits: bool) -> Answer:
    """Ends a transaction.

    Args:
        connection: The connection to a broker.
        topic: The topic of the message.
        half: The answer to the half message.
        name: The id of the transaction.
        commits: Whether it is committed, and not rolled back.

    Raises:
        NoAnswer: The answer to the half message does not say where it is.
    """
    message = half.extension.get("msgId", "")
    if not MESSAGE_ID.fullmatch(message):
        raise NoAnswer(f"expected the id of a message in hexadecimal digits, found {message[:100]!r}")
    fields = {
        "topic": topic,
        "producerGroup": GROUP,
        "tranStateTableOffset": str(_from_zero(half.extension, "queueOffset")),
        "commitLogOffset": str(int(message[-16:], 16)),
        "commitOrRollback": str(COMMITS if commits else ROLLS_BACK),
        "fromTransactionCheck": "false",
        "msgId": message,
        "transactionId": name,
    }
    return await connection.call(END_TRANSACTION, None, extension=fields)


def _sent(topic: str, queue: int, now_ms: int) -> dict[str, str]:
    """Returns the fields of a send."""
    return {
        "a": GROUP, "b": topic, "c": "TBW102", "d": "4", "e": str(queue), "f": str(PLAIN), "g": str(now_ms), "h": "0", "i": "",
        "j": "0", "k": "false", "m": "false", "n": BROKER,
    }  # fmt: skip


def offset_of(answer: Answer, queue: int) -> int:
    """Returns the offset that a broker gave to a message.

    Raises:
        NoAnswer: The answer has no offset, or names another queue.
    """
    answered = _from_zero(answer.extension, "queueId")
    if answered != queue:
        raise NoAnswer(f"expected an offset of the queue {queue}, found one of the queue {answered}")
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
        NoAnswer: The messages are not those of this queue from this offset on, without a gap.
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
        raise _refusal(answer)
    end = _from_zero(answer.extension, "maxOffset")
    records = list(records_in(body)) if answer.status == SUCCESS else []
    if not records and offset < end:
        raise _refusal(answer)  # e.g. the queue has the place of a message that the log lacks
    for expected, record in zip(itertools.count(offset), records, strict=False):
        if (record.topic, record.queue, record.offset) != (topic, queue, expected):
            raise NoAnswer(
                f"expected the message {expected} of the queue {queue} of {topic}, found the message {record.offset} of the "
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
        NoAnswer: The answer has no epochs.
    """
    body = _succeeded(await connection.call(EPOCHS, None, extension={})).body
    listed = body.get("epochList")
    if not isinstance(listed, list) or not all(isinstance(entry, dict) for entry in listed):
        raise NoAnswer(f"expected a list of epochs, found {str(body)[:100]}")
    return Epochs(
        broker=integer(body.get("brokerId")),
        epochs=[(integer(entry.get("epoch")), integer(entry.get("startOffset"))) for entry in listed],
        end=integer(body.get("maxOffset")),
    )


async def commit_log_end(connection: Connection) -> int:
    """Returns the end of the commit log of a broker (28); with DLedger, the end of what is committed.

    Raises:
        Refused: It answers with an error.
        NoAnswer: The answer has no end.
    """
    table = _succeeded(await connection.call(RUNTIME, None, extension={})).body.get("table")
    end = table.get("commitLogMaxOffset") if isinstance(table, dict) else None
    if not isinstance(end, str):
        raise NoAnswer(f"expected the text commitLogMaxOffset in a table, found {str(table)[:100]}")
    return number(end)


async def is_master(connection: Connection) -> bool:
    """Returns whether a broker has the id of a master in its configuration (26), which it changes with its role.

    Raises:
        Refused: It answers with an error.
        NoAnswer: The configuration has no id.
    """
    answer, body = await connection.call_bytes(CONFIGURATION, b"", extension={})
    if answer.status != SUCCESS:
        raise _refusal(answer)
    lines = body[:MOST_CONFIGURATION].decode(errors="replace").splitlines()
    broker_id = next((line.partition("=")[2] for line in lines if line.startswith("brokerId=")), None)
    if broker_id is None:
        raise NoAnswer(f"expected a configuration with the line brokerId=, found {lines[:3]}")
    return broker_id.strip() == MASTER


async def replication(connection: Connection) -> Replication:
    """Returns what a broker knows of its replication.

    Raises:
        Refused: It answers with an error.
        NoAnswer: The answer does not say whether it is a master.
    """
    body = _succeeded(await connection.call(REPLICATION, None, extension={})).body
    leads, of_slave = body.get("master"), body.get("haClientRuntimeInfo")
    if not isinstance(leads, bool):
        raise NoAnswer(f"expected whether the broker is a master, found {str(body)[:100]}")
    master = of_slave.get("masterAddr") if isinstance(of_slave, dict) and not leads else None
    return Replication(
        leads=leads,
        master=master if isinstance(master, str) else None,
        in_sync=integer(body.get("inSyncSlaveNums")) if leads else 0,
    )


def _succeeded(answer: Answer) -> Answer:
    if answer.status != SUCCESS:
        raise _refusal(answer)
    return answer


def _from_zero(fields: Mapping[str, str], name: str) -> int:
    """Returns a field that is a whole number from 0 on."""
    value = number_in(fields, name)
    if fields[name].startswith("-"):
        raise NoAnswer(f"expected a whole number from 0 on as {name}, got {fields[name]}")
    return value


def _refusal(answer: Answer) -> Refused:
    """Returns the error of an answer that is not success. Its code is the number."""
    return Refused(str(answer.status), f"code {answer.status}: {answer.remark[:200] or 'no remark'}")
