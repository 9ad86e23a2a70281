"""Opens the source of a history: a file or standard input, plain or gzip. It gives the text in bounded lines.

The rule: for any bytes, the reader gets text, or the user gets an error with the line, and never a traceback. At most a piece
of a line is in memory at once.
"""

from __future__ import annotations

import codecs
import io
import shutil
import sys
import zlib
from collections import deque
from contextlib import closing, contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, BinaryIO, Final, Protocol, cast

from checker.formats.errors import BadHistory, BrokenSource, shown
from harness.console import below
from harness.memory import Room

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

STANDARD_INPUT = "-"
HEAD_BYTES = 1 << 12
UNPACK_LIMIT: Final = 64 << 30
KEPT_BYTES: Final = 1 << 20  # of a pipe, in memory
RESERVE_BYTES: Final = 1 << 30  # the space that a copy leaves in the temporary folder, if there is that much
_BUFFER_BYTES = 1 << 18
_GZIP = b"\x1f\x8b"
_LONGEST_CHARACTER = 4
_SHORT_LINE = 1 << 12


class Readable(Protocol):
    """What gives bytes."""

    def read(self, size: int, /) -> bytes:
        """Returns at most so many bytes; empty at the end."""


class TextLines(Protocol):
    """What gives lines as text, such as `Source`.

    Attributes:
        name: The name of the file in errors.
        line: The number of the last line, from 1.
    """

    name: str
    line: int

    def readline(self, size: int = -1, /) -> str:
        """Returns the next line, or at most `size` bytes of it; empty at the end."""
        ...


class ByteLines(Protocol):
    """What gives lines as bytes, such as `Source`.

    Attributes:
        name: The name of the file in errors.
        line: The number of the last line, from 1.
    """

    name: str
    line: int

    def readline_bytes(self, size: int) -> bytes:
        """Returns the next line, or the first `size` bytes of it and then the others; empty at the end."""
        ...


class Lines(ByteLines, TextLines, Protocol):
    """What gives lines as bytes and as text, such as `Source`."""


class _Rejoined(io.RawIOBase):
    """A stream whose beginning has been read already, complete again; it gives at most `most` bytes, if there is room."""

    def __init__(
        self, head: bytes, rest: Readable, most: int, too_many: Callable[[], BadHistory], room: Room | None = None
    ) -> None:
        super().__init__()
        self._room = room
        self._head = head
        self._rest = rest
        self._left = most
        self._too_many = too_many

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object, /) -> int:
        view = memoryview(cast("bytearray", buffer))
        part = self._head[: len(view)] or self._rest.read(len(view))
        self._head = self._head[len(part) :]
        self._left -= len(part)
        if self._left < 0:
            raise self._too_many()
        if self._room is not None:
            self._room.count(len(part))
        view[: len(part)] = part
        return len(part)


