"""Connections with RocketMQ's remoting protocol and JSON headers, for its servers and DLedger's.

A frame is, big-endian: total length (4 bytes, not counting itself), a word whose top byte is the header's encoding (0 is JSON)
and whose rest is the header's length, the header, the body. (Source: RocketMQ's RemotingCommand, NettyDecoder; DLedger
0.4.0's DLedgerRpcNettyService.)

An error shows whether the node may have received the request. After `NotSent`, it certainly has not. After any other error, it
may have. The connection is then closed, so that a late answer is not mistaken for the answer to another request.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from clusters.kit.answers import NoAnswer, NotSent
from clusters.systems.dledger import fastjson

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from harness.op import Value

MAX_FRAME_BYTES = 16 * 1024 * 1024  # the servers' own limit
MAX_HEADER_BYTES = 64 * 1024
LENGTH = struct.Struct(">I")
HEAD = struct.Struct(">II")
HEADER_LENGTH_MASK = 0x00FF_FFFF
JSON_ENCODING = 0
HEADER_OK = frozenset({0, 200})


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An answer to a call.

    Attributes:
        status: The header's code: the server's own, or one of the remoting layer's. DLedger's own answers have 200.
        remark: The server's remark; empty if there is none.
        body: The JSON object of the body; empty if there is none.
        extension: The header's `extFields`.
    """

    status: int
    remark: str
    body: Mapping[str, Value]
    extension: Mapping[str, str] = field(default_factory=dict)


