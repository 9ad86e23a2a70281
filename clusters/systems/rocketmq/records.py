"""The messages in the answer to a pull: the records of a broker's commit log, one after the other.

A broker writes the records, so they are hostile input. Every length is checked against the bytes that are there. The time and
the memory are linear in the length of the answer.

| field | bytes |
|---|---|
| size of the record, magic, checksum of the body, queue, flag | 4 each |
| offset in the queue, offset in the commit log | 8 each |
| system flag | 4 |
| time of birth, host of birth | 8, and 8 or 20 |
| time of storing, host that stored it | 8, and 8 or 20 |
| number of deliveries, offset of the prepared transaction | 4, 8 |
| body: length, bytes | 4, ... |
| topic: length, bytes | 1 or 2, ... |
| properties: length, bytes | 2, ... |

Source: RocketMQ 5.3.3, `MessageDecoder` and `MessageVersion`. Bits of the system flag tell of hosts with IPv6 addresses.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from clusters.kit.answers import NoAnswer

if TYPE_CHECKING:
    from collections.abc import Iterator

LENGTH: Final = struct.Struct(">i")
HEAD: Final = struct.Struct(">iiiiiqqi")
LENGTH_OF_TOPIC: Final = {
    -626843481: struct.Struct(">B"),
    -626843477: struct.Struct(">H"),
}  # by the magic: version 1 and 2
LENGTH_OF_PROPERTIES: Final = struct.Struct(">H")
COMPRESSED: Final = 1
BORN_V6: Final = 1 << 4
STORED_V6: Final = 1 << 5
HOST_BYTES: Final = 8
HOST_V6_BYTES: Final = 20
OTHER_BYTES: Final = 8 + 8 + 4 + 8  # both times, the number of deliveries, the offset of the prepared transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A message of a queue.

    Attributes:
        queue: The number of the queue.
        offset: Its offset in the queue.
        place: Its offset in the commit log, in bytes.
        size: The size of its record, in bytes.
        topic: The topic.
        body: The body.
    """

    queue: int
    offset: int
    place: int
    size: int
    topic: str
    body: bytes


def records_in(data: bytes) -> Iterator[Record]:
    """Yields the messages in the body of an answer, in its order.

    Raises:
        NoAnswer: The bytes are not a sequence of whole records.
    """
    at = 0
    while at < len(data):
        left = len(data) - at
        size = _unpacked(LENGTH, data, at)[0] if left >= LENGTH.size else 0
        if not HEAD.size <= size <= left:
            raise NoAnswer(f"expected a record of {HEAD.size} to {left} bytes at {at}, found a size of {size}")
        yield _record(data[at : at + size], at)
        at += size


def _record(data: bytes, where: int) -> Record:
    _, magic, _, queue, _, offset, position, flag = _unpacked(HEAD, data, 0)
    if magic not in LENGTH_OF_TOPIC:
        raise NoAnswer(f"expected a record of version 1 or 2 at {where}, found the magic {magic}")
    if flag & COMPRESSED:
        raise NoAnswer(f"expected a body that is not compressed at {where}; no client of this test compresses")
    at = HEAD.size + OTHER_BYTES
    at += HOST_V6_BYTES if flag & BORN_V6 else HOST_BYTES
    at += HOST_V6_BYTES if flag & STORED_V6 else HOST_BYTES
    body, at = _bytes(LENGTH, data, at)
    topic, at = _bytes(LENGTH_OF_TOPIC[magic], data, at)
    _, at = _bytes(LENGTH_OF_PROPERTIES, data, at)
    if at != len(data):
        raise NoAnswer(f"expected a record of {len(data)} bytes at {where}, found fields of {at} bytes")
    name = topic.decode(errors="replace")
    return Record(queue=queue, offset=offset, place=position, size=len(data), topic=name, body=body)


def _bytes(length: struct.Struct, data: bytes, at: int) -> tuple[bytes, int]:
    """Returns bytes behind their length, and the place behind them."""
    begin = at + length.size
    size = _unpacked(length, data, at)[0]
    if not 0 <= size <= len(data) - begin:
        raise NoAnswer(f"expected a field of 0 to {len(data) - begin} bytes, found a length of {size}")
    return data[begin : begin + size], begin + size


def _unpacked(form: struct.Struct, data: bytes, at: int) -> tuple[int, ...]:
    try:
        return form.unpack_from(data, at)
    except struct.error:
        raise NoAnswer(f"expected {form.size} bytes at {at} of a record, found {max(0, len(data) - at)}") from None