def room_bytes(folder: Path) -> int:
    """Returns how much a copy in a folder may take: the free space less a reserve."""
    free = shutil.disk_usage(folder).free
    return free - min(RESERVE_BYTES, free // 2)


class NoCopy(Exception):  # noqa: N818 - not an error: the source is read in the other way
    """There is no space for what a pipe gave, so it can be read only once more from its beginning."""


class _Kept:
    """A stream that can be read only once, such as a pipe, with a copy of what it gave, so that it can be read again.

    The copy is in memory. A longer one is in a temporary file, if `is_long` asks for it; else nothing more is kept.

    Attributes:
        is_long: Whether to keep more than `KEPT_BYTES`.
    """

    def __init__(self, stream: Readable) -> None:
        self.is_long = False
        self._stream = stream
        self._copy: io.BytesIO | IO[bytes] = io.BytesIO()
        self._size = 0
        self._most = KEPT_BYTES
        self._place = 0
        self._rest = b""  # what came after the copy, but did not fit into it
        self._keeps = True

    def again(self, *, last: bool) -> bool:
        """Begins again; returns False if not all is kept. Nothing more is kept after the last time."""
        if self._place > self._size:
            return False
        self._place = 0
        self._keeps = self._keeps and not last
        return True

    def read(self, size: int) -> bytes:
        """Returns the next bytes, at most so many; empty at the end.

        Raises:
            NoCopy: They do not fit into the copy.
        """
        if self._place < self._size:
            self._copy.seek(self._place)
            part = self._copy.read(min(size, self._size - self._place))
        elif self._rest:
            part, self._rest = self._rest[:size], self._rest[size:]
        else:
            part = self._stream.read(size)
            if self._keeps:
                self._keep(part)
        self._place += len(part)
        return part

    def _keep(self, part: bytes) -> None:
        size = self._size + len(part)
        if size > KEPT_BYTES and not self.is_long:
            self._keeps = False
            return
        try:
            if size > KEPT_BYTES and isinstance(self._copy, io.BytesIO):
                self._go_to_disk(self._copy.getvalue())
            if size <= self._most:
                self._copy.seek(self._size)
                _write(self._copy, part)
                self._size = size
                return
        except OSError:
            pass  # no space, or no folder: as if there were no room
        self._rest, self._keeps = part, False
        raise NoCopy

    def _go_to_disk(self, begun: bytes) -> None:
        from tempfile import TemporaryFile, gettempdir  # noqa: PLC0415 - only long pipes need it

        file = TemporaryFile(prefix="labrys-", buffering=0)  # noqa: SIM115 - closed in `close`
        _write(file, begun)
        self._copy, self._most = file, room_bytes(Path(gettempdir()))

    def close(self) -> None:
        """Deletes the copy."""
        self._copy.close()


def _write(file: io.BytesIO | IO[bytes], part: bytes) -> None:
    rest = memoryview(part)
    while rest:
        rest = rest[file.write(rest) :]


class Source:
    """An open source.

    Attributes:
        name: Its name, as the user gave it; `-` is standard input.
        compressed: Whether it is gzip.
        head: Its first bytes, uncompressed and without a byte order mark, enough to detect the format.
        line: The number of the last line, from 1; 0 before the first.
        room: The memory for it.
    """

    def __init__(self, name: str, stream: BinaryIO, unpack_limit: int | None = None) -> None:
        """Takes over an open stream and reads its head.

        Args:
            name: Its name, as the user gave it.
            stream: The bytes.
            unpack_limit: The maximum number of bytes to unpack or to copy; None: `UNPACK_LIMIT`, at most the free space for a
                copy.

        Raises:
            BadHistory: It is unreadable.
        """
        self.name = name
        self.unpack_limit = unpack_limit
        self._raw: BinaryIO | _Kept = stream
        if stream.seekable():
            self._first = stream.tell()
        else:
            self._raw = _Kept(stream)
        self._begin()

    def _begin(self) -> None:
        stream, unpack_limit = self._raw, self.unpack_limit
        self.line = 0
        self._line_ended = True
        head = self._guarded(stream, HEAD_BYTES)
        self.room = Room(self.name)
        self.compressed = head.startswith(_GZIP)
        room = None if self.compressed else self.room
        buffered = io.BufferedReader(_Rejoined(head, stream, sys.maxsize, self.too_large, room), _BUFFER_BYTES)
        if self.compressed:
            import gzip  # noqa: PLC0415 - few histories are compressed

            unpacked = cast("BinaryIO", gzip.GzipFile(fileobj=buffered))
            head = self._guarded(unpacked, HEAD_BYTES)
            most = UNPACK_LIMIT if unpack_limit is None else unpack_limit
            buffered = io.BufferedReader(_Rejoined(head, unpacked, most, self.too_large, self.room), _BUFFER_BYTES)
        self._stream = buffered
        self._singly = 0  # how many bytes to read line by line
        self._lines: deque[str] = deque()  # the next lines, already decoded; if it is empty, bytes come next
        if head.startswith(codecs.BOM_UTF8):
            head = head.removeprefix(self._stream.read(len(codecs.BOM_UTF8)))
        self.head = head

    def has(self, size: int) -> bool:
        """Returns whether the file, which may be compressed, has so many bytes. The source is at its beginning then.

        Args:
            size: At most `KEPT_BYTES`.
        """
        raw = self._raw
        if isinstance(raw, _Kept):
            if not raw.again(last=False):
                return False
            left = size
            while left > 0 and (part := self._guarded(raw, min(left, _BUFFER_BYTES))):
                left -= len(part)
            raw.is_long = left <= 0
            self.rewind()
            return raw.is_long
        position = raw.tell()
        end = raw.seek(0, io.SEEK_END)
        raw.seek(position)
        return end - self._first >= size

    def rewind(self, *, last: bool = False) -> bool:
        """Begins again; returns False if it is a pipe that gave more than is kept.

        Args:
            last: Whether this is the last time, so that nothing more of a pipe has to be kept.
        """
        if isinstance(self._raw, _Kept):
            if not self._raw.again(last=last):
                return False
        else:
            self._raw.seek(self._first)
        self._begin()
        return True

    def close(self) -> None:
        """Deletes the copy of a pipe."""
        if isinstance(self._raw, _Kept):
            self._raw.close()

    def _guarded(self, stream: Readable, size: int) -> bytes:
        try:
            return stream.read(size)
        except (EOFError, OSError, zlib.error) as error:
            raise self._broken(error) from error

    def too_large(self) -> BrokenSource:
        """Returns the error of a source that exceeds the limit."""
        return BrokenSource(
            self.name,
            None,
            "the uncompressed size exceeds the limit; --unpack-limit MIB raises it, if the disk has room",
        )

    def _broken(self, error: Exception) -> BrokenSource:
        if isinstance(error, IsADirectoryError):
            return BrokenSource(self.name, None, "expected a file, found a directory")
        what = "cannot be read" if isinstance(error, OSError) else "the gzip data breaks off here"
        return BrokenSource(self.name, self.line + 1, f"{what}: {error}")

    def parts(self, most: int) -> Iterator[bytes]:
        """Yields the rest of the source.

        Raises:
            BadHistory: It breaks off, or has more than `most` bytes.
        """
        while part := self._guarded(self._stream, _BUFFER_BYTES):
            most -= len(part)
            if most < 0:
                raise self.too_large()
            yield part

    def readline_bytes(self, size: int) -> bytes:
        """Returns the next line, or at most `size` bytes of it; empty at the end."""
        try:
            piece = self._stream.readline(size)
        except (EOFError, OSError, zlib.error) as error:
            raise self._broken(error) from error
        if self._line_ended and piece:
            self.line += 1
        self._line_ended = piece[-1:] == b"\n"
        self._singly -= len(piece)
        return piece

    def readline(self, size: int = -1, /) -> str:
        """Returns the next line as text, or at most about `size` bytes of it; empty at the end.

        Raises:
            BadHistory: It is not UTF-8 text.
        """
        if not self._lines and self._singly <= 0 and size >= _SHORT_LINE:
            self._read_lines()
        if self._lines:
            self.line += 1
            return self._lines.popleft()
        piece = self.readline_bytes(size)
        if b"\0" in piece:
            raise BadHistory(self.name, self.line, "expected text, found binary data")
        try:
            return piece.decode()
        except UnicodeDecodeError as error:
            cut = error
        # The piece may end in the middle of a character.
        for _ in range(_LONGEST_CHARACTER - 1):
            if not self._line_ended:
                piece += self.readline_bytes(1)
            try:
                return piece.decode()
            except UnicodeDecodeError as error:
                cut = error
        text = shown(piece[cut.start : cut.start + 16].decode(errors="backslashreplace"))
        raise BadHistory(self.name, self.line, f"expected UTF-8 text, found {text}")

    def _read_lines(self) -> None:
        """Decodes all buffered whole lines at once, if they are well-formed; this is faster than one by one."""
        try:
            block = self._stream.peek() if self._line_ended else b""
        except (EOFError, OSError, zlib.error) as error:
            raise self._broken(error) from error
        block = block[: block.rfind(b"\n") + 1]
        self._singly = len(block)  # so that nothing is looked at twice
        if not block or b"\0" in block:
            return
        try:
            lines = block.decode().split("\n")
        except UnicodeDecodeError:
            return
        if max(map(len, lines)) < _SHORT_LINE:
            self._stream.read(len(block))
            self._singly = 0
            lines.pop()
            self._lines.extend([line + "\n" for line in lines])


@contextmanager
def opened(name: str, unpack_limit: int | None = None, *, within: Path | None = None) -> Iterator[Source]:
    """Opens a file by its name, or standard input by `-`.

    Args:
        name: Its name, as the user gave it.
        unpack_limit: As in `Source`.
        within: The folder of its run; no link below it is followed.

    Raises:
        BadHistory: There is no such file, or it is unreadable.
    """
    if name == STANDARD_INPUT:
        if sys.stdin is None:
            raise BadHistory(name, None, "cannot be read: standard input is closed")
        with closing(Source(name, sys.stdin.buffer, unpack_limit)) as source:
            yield source
        return
    try:
        if within is None:
            file: IO[bytes] = open(name, "rb", buffering=0)  # noqa: SIM115, PTH123 - closed below; the path as the user typed it
        else:
            file = below.open_file(within, Path(name))
    except OSError as error:
        raise BadHistory(name, None, f"cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise BadHistory(shown(name), None, f"is no path: {error}") from error
    with file, closing(Source(name, cast("BinaryIO", file), unpack_limit)) as source:
        yield source
