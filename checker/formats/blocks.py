"""Reads the events in Jepsen's test.jepsen: a file of blocks, each with its length, its checksum and its kind.

The rule: each block that is read has the right checksum, or the file is refused. A block that the file lists twice is refused
too, so the time is proportional to the length of the file. Only the history is read, and not the rest of the test.

Layout (source: the documentation of jepsen.store.format). All integers are signed and big-endian:

    "JEPSEN"  version: 32 bits  place of the index: 64 bits  blocks ...

A block has a header of 28 bytes: its length with the header (64 bits), a CRC32 of the data and then of the header without the
checksum (32 bits), its kind (16 bits), and 14 bytes of zeros. The documentation does not mention these; the code writes them.

- Kind 1, the index: the number of the root block, and pairs of a block's number (32 bits) and its place (64 bits).
- Kind 2: one value in Fressian. The root is such a block, with the map of the test. Its `:history` refers to a block.
- Kind 3: the number of the block that continues a map (32 bits), and the map.
- Kind 4: values in Fressian, one after the other.
- Kind 5: the number of all events (64 bits), and pairs of the number of a first event (64 bits) and its block (32 bits).
"""

from __future__ import annotations

import zlib
from struct import Struct
from typing import TYPE_CHECKING, ClassVar, Final

from checker.edn.lines import Row
from checker.edn.values import EdnMap, Keyword, Tagged
from checker.formats.errors import BadHistory
from checker.formats.foreign import MEMBERS, ForeignEvents, Syntax
from checker.formats.fressian import BLOCK, FressianReader
from checker.formats.texts import shown
from harness.memory import Room

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

    from checker.edn.values import EdnValue

MAGIC: Final = b"JEPSEN"
VERSIONS: Final = (0, 1)
_HEADER: Final = Struct(">6siq")
_BLOCK: Final = Struct(">qIh14s")
_ROOT: Final = Struct(">i")
_PLACE: Final = Struct(">iq")
_COUNT: Final = Struct(">q")
_CHUNK: Final = Struct(">qi")
_INDEX, _FRESSIAN, _PARTIAL_MAP, _STREAM, _BIG_VECTOR = range(1, 6)
_DEEPEST: Final = 8  # of big vectors in each other
_BYTES_OF_VALUES: Final = 40  # of memory, for a byte of Fressian
_HISTORY: Final = Keyword("history")


class BlockEvents(ForeignEvents):
    """Yields the events of a file of blocks. Their lines are their numbers, from 1."""

    SYNTAX: ClassVar[Syntax] = Syntax(members=tuple(map(Keyword, MEMBERS)))

    def __init__(self, file: BinaryIO, name: str, *, keyed: bool | None, transactional: bool = False) -> None:
        """Prepares to read.

        Args:
            file: The file; its place can be changed.
            name: As in `ForeignEvents`.
            keyed: As in `ForeignEvents`.
            transactional: As in `ForeignEvents`.
        """
        super().__init__(name, keyed=keyed, transactional=transactional)
        self._blocks = _Blocks(file, name)

    def _rows(self) -> Iterator[tuple[int, Row]]:
        for number, form in enumerate(self._blocks.history(), 1):
            event = form.value if isinstance(form, Tagged) else form
            if not isinstance(event, EdnMap):
                raise self._bad(number, f"expected the map of an event, found {shown(form)}")
            yield number, Row(*event.columns())


