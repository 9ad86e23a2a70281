"""Requests to one process of Kafka: what a broker knows of a partition, its replica's records, and the view of a controller.

The library of the client chooses the broker that it asks. A status and a final read are about one process, so these requests go
over a connection of Labrys. The versions of the requests to brokers are the last ones before the compact encoding; Kafka 4
answers them. Controllers need a fetch that is compact.

Source: Kafka's protocol guide (Metadata 7, ListOffsets 2, Fetch 11 and 13, record batch 2), KIP-392, with which a replica that
does not lead answers a fetch of a consumer, and KIP-595 on fetches among controllers.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from clusters.kit.answers import NoAnswer, RefusedByCode
from clusters.kit.exchange import Exchange

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Iterator, Sequence

PORT: Final = 9092
CONTROLLER_PORT: Final = 9093
MAX_ANSWER_BYTES: Final = 64 << 20
FETCH_BYTES: Final = 1 << 20
FETCH: Final = (1, 11)
FETCH_OF_CONTROLLERS: Final = (1, 13)
METADATA_LOG: Final = bytes(15) + b"\x01"  # the id of the topic that is the log of the controllers
CURRENT_LEADER: Final = 1  # the tag of this field
LIST_OFFSETS: Final = (2, 2)
METADATA: Final = (3, 7)
NO_ERROR: Final = 0
OFFSET_OUT_OF_RANGE: Final = 1
NOT_LEADER_OR_FOLLOWER: Final = 6
CONSUMER: Final = -1
DEBUGGER: Final = -2  # asks a replica for the end of its log, whether it leads or not
LATEST: Final = -1
BATCH_HEADER: Final = struct.Struct(">qiibIhiqqqhii")
MAGIC: Final = 2
COMPRESSION: Final = 0x07
CONTROL: Final = 0x20


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """What a broker knows of a partition.

    Attributes:
        leader: The id of the leader; -1 if it knows none.
        epoch: The epoch of the leader.
        in_sync: The ids of the in-sync replicas.
    """

    leader: int
    epoch: int
    in_sync: Sequence[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """The answer to a fetch.

    Attributes:
        high_watermark: The offset below which the replica knows all records to be committed.
        records: The offset and the value of each record.
        end: The offset behind the last batch; that of the fetch if there is none.
    """

    high_watermark: int
    records: Sequence[tuple[int, bytes]]
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Quorum:
    """What a controller knows of the controllers at one moment.

    Attributes:
        leader: The id of the leader; None if it knows none.
        epoch: The epoch.
    """

    leader: int | None
    epoch: int


class Connection(Exchange):
    """A connection to one process, which opens with the first request."""

    def __init__(self, address: str, port: int) -> None:
        """Connects with the first request."""
        super().__init__(address, port)
        self._requests = 0

    async def _ask(self, request: tuple[int, int], body: bytes, *, compact: bool = False) -> _Answer:
        self._requests += 1
        number = self._requests
        sent = struct.pack(">hhi", *request, number) + _text("labrys") + b"\0" * compact + body

        async def conversation(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> _Answer:
            writer.write(struct.pack(">i", len(sent)) + sent)
            (size,) = struct.unpack(">i", await reader.readexactly(4))
            if not 4 <= size <= MAX_ANSWER_BYTES:
                raise NoAnswer(f"expected an answer of 4 to {MAX_ANSWER_BYTES} bytes, found {size}")
            answer = _Answer(await reader.readexactly(size))
            if answer.number("i") != number:
                raise NoAnswer("expected the answer to this request, found another one")
            if compact:
                answer.tags()
            return answer

        return await self.converse(conversation)


class Broker(Connection):
    """A connection to one broker."""

    def __init__(self, address: str, port: int = PORT) -> None:
        super().__init__(address, port)

    async def brokers(self) -> int:
        """Returns the number of brokers that the broker knows."""
        answer = await self._ask(METADATA, b"\0\0\0\0" + b"\0")
        answer.number("i")
        return sum(1 for _ in answer.brokers())

    async def partition(self, topic: str) -> Partition | None:
        """Returns what the broker knows of the first partition of a topic; None if it does not know the topic.

        Raises:
            NotSent: The broker accepts no connection.
            NoAnswer: There is no readable answer.
        """
        answer = await self._ask(METADATA, struct.pack(">i", 1) + _text(topic) + b"\0")
        answer.number("i")
        for _ in answer.brokers():
            pass
        answer.text()
        answer.number("i")
        for _ in range(answer.number("i")):
            answer.number("h")
            answer.text()
            answer.number("b")
            for _ in range(answer.number("i")):
                _, _, leader, epoch = (answer.number(form) for form in "hiii")
                _, in_sync, _ = answer.numbers(), answer.numbers(), answer.numbers()
                return Partition(leader=leader, epoch=epoch, in_sync=in_sync)
        return None

    async def end(self, topic: str, *, replica: int = CONSUMER) -> int:
        """Returns the end of the first partition: for a consumer the high watermark, for `DEBUGGER` the end of the log.

        Raises:
            NotSent: The broker accepts no connection.
            NoAnswer: There is no readable answer.
            RefusedByCode: It does not lead, or has no replica.
        """
        body = struct.pack(">ibi", replica, 0, 1) + _text(topic) + struct.pack(">iiq", 1, 0, LATEST)
        answer = await self._ask(LIST_OFFSETS, body)
        _throttle, _topics, _, _partitions, _, code, _time, offset = (
            answer.number("i"), answer.number("i"), answer.text(),
            *(answer.number(form) for form in "iihqq"),
        )  # fmt: skip
        _check(code)
        return offset

    async def high_watermark(self, topic: str) -> int:
        """Returns the offset below which the replica of this broker knows all records to be committed.

        Raises:
            NotSent: The broker accepts no connection.
            NoAnswer: There is no readable answer.
            RefusedByCode: The broker has no replica.
        """
        return (await self.fetch(topic, 0, most_bytes=1)).high_watermark

    async def fetch(self, topic: str, offset: int, *, most_bytes: int = FETCH_BYTES) -> Fetched:
        """Returns records of the first partition from an offset on, from the replica of this broker.

        A broker answers with one batch of records at least, however small `most_bytes` is (KIP-74).

        Raises:
            NotSent: The broker accepts no connection.
            NoAnswer: There is no readable answer.
            RefusedByCode: The replica does not have this offset, or the broker has no replica.
        """
        body = (
            struct.pack(">iiiibiii", CONSUMER, 0, 0, most_bytes, 0, 0, -1, 1)
            + _text(topic)
            + struct.pack(">iiiqqi", 1, 0, -1, offset, -1, most_bytes)
            + struct.pack(">i", 0)
            + _text("")
        )
        answer = await self._ask(FETCH, body)
        answer.number("i")
        _check(answer.number("h"))
        answer.number("i")
        if answer.number("i") != 1:
            raise NoAnswer("expected records of one topic, found none")
        answer.text()
        _, _, code, high_watermark, _, _ = (answer.number(form) for form in "iihqqq")
        _check(code)
        for _ in range(answer.number("i")):
            answer.number("q"), answer.number("q")
        answer.number("i")
        batches = list(_batches(answer.take(answer.number("i"))))
        return Fetched(
            high_watermark=high_watermark,
            records=[record for _, some in batches for record in some if record[0] >= offset],
            end=max((end for end, _ in batches), default=offset),
        )


class Controller(Connection):
    """A connection to one controller."""

    def __init__(self, address: str, port: int = CONTROLLER_PORT) -> None:
        super().__init__(address, port)

    async def quorum(self) -> Quorum:
        """Returns the leader and the epoch that the controller knows.

        It is the refusal of a fetch with an old epoch, which has both of one moment. Such a fetch changes nothing.

        Raises:
            NotSent: The controller accepts no connection.
            NoAnswer: There is no readable answer.
        """
        body = (
            struct.pack(">iiiibiib", CONSUMER, 0, 0, 1, 0, 0, -1, 2)
            + METADATA_LOG
            + struct.pack(">biiqiqibb", 2, 0, 0, 0, 0, -1, 1, 0, 0)
            + b"\x01\x01\0"
        )
        answer = await self._ask(FETCH_OF_CONTROLLERS, body, compact=True)
        answer.number("i")
        code = answer.number("h")
        answer.number("i")
        if code != NO_ERROR or answer.count() != 1:
            raise NoAnswer(f"expected an answer about the log of the controllers, found error {code}")
        answer.take(len(METADATA_LOG))
        if answer.count() != 1:
            raise NoAnswer("expected an answer about one partition")
        _, code, *_ = (answer.number(form) for form in "ihqqq")
        for _ in range(answer.count()):
            answer.number("q"), answer.number("q"), answer.tags()
        answer.number("i")
        answer.take(answer.count())
        for tag, data in answer.tags():
            if tag == CURRENT_LEADER:
                reply = _Answer(data)
                leader, epoch = reply.number("i"), reply.number("i")
                return Quorum(leader=leader if leader >= 0 else None, epoch=epoch)
        raise NoAnswer(f"expected the leader of the controllers, found error {code}")


class _Answer:
    """The bytes of an answer, read from the front."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def number(self, form: str) -> int:
        """Reads a number: `b`, `h`, `i` or `q`, with 1, 2, 4 or 8 bytes; `B` has no sign."""
        try:
            (value,) = struct.unpack_from(f">{form}", self._data, self._at)
        except struct.error as error:
            raise NoAnswer(f"expected a longer answer, found {len(self._data)} bytes") from error
        self._at += struct.calcsize(form)
        return int(value)

    def take(self, size: int) -> bytes:
        """Reads so many bytes; none if the size is -1."""
        piece = self._data[self._at : self._at + max(0, size)]
        if len(piece) < size:
            raise NoAnswer(f"expected {size} bytes, found {len(piece)}")
        self._at += len(piece)
        return piece

    def text(self) -> bytes:
        """Reads a text."""
        return self.take(self.number("h"))

    def numbers(self) -> list[int]:
        """Reads a list of numbers."""
        return [self.number("i") for _ in range(self.number("i"))]

    def whole(self) -> int:
        """Reads a number without a sign, of seven bits in each byte."""
        value = 0
        for shift in range(0, 35, 7):
            byte = self.number("B")
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        raise NoAnswer("expected a number of at most five bytes, found a longer one")

    def count(self) -> int:
        """Reads the length of a compact list or of compact bytes; 0 if there is none."""
        return max(0, self.whole() - 1)

    def tags(self) -> list[tuple[int, bytes]]:
        """Reads the tagged fields behind a structure, with the bytes of each."""
        return [(self.whole(), self.take(self.whole())) for _ in range(self.whole())]

    def brokers(self) -> Iterator[int]:
        """Reads the list of brokers, and yields the id of each."""
        for _ in range(self.number("i")):
            broker = self.number("i")
            self.text()
            self.number("i")
            self.text()
            yield broker


