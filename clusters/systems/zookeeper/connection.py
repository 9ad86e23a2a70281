"""A connection to one ZooKeeper node with a session of its own: requests, answers, and requests without an answer.

It uses kazoo's requests and answers, and not its client. kazoo's client connects again on its own, and tells a request that it
never sent and one without an answer by the same error. Its threads would also be beside the event loop. Here a session
ends with its connection: ZooKeeper ends it at once if it gets the last message, and else after the session's timeout.

Frames are big-endian: a length (4), then a request (xid 4, type 4, body) or an answer (xid 4, zxid 8, error 4, body).

Source: ZooKeeper 3.9.3, `zookeeper.jute` and `ClientCnxn`.
"""

from __future__ import annotations

import asyncio
import contextlib
import struct
from collections import deque
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from clusters.kit.answers import NoAnswer, NotSent, RefusedByCode
from clusters.kit.zookeepers import PORT

if TYPE_CHECKING:
    from collections.abc import Sequence

CONNECT_TIMEOUT_S: Final = 1.0
MAX_ANSWER_BYTES: Final = 64 << 20
LENGTH: Final = struct.Struct("!i")
HEADER: Final = struct.Struct("!ii")
PING_XID: Final = -2
WATCH_XID: Final = -1


class Pending(NamedTuple):
    """A request without an answer so far.

    Attributes:
        xid: Its number on the connection.
        request: The request.
        answer: Gets what the answer says.
    """

    xid: int
    request: Any
    answer: asyncio.Future[Any]


