"""A connection to one PostgreSQL server: simple queries, their rows, and what is known of a query without an answer.

The messages are those of version 3.0 of the protocol. A message is one byte with its type, its length in four bytes with these
four, and its content. Texts end with a zero byte, and numbers have the most significant byte first.

Source: PostgreSQL 15, "Frontend/Backend Protocol", "Message Flow" and "Message Formats".
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

from clusters.kit.answers import NotSent, Refused
from clusters.kit.exchange import Exchange

if TYPE_CHECKING:
    import asyncio

PORT: Final = 5432
USER: Final = "labrys"
DATABASE: Final = "postgres"
MAX_MESSAGE_BYTES: Final = 16 << 20
_VERSION: Final = 3 << 16
_LENGTH_BYTES: Final = 4
_SHOWN: Final = 100

Row = list[str | None]


class Connection(Exchange):
    """A connection that opens with the first query, and again after it broke."""

    def __init__(self, address: str) -> None:
        """Connects with the first query.

        Args:
            address: The address of the node.
        """
        super().__init__(address, PORT)

    async def query(self, sql: str) -> tuple[str, list[Row]]:
        """Sends one statement once, and returns its tag, such as `COMMIT` or `SELECT 1`, and its rows.

        Raises:
            NotSent: The server did not accept a connection, so it did not get the statement.
            NoAnswer: The server may have got it, and the answer is missing or not readable.
            Refused: The server answered with an error. The connection stays open.
        """

        async def conversation(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> tuple[str, list[Row]]:
            writer.write(_message(b"Q", _text(sql)))
            await writer.drain()
            return await _answer(reader)

        return await self.converse(conversation)

    async def greeted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Opens a session."""
        settings = _text("user") + _text(USER) + _text("database") + _text(DATABASE) + b"\0"
        writer.write(_message(b"", struct.pack("!i", _VERSION) + settings))
        await writer.drain()
        try:
            await _answer(reader)
        except Refused as error:
            raise NotSent(f"the server does not accept a session: {error}") from error


async def row_of(connection: Connection, sql: str) -> Row | None:
    """Returns the first row that a statement returns."""
    _, rows = await connection.query(sql)
    return rows[0] if rows else None


def literal(text: str) -> str:
    """Returns a text as a literal of SQL, for a server with `standard_conforming_strings`, the default."""
    return "'" + text.replace("'", "''") + "'"


async def _answer(reader: asyncio.StreamReader) -> tuple[str, list[Row]]:
    """Reads messages until the server waits for the next query.

    Raises:
        Refused: The server answered with an error, and waits for the next query.
        OSError: The connection broke.
        EOFError: It ended.
        ValueError: The server sent something else.
    """
    tag = ""
    rows: list[Row] = []
    error: Refused | None = None
    while True:
        try:
            kind = await reader.readexactly(1)
        except EOFError:
            raise ConnectionError("the server ended the session" if error is None else str(error)) from None
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
            case b"Z" if error is not None:
                raise error
            case b"Z":
                return tag, rows


def _row(content: bytes) -> Row:
    (columns,) = struct.unpack_from("!h", content)
    row: Row = []
    at = 2
    for _ in range(columns):
        (size,) = struct.unpack_from("!i", content, at)
        at += _LENGTH_BYTES
        if size < 0:
            row.append(None)
            continue
        if at + size > len(content):
            raise ValueError(f"expected a value of {size} bytes, found {len(content) - at}")
        row.append(content[at : at + size].decode(errors="replace"))
        at += size
    return row


def _error(content: bytes) -> Refused:
    fields = {part[:1]: part[1:].decode(errors="replace") for part in content.split(b"\0") if part}
    code = fields.get(b"C", "?????")[:5]
    return Refused(code, f"{code} {fields.get(b'M', '')[: 2 * _SHOWN]}")


def _message(kind: bytes, content: bytes) -> bytes:
    return kind + struct.pack("!i", len(content) + _LENGTH_BYTES) + content


def _text(text: str) -> bytes:
    return text.encode() + b"\0"
