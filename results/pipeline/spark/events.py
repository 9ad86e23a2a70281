"""Histories of events as rows, on the executors: `results.pipeline.read.events` reads the lines that Spark gives.

One task reads a file, because the order of its lines is the order of its events.
"""

from __future__ import annotations

import codecs
import re
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from checker.formats.errors import BadHistory
from results.pipeline.read.events import read_events

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import pyarrow as pa

_THREE_SLASHES: Final = re.compile(r"^([a-z0-9+.-]+):///")


def plain_uri(path: str) -> str:
    """Returns a path of Spark's `_metadata.file_path` as Hadoop writes it."""
    return _THREE_SLASHES.sub(r"\1:/", unquote(path))


def events_read(
    runs: Mapping[str, tuple[str, str]], *, keyed: bool | None
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Returns a function that makes rows (`results.pipeline.read.events.ROWS`) of lines, which come file after file.

    Args:
        runs: The run and the format of each file.
        keyed: As in `labrys check`.
    """

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        lines = _Lines(batches)
        while (file := lines.next_file()) is not None:
            run, kind = runs[file]
            yield from read_events(lines, run, kind, keyed=keyed)

    return read


class _Lines:
    """Stands for an open file in the readers of forms: the lines of one file after the other, as text."""

    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        self._rows = (
            row
            for batch in batches
            for row in zip(batch.column(1).to_pylist(), batch.column(0).to_pylist(), strict=True)
        )
        self._next: tuple[str, bytes] | None = next(self._rows, None)
        self._file: str | None = None
        self._rest = ""
        self.name = ""
        self.line = 0

    def next_file(self) -> str | None:
        """Skips the rest of the file, and returns the next file's URI; None after the last."""
        while self._next is not None and self._next[0] == self._file:
            self._next = next(self._rows, None)
        self._rest, self.line = "", 0
        if self._next is None:
            return None
        self._file = self._next[0]
        self.name = plain_uri(self._file)
        return self.name

    def readline_bytes(self, size: int) -> bytes:  # noqa: ARG002 - the line is in memory anyway
        """Returns the next whole line; empty at the end of the file."""
        line = self._taken()
        if line is None:
            return b""
        return (line.removeprefix(codecs.BOM_UTF8) if self.line == 1 else line) + b"\n"

    def _taken(self) -> bytes | None:
        """Returns the next line without its end; None at the end of the file."""
        if self._next is None or self._next[0] != self._file:
            return None
        line = self._next[1]
        self._next = next(self._rows, None)
        self.line += 1
        return line

    def readline(self, size: int = -1, /) -> str:
        """Returns the next line, or at most `size` characters of it; empty at the end of the file."""
        if not self._rest:
            line = self._taken()
            if line is None:
                return ""
            if b"\0" in line:
                raise BadHistory(self.name, self.line, "expected text, found binary data")
            try:
                self._rest = line.decode("utf-8-sig" if self.line == 1 else "utf-8") + "\n"
            except UnicodeDecodeError as error:
                raise BadHistory(self.name, self.line, f"expected UTF-8 text: {error}") from error
        if size < 0 or len(self._rest) <= size:
            piece, self._rest = self._rest, ""
        else:
            piece, self._rest = self._rest[:size], self._rest[size:]
        return piece