class Connection:
    """A connection that opens with the first request, and again after it broke.

    Attributes:
        zxid: The last change that a node told of; a node that has not applied it refuses the next session.
        session_s: The timeout of the session in seconds, as the node granted it; 0 before the first request.
        sessions: The number of sessions so far.
    """

    def __init__(self, address: str, *, session_ms: int) -> None:
        """Connects with the first request.

        Args:
            address: The address of the node.
            session_ms: The timeout of the session that it asks for, in milliseconds.
        """
        self.zxid = 0
        self.session_s = 0.0
        self.sessions = 0
        self._address = address
        self._session_ms = session_ms
        self._xid = 0
        self._writer: asyncio.StreamWriter | None = None
        self._pending: deque[Pending] = deque()
        self._tasks: list[asyncio.Task[None]] = []
        self._broken: str | None = None

    async def call(self, request: Any) -> Any:
        """Sends a request of kazoo once, and returns what its answer says.

        Raises:
            NotSent: The node got no request.
            NoAnswer: The node may have got it, and the answer is missing or not readable.
            RefusedByCode: The node answered with an error.
        """
        return (await self.calls([request]))[0]

    async def calls(self, requests: Sequence[Any]) -> list[Any]:
        """Sends several requests at once, and returns what the answers say; see `call`. A refusal is in the list."""
        writer = await self._opened()
        waiting = [self._put(writer, request) for request in requests]
        complete = False
        try:
            await writer.drain()
            answers = await asyncio.gather(*waiting, return_exceptions=len(waiting) > 1)
            complete = True
        except OSError as error:
            raise NoAnswer(str(error) or type(error).__name__) from error
        except RefusedByCode:
            complete = True
            raise
        finally:
            if not complete:  # also if the call was cancelled: nobody waits for the answers
                await self.close(ends_session=False)
        for answer in answers:
            if isinstance(answer, BaseException) and not isinstance(answer, RefusedByCode):
                raise answer
        return list(answers)

    async def close(self, *, ends_session: bool = True) -> None:
        """Closes the connection.

        Args:
            ends_session: Whether to ask the node to end the session; it does not wait for the answer.
        """
        writer, self._writer = self._writer, None
        for task in self._tasks:
            if task is not asyncio.current_task():
                task.cancel()
        self._tasks = []
        self._lose("the connection is closed")
        if writer is None:
            return
        if ends_session:
            from kazoo.protocol.serialization import CloseInstance  # noqa: PLC0415 - an extra

            with contextlib.suppress(OSError):
                self._xid += 1
                writer.write(_frame(HEADER.pack(self._xid, CloseInstance.type)))
        writer.close()

    async def _opened(self) -> asyncio.StreamWriter:
        if self._writer is not None and self._broken is None:
            return self._writer
        await self.close(ends_session=False)
        import kazoo.protocol.serialization  # noqa: F401, PLC0415 - an extra; loaded before the time limit begins

        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                return await self._open()
        except (OSError, asyncio.IncompleteReadError) as error:  # a TimeoutError is an OSError
            raise NotSent(str(error) or type(error).__name__) from error

    async def _open(self) -> asyncio.StreamWriter:
        from kazoo.protocol.serialization import Connect  # noqa: PLC0415

        reader, writer = await asyncio.open_connection(self._address, PORT)
        try:
            asks = Connect(0, self.zxid, self._session_ms, 0, b"\0" * 16, False)  # noqa: FBT003 - kazoo's order
            writer.write(_frame(bytes(asks.serialize())))
            granted, _ = Connect.deserialize(await _read_frame(reader), 0)
        except (NoAnswer, struct.error) as error:
            writer.close()
            raise NotSent(f"the node did not open a session: {error}") from error
        except BaseException:
            writer.close()
            raise
        if granted.time_out <= 0:
            writer.close()
            raise NotSent("the node granted no session")
        self.session_s = granted.time_out / 1000
        self.sessions += 1
        self._writer, self._broken, self._xid = writer, None, 0
        self._tasks = [asyncio.create_task(self._receive(reader)), asyncio.create_task(self._ping(writer))]
        return writer

    def _put(self, writer: asyncio.StreamWriter, request: Any) -> asyncio.Future[Any]:
        self._xid += 1
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._pending.append(Pending(self._xid, request, answer))
        writer.write(_frame(HEADER.pack(self._xid, request.type) + bytes(request.serialize())))
        return answer

    async def _receive(self, reader: asyncio.StreamReader) -> None:
        """Gives each answer to the request that waits for it, until the connection breaks."""
        try:
            while True:
                self._take(await _read_frame(reader))
        except (OSError, EOFError, NoAnswer, ValueError, struct.error, IndexError) as error:
            self._lose(str(error) or type(error).__name__)

    def _take(self, frame: bytes) -> None:
        from kazoo.protocol.serialization import ReplyHeader  # noqa: PLC0415

        header, offset = ReplyHeader.deserialize(frame, 0)
        if header.xid in {PING_XID, WATCH_XID}:
            return
        if not self._pending or self._pending[0].xid != header.xid:
            raise NoAnswer(f"expected the answer to the oldest request, got that to {header.xid}")
        waits = self._pending[0]
        if header.zxid > 0:
            self.zxid = header.zxid
        said = None if header.err else waits.request.deserialize(frame, offset)
        self._pending.popleft()
        if waits.answer.done():
            return
        if header.err:
            waits.answer.set_exception(RefusedByCode(header.err))
        else:
            waits.answer.set_result(said)

    async def _ping(self, writer: asyncio.StreamWriter) -> None:
        """Keeps the session alive."""
        from kazoo.protocol.serialization import PingInstance  # noqa: PLC0415

        with contextlib.suppress(OSError):
            while True:
                await asyncio.sleep(self.session_s / 3)
                writer.write(_frame(HEADER.pack(PING_XID, PingInstance.type)))

    def _lose(self, why: str) -> None:
        self._broken = why
        while self._pending:
            answer = self._pending.popleft().answer
            if not answer.done():
                answer.set_exception(NoAnswer(why))
                answer.exception()  # nobody may wait for it any more


def _frame(content: bytes) -> bytes:
    return LENGTH.pack(len(content)) + content


async def _read_frame(reader: asyncio.StreamReader) -> bytes:
    (length,) = LENGTH.unpack(await reader.readexactly(LENGTH.size))
    if not 0 <= length <= MAX_ANSWER_BYTES:
        raise NoAnswer(f"expected an answer of at most {MAX_ANSWER_BYTES >> 20} MiB, found a length of {length}")
    return await reader.readexactly(length)