class Connection:
    """One TCP connection; one `call` or `call_many` at a time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, where: str) -> None:
        self._reader = reader
        self._writer = writer
        self._where = where
        self._opaque = itertools.count(1)

    @classmethod
    async def open(cls, host: str, port: int, timeout_s: float) -> Connection:
        """Connects.

        Raises:
            NotSent: The host refuses the connection, or does not accept it in time.
        """
        where = f"{host}:{port}"
        try:
            async with asyncio.timeout(timeout_s):
                reader, writer = await asyncio.open_connection(host, port)
        except TimeoutError as error:
            raise NotSent(f"{where} did not accept a connection in {timeout_s:g} s") from error
        except OSError as error:
            raise NotSent(f"{where} refused a connection: {error.strerror or error}") from error
        return cls(reader, writer, where)

    async def call(self, code: int, body: Value, *, extension: Mapping[str, str]) -> Answer:
        """Sends a request and waits for its answer. The caller limits the time.

        A call that fails or is cancelled closes the connection.

        Args:
            code: The request code.
            body: The body as JSON-like data; None for none.
            extension: The header's `extFields`.

        Raises:
            NotSent: The connection was closed before the call.
            NoAnswer: No answer came, or a bad one.
        """
        with self._whole():
            header, content = await self._exchange(code, _payload(body), extension)
            return self._answer(header, _object(content, f"{self._where}: body") if content else {})

    async def call_bytes(self, code: int, payload: bytes, *, extension: Mapping[str, str]) -> tuple[Answer, bytes]:
        """Sends a request with bytes as body, and waits for an answer with bytes as body; otherwise like `call`.

        Args:
            code: The request code.
            payload: The body; empty for none.
            extension: The header's `extFields`.

        Returns:
            The answer without its body, and the body, which can be empty.
        """
        with self._whole():
            header, content = await self._exchange(code, payload, extension)
            return self._answer(header, {}), content

    async def call_many(
        self,
        code: int,
        bodies: Iterable[Mapping[str, Value]],
        *,
        window: int,
        timeout_s: float,
        take: Callable[[int, Answer], bool],
    ) -> None:
        """Sends many requests of one kind, with a limited number in flight. The answers can come in any order.

        A call that fails or is cancelled closes the connection.

        Args:
            code: The request code of all requests.
            bodies: The bodies, in the order of sending.
            window: The maximum number of requests in flight.
            timeout_s: The longest wait for the next answer, in seconds.
            take: Receives the position of a request in `bodies`, and its answer. If it returns False, no further request is
                sent. It still receives the answers to the requests in flight.

        Raises:
            NotSent: The connection was closed before the call.
            NoAnswer: An answer did not come, or was bad.
        """
        requests = enumerate(bodies)
        in_flight: dict[Value, int] = {}
        goes_on = True
        with self._whole():
            while True:
                while goes_on and len(in_flight) < window:
                    number, body = next(requests, (-1, {}))
                    if number < 0:
                        goes_on = False
                        break
                    opaque = next(self._opaque)
                    in_flight[opaque] = number
                    self._writer.write(_frame(code, opaque, _payload(body), {}))
                if not in_flight:
                    return
                try:
                    async with asyncio.timeout(timeout_s):
                        await self._writer.drain()
                        header, content = await self._read()
                except TimeoutError as error:
                    raise NoAnswer(f"{self._where} did not answer in {timeout_s:g} s") from error
                answered = self._opaque_of(header)
                if answered not in in_flight:
                    raise NoAnswer(f"{self._where} answered request {answered!r}, which is not in flight")
                answer = self._answer(header, _object(content, f"{self._where}: body") if content else {})
                goes_on = take(in_flight.pop(answered), answer) and goes_on

    @contextlib.contextmanager
    def _whole(self) -> Iterator[None]:
        """Closes the connection if the block fails, and turns errors of the transport into `NoAnswer`."""
        if self.closed:
            raise NotSent(f"{self._where}: the connection is closed")
        ended = False
        try:
            yield
            ended = True
        except asyncio.IncompleteReadError as error:
            raise NoAnswer(f"{self._where} closed the connection before it answered") from error
        except OSError as error:
            raise NoAnswer(f"{self._where}: the connection broke: {error.strerror or error}") from error
        finally:
            if not ended:
                self._abort()

    @property
    def closed(self) -> bool:
        """Returns whether the connection is closed, so that no call is possible."""
        return self._writer.is_closing() or self._reader.at_eof()

    async def close(self) -> None:
        """Closes the connection at once, without waiting for requests in flight."""
        self._abort()

    def _abort(self) -> None:
        with contextlib.suppress(OSError):
            self._writer.transport.abort()

    async def _exchange(
        self, code: int, payload: bytes, extension: Mapping[str, str]
    ) -> tuple[Mapping[str, Value], bytes]:
        """Sends a request and reads its answer. Returns the answer's header and body."""
        opaque = next(self._opaque)
        self._writer.write(_frame(code, opaque, payload, extension))
        await self._writer.drain()
        header, content = await self._read()
        answered = self._opaque_of(header)
        if answered != opaque:
            raise NoAnswer(f"{self._where} answered request {answered!r}, not {opaque}")
        return header, content

    async def _read(self) -> tuple[Mapping[str, Value], bytes]:
        """Reads an answer. Returns its header and its body."""
        (total,) = LENGTH.unpack(await self._reader.readexactly(LENGTH.size))
        if not LENGTH.size <= total <= MAX_FRAME_BYTES:
            raise NoAnswer(f"{self._where} sent a frame of {total} bytes; at most {MAX_FRAME_BYTES} are possible")
        frame = await self._reader.readexactly(total)
        (mark,) = LENGTH.unpack_from(frame)
        length = mark & HEADER_LENGTH_MASK
        body_at = LENGTH.size + length
        if mark >> 24 != JSON_ENCODING or length > min(MAX_HEADER_BYTES, total - LENGTH.size):
            raise NoAnswer(f"{self._where} sent a header that is not JSON or longer than its frame")
        return _object(frame[LENGTH.size : body_at], f"{self._where}: header"), frame[body_at:]

    def _opaque_of(self, header: Mapping[str, Value]) -> int:
        """Returns the number of the request in an answer's header."""
        opaque = header.get("opaque")
        if not isinstance(opaque, int):
            raise NoAnswer(f"{self._where} answered request {str(opaque)[:100]!r}; a request is a whole number")
        return opaque

    def _answer(self, header: Mapping[str, Value], body: Mapping[str, Value]) -> Answer:
        status, extension = header.get("code"), header.get("extFields") or {}
        if not isinstance(status, int):
            raise NoAnswer(f"{self._where} sent a header without a code")
        if not isinstance(extension, dict) or not all(isinstance(value, str) for value in extension.values()):
            raise NoAnswer(f"{self._where} sent extFields that are not a map of texts: {str(extension)[:100]}")
        return Answer(status=status, remark=str(header.get("remark") or ""), body=body, extension=extension)


def _payload(body: Value) -> bytes:
    return b"" if body is None else json.dumps(body).encode()


def _frame(code: int, opaque: int, payload: bytes, extension: Mapping[str, str]) -> bytes:
    header = {"code": code, "language": "PYTHON", "version": 0, "opaque": opaque, "flag": 0, "extFields": extension}
    encoded = json.dumps(header).encode()
    return HEAD.pack(LENGTH.size + len(encoded) + len(payload), len(encoded)) + encoded + payload


def _object(data: bytes, what: str) -> Mapping[str, Value]:
    try:
        value = fastjson.read(data)
    except (ValueError, RecursionError) as error:
        raise NoAnswer(f"{what} is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise NoAnswer(f"{what} is not a JSON object")
    return value