def _batches(data: bytes) -> Iterator[tuple[int, list[tuple[int, bytes]]]]:
    """Yields the offset behind each whole batch, and its records. The last batch of a fetch may be cut off."""
    at = 0
    while at + BATCH_HEADER.size <= len(data):
        base, length, _, magic, _, attributes, last, *_, count = BATCH_HEADER.unpack_from(data, at)
        if magic != MAGIC or attributes & COMPRESSION:
            raise NoAnswer(f"expected a batch of format {MAGIC} without compression, found format {magic}")
        if length < BATCH_HEADER.size - 12:
            raise NoAnswer(f"expected a batch with a header, found {length} bytes")
        if at + 12 + length > len(data):
            return
        records = [] if attributes & CONTROL else list(_records(data, at + BATCH_HEADER.size, base, count))
        yield base + last + 1, records
        at += 12 + length


def _records(data: bytes, at: int, base: int, count: int) -> Iterator[tuple[int, bytes]]:
    try:
        for _ in range(count):
            size, at = _varint(data, at)
            end = at + size
            _, position = _varint(data, at + 1)  # behind the attributes: the time
            more, position = _varint(data, position)
            key, position = _varint(data, position)
            value, position = _varint(data, position + max(0, key))
            yield base + more, data[position : position + max(0, value)]
            at = end
    except IndexError:
        raise NoAnswer(f"expected {count} records in the batch at {base}, found fewer") from None


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Reads a number of seven bits in each byte, with its sign in the lowest bit. Returns it, and the place behind it."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), at


def _text(text: str) -> bytes:
    data = text.encode()
    return struct.pack(">h", len(data)) + data


def _check(code: int) -> None:
    if code != NO_ERROR:
        raise RefusedByCode(code)
