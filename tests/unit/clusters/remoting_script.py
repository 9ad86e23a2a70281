"""A node whose answers a script makes, in real frames, on a loopback port."""

from __future__ import annotations

import asyncio
import contextlib
import json
import struct
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

HEAD = struct.Struct(">II")


def frame(header: bytes, body: bytes = b"", *, encoding: int = 0) -> bytes:
    """A frame in the format of the wire."""
    return HEAD.pack(4 + len(header) + len(body), encoding << 24 | len(header)) + header + body


def answer(opaque: int, body: Any = None, *, status: int = 200, remark: str | None = None) -> bytes:
    """The frame of an answer to request `opaque`."""
    header = {"code": status, "language": "JAVA", "version": 0, "opaque": opaque, "flag": 1}
    if remark is not None:
        header["remark"] = remark
    return frame(json.dumps(header).encode(), b"" if body is None else json.dumps(body).encode())


class ScriptedNode:
    """Reads requests and sends the result of `script(header, body)`; closes the connection if that is None.

    Attributes:
        port: Its port.
        requests: The headers and bodies of all requests so far.
        connections: The number of accepted connections.
        hang: While set, it reads requests and does not answer.
    """

    def __init__(self, script: Callable[[Mapping[str, Any], Mapping[str, Any]], bytes | None]) -> None:
        self._script = script
        self.port = 0
        self.requests: list[tuple[dict[str, Any], dict[str, Any]]] = []
        self.connections = 0
        self.hang = False

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serves one connection."""
        self.connections += 1
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                total, mark = HEAD.unpack(await reader.readexactly(HEAD.size))
                data = await reader.readexactly(total - 4)
                length = mark & 0xFFFFFF
                header, body = json.loads(data[:length]), _body(data[length:])
                self.requests.append((header, body))
                if self.hang:
                    continue
                reply = self._script(header, body)
                if reply is None:
                    break
                writer.write(reply)
                await writer.drain()
        writer.close()


def _body(data: bytes) -> Any:
    """A request's body: JSON, or a text."""
    try:
        return json.loads(data or b"null")
    except ValueError:
        return data.decode()


@contextlib.asynccontextmanager
async def scripted(
    script: Callable[[Mapping[str, Any], Mapping[str, Any]], bytes | None], host: str = "127.0.0.1", port: int = 0
) -> AsyncIterator[ScriptedNode]:
    """Runs a scripted node."""
    node = ScriptedNode(script)
    server = await asyncio.start_server(node.serve, host, port)
    node.port = server.sockets[0].getsockname()[1]
    try:
        yield node
    finally:
        server.close()