class _Blocks:
    """The blocks of a file."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        self._name = name
        self._file = file
        self._size = file.seek(0, 2)
        self._room = Room(name)
        self._places: dict[int, int] = {}
        self._read: set[int] = set()  # the numbers of the blocks that were read

    def history(self) -> Iterator[EdnValue]:
        """Yields the forms of the events.

        Raises:
            BadHistory: The file is damaged, or has no history.
        """
        history = self._member(self._index(), _HISTORY)
        if not isinstance(history, Tagged) or history.tag != BLOCK:
            raise self._wrong(f"expected :history in the test, a reference to a block, found {shown(history)}")
        yield from self._events(history.value, 0)

    def _index(self) -> int:
        """Reads the places of the blocks, and returns the number of the root."""
        header = self._bytes_at(0, _HEADER.size, "the header of the file")
        magic, version, offset = _HEADER.unpack(header)
        if magic != MAGIC or version not in VERSIONS:
            raise self._wrong(f"expected {MAGIC.decode()} and a version of {VERSIONS}, found {header[:10]!r}")
        if not offset:
            raise self._wrong("the file has no index; the test ended before it wrote one")
        kind, data = self._block_at(offset, "the index")
        if kind != _INDEX or (len(data) - _ROOT.size) % _PLACE.size:
            raise self._wrong(f"expected an index at byte {offset}, found a block of the kind {kind}")
        self._places = dict(_PLACE.iter_unpack(data[_ROOT.size :]))
        return int(_ROOT.unpack_from(data)[0])

    def _member(self, number: int, wanted: Keyword) -> EdnValue:
        """Returns a member of the map in a block, or in the blocks that continue it; None if there is none."""
        while number:
            kind, data = self._block(number)
            rest = 0
            if kind == _PARTIAL_MAP and len(data) >= _ROOT.size:
                [rest], data = _ROOT.unpack_from(data), data[_ROOT.size :]
            elif kind != _FRESSIAN:
                raise self._wrong(f"expected the map of the test in block {number}, found the kind {kind}")
            value = self._value(FressianReader(data), number)
            if not isinstance(value, EdnMap):
                raise self._wrong(f"expected the map of the test in block {number}, found {shown(value)}")
            if wanted in value:
                return value[wanted]
            number = rest
        return None

    def _events(self, number: int, depth: int) -> Iterator[EdnValue]:
        """Yields the forms of the events in a block.

        Args:
            number: The block.
            depth: The number of blocks around it.
        """
        kind, data = self._block(number)
        if kind == _BIG_VECTOR and depth < _DEEPEST:
            yield from self._chunks(number, data, depth)
        elif kind == _STREAM:
            reader = FressianReader(data)
            while reader.has_more:
                yield self._value(reader, number)
        elif kind == _FRESSIAN:
            events = self._value(FressianReader(data), number)
            if events is None:
                return
            if not isinstance(events, tuple):
                raise self._wrong(f"expected the events in block {number}, found {shown(events)}")
            yield from events
        else:
            raise self._wrong(f"expected the events in block {number}, found the kind {kind}")

    def _chunks(self, number: int, data: bytes, depth: int) -> Iterator[EdnValue]:
        if len(data) < _COUNT.size or (len(data) - _COUNT.size) % _CHUNK.size:
            raise self._wrong(f"expected the parts of the history in block {number}, found {len(data)} bytes")
        [count] = _COUNT.unpack_from(data)
        seen = 0
        for begin, chunk in _CHUNK.iter_unpack(data[_COUNT.size :]):
            if begin != seen:
                raise self._wrong(f"expected block {chunk} to begin with event {seen} of block {number}, found {begin}")
            for event in self._events(chunk, depth + 1):
                seen += 1
                yield event
        if seen != count:
            raise self._wrong(f"expected {count} events in block {number}, found {seen}")

    def _block(self, number: EdnValue) -> tuple[int, bytes]:
        offset = self._places.get(number) if isinstance(number, int) else None
        if offset is None:
            raise self._wrong(f"expected a block of the index, found a reference to {shown(number)}")
        if number in self._read:
            raise self._wrong(f"expected each block once, found a second reference to block {number}")
        self._read.add(number)
        return self._block_at(offset, f"block {number}")

    def _block_at(self, offset: int, what: str) -> tuple[int, bytes]:
        """Returns the kind and the data of a block."""
        header = self._bytes_at(offset, _BLOCK.size, f"the header of {what}")
        length, checksum, kind, rest = _BLOCK.unpack(header)
        size = length - _BLOCK.size
        if size < 0:
            raise self._wrong(
                f"expected a length of at least {_BLOCK.size} at byte {offset}, of {what}, found {length}"
            )
        if size <= self._size:
            self._room.hold(size * _BYTES_OF_VALUES, f"{what}, which is read as a whole,")
        data = self._bytes_at(offset + _BLOCK.size, size, what)
        actual = zlib.crc32(_BLOCK.pack(length, 0, kind, rest), zlib.crc32(data))
        if actual != checksum:
            raise self._wrong(f"expected the checksum {checksum:08x} of {what} at byte {offset}, found {actual:08x}")
        return kind, data

    def _bytes_at(self, offset: int, size: int, what: str) -> bytes:
        if not 0 <= offset <= self._size - size:
            raise self._wrong(f"expected {size} bytes of {what} at byte {offset}, but the file has {self._size} bytes")
        self._file.seek(offset)
        return self._file.read(size)

    def _value(self, reader: FressianReader, number: int) -> EdnValue:
        try:
            return reader.value()
        except ValueError as error:
            raise self._wrong(f"block {number}: {error}") from None

    def _wrong(self, reason: str) -> BadHistory:
        return BadHistory(self._name, None, reason)
