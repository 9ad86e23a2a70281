"""Writes Jepsen's test.jepsen, for tests: a writer of Fressian and of the file of blocks, independent of the reader.

It follows the public documentation: the codes of Fressian, the handlers of clojure.data.fressian and of jepsen.store.fressian,
and the layout of jepsen.store.format. No file that Jepsen wrote was at hand.
"""

from __future__ import annotations

import struct
import zlib
from typing import Any, NamedTuple

SHORT_LIST, LIST, SHORT_TEXT, TEXT_CHUNK, TEXT = 228, 236, 218, 226, 227
CHUNK = 65_536 // 4  # of a text; Fressian's own writer cuts at 64 KiB


class Name(NamedTuple):
    """A keyword."""

    text: str


class Entry(NamedTuple):
    """An entry of a map: a tuple of an independent key and a value."""

    key: Any
    value: Any


class Reference(NamedTuple):
    """A reference to a block."""

    block: int


class Op(NamedTuple):
    """An operation as Jepsen 0.3 writes it."""

    number: int
    time: int
    type: str
    process: Any
    f: str
    value: Any
    more: dict[Any, Any] | None = None


class Writer:
    """Writes values one after the other; those that are cached are written once."""

    def __init__(self) -> None:
        """Begins with nothing written."""
        self.data = bytearray()
        self._cached: list[Any] = []
        self._tags: list[str] = []

    def write(self, value: Any, *, cached: bool = False) -> Writer:
        """Writes a value."""
        if cached and self._again((type(value), value)):
            return self
        if value is None or isinstance(value, bool):
            self.data.append({None: 247, True: 245, False: 246}[value])
        elif isinstance(value, int):
            self._integer(value) if -(2**63) <= value < 2**63 else self._big(value)
        elif isinstance(value, float):
            self.data += b"\xfb" if value == 0 else b"\xfc" if value == 1 else b"\xfa" + struct.pack(">d", value)
        elif isinstance(value, Name):
            namespace, slash, name = value.text.rpartition("/")
            self.data.append(202)
            self.write(namespace if slash else None, cached=bool(slash)).write(name, cached=True)
        elif isinstance(value, Op | Entry | Reference):
            self._tagged(value)
        else:
            self._large(value)
        return self

    def _again(self, key: tuple[type, Any]) -> bool:
        """Refers to a value that was written before, or begins to write it; returns whether it was."""
        if key not in self._cached:
            self._cached.append(key)
            self.data.append(205)
            return False
        index = self._cached.index(key)
        if index < 32:
            self.data.append(128 + index)
        else:
            self.data.append(204)
            self._integer(index)
        return True

    def _tagged(self, value: Op | Entry | Reference) -> None:
        if isinstance(value, Op):
            self._operation(value)
        elif isinstance(value, Entry):
            self.tag("map-entry", 2).write(value.key).write(value.value)
        else:
            self.tag("block-ref", 1).write(value.block)

    def tag(self, tag: str, components: int) -> Writer:
        """Writes the tag of a value that has no code of its own."""
        if tag not in self._tags:
            self._tags.append(tag)
            self.data.append(239)
            return self.write(tag).write(components)
        index = self._tags.index(tag)
        self.data += bytes([160 + index]) if index < 16 else b"\xf0"
        if index >= 16:
            self._integer(index)
        return self

    def _large(self, value: Any) -> None:
        if isinstance(value, str):
            self._text(value)
        elif isinstance(value, list | tuple):
            self._list(value)
        elif isinstance(value, dict):
            self.data.append(192)
            self._list([member for pair in value.items() for member in pair])
        elif isinstance(value, set):
            self.tag("persistent-hash-set", 1)
            self._list(sorted(value)) if value else self.write(None)
        else:
            raise TypeError(type(value))

    def _operation(self, op: Op) -> None:
        self.tag("jepsen.history.Op", 7).write(op.number).write(op.time).write(Name(op.type), cached=True)
        self.write(op.process).write(Name(op.f), cached=True).write(op.value).write(op.more)

    def _list(self, members: list[Any] | tuple[Any, ...]) -> None:
        if len(members) < 8:
            self.data.append(SHORT_LIST + len(members))
        else:
            self.data.append(LIST)
            self._integer(len(members))
        for member in members:
            self.write(member)

    def _text(self, text: str) -> None:
        # Fressian writes each half of a character beyond the basic plane by itself.
        units = struct.unpack(f"<{len(text.encode('utf-16-le')) // 2}H", text.encode("utf-16-le"))
        parts = [units[at : at + CHUNK] for at in range(0, len(units), CHUNK)] or [()]
        for number, part in enumerate(parts, 1):
            data = "".join(map(chr, part)).encode("utf-8", "surrogatepass")
            if len(data) < 8:
                self.data.append(SHORT_TEXT + len(data))
            else:
                self.data.append(TEXT if number == len(parts) else TEXT_CHUNK)
                self._integer(len(data))
            self.data += data

    def _integer(self, value: int) -> None:
        bits = (value if value >= 0 else ~value).bit_length()
        if -1 <= value < 64:
            self.data.append(value % 256)
            return
        for most, zero, size in ((12, 80, 1), (19, 104, 2), (25, 114, 3), (33, 118, 4), (41, 122, 5), (49, 126, 6)):
            if bits <= most:
                self.data.append(zero + (value >> (8 * size)))
                self.data += (value % (1 << (8 * size))).to_bytes(size)
                return
        self.data += b"\xf8" + struct.pack(">q", value)

    def _big(self, value: int) -> None:
        data = value.to_bytes(value.bit_length() // 8 + 1, signed=True)
        self.data += bytes([198, *([208 + len(data)] if len(data) < 8 else [217, len(data)])]) + data


def fressian(*values: Any) -> bytes:
    """Returns values in Fressian."""
    writer = Writer()
    for value in values:
        writer.write(value)
    return bytes(writer.data)


def block(kind: int, data: bytes) -> bytes:
    """Returns a block with its header."""
    length = 8 + 4 + 16 + len(data)
    head, tail = struct.pack(">q", length), struct.pack(">h", kind) + bytes(14)
    checksum = zlib.crc32(head + bytes(4) + tail, zlib.crc32(data))
    return head + struct.pack(">I", checksum) + tail + data


def block_file(ops: list[Any], *, chunk: int = 16_384, version: int = 1, more: dict[Any, Any] | None = None) -> bytes:
    """Returns a file as a test of Jepsen leaves it after its run.

    Args:
        ops: The events.
        chunk: How many of them a block has.
        version: The version of the file; 0 has all events in one value.
        more: Further members of the test.
    """
    chunks = [ops[at : at + chunk] for at in range(0, len(ops), chunk)]
    test = {Name("name"): "t", **(more or {}), Name("history"): Reference(1)}
    blocks = {2: block(2, fressian(test))}
    if version == 0:
        blocks[1] = block(2, fressian(ops))
    else:
        blocks |= {number: block(4, fressian(*part)) for number, part in enumerate(chunks, 3)}
        places = [struct.pack(">qi", chunk * index, index + 3) for index in range(len(chunks))]
        blocks[1] = block(5, struct.pack(">q", len(ops)) + b"".join(places))
    return of_blocks(blocks, root=2, version=version)


def of_blocks(blocks: dict[int, bytes], *, root: int, version: int = 1) -> bytes:
    """Returns a file of blocks by their numbers."""
    places, at, body = {}, 18, b""
    for number, content in blocks.items():
        places[number] = at
        body += content
        at += len(content)
    index = struct.pack(">i", root) + b"".join(struct.pack(">iq", *entry) for entry in places.items())
    return b"JEPSEN" + struct.pack(">iq", version, at) + body + block(1, index)
