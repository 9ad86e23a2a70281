"""A connection over TCP on which one request follows the other, and what is known of a request without an answer."""

from __future__ import annotations

import asyncio
import contextlib
import struct
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from clusters.kit.answers import NoAnswer, NotDone, NotSent, Refused, RefusedByCode

if TYPE_CHECKING:
    from collections.abc import Callable

    T = TypeVar("T")
    C = TypeVar("C", bound="Closable")
    Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]

CONNECT_TIMEOUT_S: Final = 1.0
MAX_SHOWN: Final = 200  # characters of an error
LINE_BYTES: Final = 1 << 16


class Closable(Protocol):
    """A connection that opens with the first request."""

    async def close(self) -> None:
        """Closes it."""
        ...


class Exchange:
    """A connection to one process, which opens with the first request, and again after it broke."""

    def __init__(
        self, address: str, port: int, *, connect_timeout_s: float = CONNECT_TIMEOUT_S, line_bytes: int = LINE_BYTES
    ) -> None:
        """Connects with the first request.

        Args:
            address: The address of the node.
            port: The TCP port.
            connect_timeout_s: The time limit for the connection and its greeting, in seconds.
            line_bytes: The longest line that a reader takes.
        """
        self._address = address
        self._port = port
        self._connect_timeout_s = connect_timeout_s
        self._line_bytes = line_bytes
        self._streams: Streams | None = None

    async def greeted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Does what a new connection needs before its first request, e.g. a log-in: by default nothing."""

    async def converse(self, conversation: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[T]]) -> T:
        """Carries out a conversation, which writes one request or more, and reads their answers to the end.

        If it does not end, e.g. because its caller was cancelled, the connection is closed: the next answer on it would be that
        of this request. After `Refused` it stays open.

        Raises:
            NotSent: The process accepted no connection, so it got no request.
            NoAnswer: The process may have got it, and the answer is missing or not readable.
            Refused: The process answered with an error, as do those of `RefusedByCode`.
        """
        reader, writer = await self._open()
        complete = False
        try:
            answer = await conversation(reader, writer)
            complete = True
        except (Refused, RefusedByCode):
            complete = True
            raise
        except (OSError, EOFError, ValueError, struct.error) as error:
            raise NoAnswer(_words(error)) from error
        finally:
            if not complete:
                await self.close()
        return answer

    async def close(self) -> None:
        """Closes the connection at once."""
        streams, self._streams = self._streams, None
        if streams is not None:
            streams[1].transport.abort()

    async def _open(self) -> Streams:
        if self._streams is None:
            opened = None
            try:
                async with asyncio.timeout(self._connect_timeout_s):
                    opened = await asyncio.open_connection(self._address, self._port, limit=self._line_bytes)
                    await self.greeted(*opened)
                self._streams = opened
            except TimeoutError as error:  # an OSError too
                raise NotSent(f"no connection in {self._connect_timeout_s:g} s") from error
            except (OSError, EOFError, ValueError, struct.error, Refused, RefusedByCode) as error:
                raise NotSent(_words(error)) from error
            finally:
                if opened is not None and self._streams is None:
                    opened[1].transport.abort()
        return self._streams


async def asked_once(connection: C | Awaitable[C], question: Callable[[C], Awaitable[T]], timeout_s: float) -> T | None:
    """Asks one question over a new connection, and closes it. Returns None if no usable answer comes in time.

    Args:
        connection: The connection, which nobody else uses, or what opens it.
        question: Asks it.
        timeout_s: The time limit in seconds.
    """
    with contextlib.suppress(NotSent, NoAnswer, Refused, RefusedByCode, NotDone, TimeoutError):
        async with asyncio.timeout(timeout_s):
            opened = await connection if isinstance(connection, Awaitable) else connection
            try:
                return await question(opened)
            finally:
                await opened.close()
    return None


def _words(error: Exception) -> str:
    return str(error)[:MAX_SHOWN] or type(error).__name__
