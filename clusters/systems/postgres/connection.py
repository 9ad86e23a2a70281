"""A connection to one PostgreSQL server: simple queries, their rows, and what is known of a query without an answer.

The messages are those of version 3.0 of the protocol. A message is one byte with its type, its length in four bytes with these
four, and its content. Texts end with a zero byte, and numbers have the most significant byte first.

Source: PostgreSQL 15, "Frontend/Backend Protocol", "Message Flow" and "Message Formats".
"""

from __future__ import annotations

import asyncio
import contextlib
import struct
from typing import Final

from clusters.kit.answers import NoAnswer, NotSent
from harness.errors import LabrysError

PORT: Final = 5432
USER: Final = "labrys"
DATABASE: Final = "postgres"
CONNECT_TIMEOUT_S: Final = 1.0
MAX_MESSAGE_BYTES: Final = 16 << 20
_VERSION: Final = 3 << 16
_LENGTH_BYTES: Final = 4
_SHOWN: Final = 100

Row = list[str | None]


class Refused(LabrysError):  # noqa: N818 - as it reads in `except`
    """The server answered with an error.

    Attributes:
        code: Its code, of five characters, e.g. `40001`.
        text: What the server said.
    """

    def __init__(self, code: str, text: str) -> None:
        super().__init__(f"{code} {text}")
        self.code = code
        self.text = text


class Connection:
    """A connection that opens with the first query, and again after it broke."""

    def __init__(self, address: str) -> None:
        """Connects with the first query.

        Args:
            address: The address of the node.
        """
        self._address = address
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def query(self, sql: str) -> tuple[str, list[Row]]:
        """Sends one statement once, and returns its tag, such as `COMMIT` or `SELECT 1`, and its rows.

        Raises:
            NotSent: The server did not accept a connection, so it did not get the statement.
            NoAnswer: The server may have got it, and the answer is missing or not readable.
            Refused: The server answered with an error. The connection stays open.
        """
        reader, writer = await self._open()
        complete = False
        try:
            writer.write(_message(b"Q", _text(sql)))
            await writer.drain()
            tag, rows, error = await _answer(reader)
            complete = True
        except (OSError, EOFError, ValueError, struct.error) as problem:
            raise NoAnswer(str(problem)[:_SHOWN] or type(problem).__name__) from problem
        finally:
            if not complete:  # also if the query was cancelled: the next answer would be that of this query
                await self.close()
        if error is not None:
            raise error
        return tag, rows

    async def close(self) -> None:
        """Closes the connection, so that the server rolls back what it has not committed."""
        streams, self._streams = self._streams, None
        if streams is not None:
            streams[1].transport.abort()

    async def _open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self._streams is None:
            made = None
            try:
                async with asyncio.timeout(CONNECT_TIMEOUT_S):
                    made = await asyncio.open_connection(self._address, PORT)
                    reader, writer = made
                    settings = _text("user") + _text(USER) + _text("database") + _text(DATABASE) + b"\0"
                    writer.write(_message(b"", struct.pack("!i", _VERSION) + settings))
                    await writer.drain()
                    _, _, error = await _answer(reader)
                if error is not None:
                    raise NotSent(f"the server does not accept a session: {error}")
                self._streams = made
            except (OSError, EOFError, ValueError, struct.error, TimeoutError) as problem:
                raise NotSent(str(problem)[:_SHOWN] or type(problem).__name__) from problem
            finally:
                if made is not None and self._streams is None:
                    made[1].transport.abort()
        return self._streams


async def asked_once(address: str, sql: str, timeout_s: float) -> Row | None:
    """Sends one query over a new connection; returns its first row, or None without an answer in time."""
    connection = Connection(address)
    with contextlib.suppress(NotSent, NoAnswer, Refused, TimeoutError):
        try:
            async with asyncio.timeout(timeout_s):
                _, rows = await connection.query(sql)
                return rows[0] if rows else None
        finally:
            await connection.close()
    return None


def literal(text: str) -> str:
    """Returns a text as a literal of SQL, for a server with `standard_conforming_strings`, the default."""
    return "'" + text.replace("'", "''") + "'"


async def _answer(reader: asyncio.StreamReader) -> tuple[str, list[Row], Refused | None]:
    """Reads messages until the server waits for the next query.

    Raises:
        OSError: The connection broke.
        EOFError: It ended.
        ValueError: The server sent something else.
    """
    tag, rows, error = "", [], None
    while True:
        try:
            kind = await reader.readexactly(1)
        except EOFError:
            raise ConnectionError(error or "the server ended the session") from None
        (length,) = struct.unpack("!i", await reader.readexactly(_LENGTH_BYTES))
        if not _LENGTH_BYTES <= length <= MAX_MESSAGE_BYTES:
            raise ValueError(f"expected a message of at most {MAX_MESSAGE_BYTES} bytes, found a length of {length}")
        content = await reader.readexactly(length - _LENGTH_BYTES)
        match kind:
            case b"D":
                rows.append(_row(content))
            case b"C":
                tag = content.rstrip(b"\0").decode(errors="replace")
            case b"E":
                error = _error(content)
            case b"R" if content != b"\0\0\0\0":
                raise ValueError("the server asks for a password")
            case b"Z":
                return tag, rows, error


def _row(content: bytes) -> Row:
    (columns,) = struct.unpack_from("!h", content)
    found: Row = []
    at = 2
    for _ in range(columns):
        (size,) = struct.unpack_from("!i", content, at)
        at += _LENGTH_BYTES
        if size < 0:
            found.append(None)
            continue
        if at + size > len(content):
            raise ValueError(f"expected a value of {size} bytes, found {len(content) - at}")
        found.append(content[at : at + size].decode(errors="replace"))
        at += size
    return found


def _error(content: bytes) -> Refused:
    fields = {part[:1]: part[1:].decode(errors="replace") for part in content.split(b"\0") if part}
    return Refused(fields.get(b"C", "?????")[:5], fields.get(b"M", "")[: 2 * _SHOWN])


def _message(kind: bytes, content: bytes) -> bytes:
    return kind + struct.pack("!i", len(content) + _LENGTH_BYTES) + content


def _text(text: str) -> bytes:
    return text.encode() + b"\0"
