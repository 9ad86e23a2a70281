"""A connection to the client process of a node: a JSON object on a line for each request, and one for each answer.

`Session.java` describes the requests. A process carries out the requests of one connection one after the other.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from clusters.kit.answers import NoAnswer, NotDone, RefusedByCode
from clusters.kit.exchange import Exchange

if TYPE_CHECKING:
    import asyncio

    from harness.node import Node

PORT: Final = 9281
MAX_LINE_BYTES: Final = 16 << 20
MAX_SHOWN: Final = 200


class Process(Exchange):
    """A connection to the client process of a node.

    Attributes:
        node: The node.
    """

    def __init__(self, node: Node) -> None:
        """Connects with the first request."""
        super().__init__(node.address, PORT, line_bytes=MAX_LINE_BYTES)
        self.node = node

    async def ask(self, what: str, **arguments: Any) -> Any:
        """Sends a request, and returns the result.

        Raises:
            NotSent: The process got no request.
            NoAnswer: It may have got it, and the answer is missing or not readable, or BookKeeper failed without a code.
            NotDone: It did not ask BookKeeper.
            RefusedByCode: BookKeeper answered with a code.
        """

        async def conversation(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
            writer.write(json.dumps({"do": what, **arguments}).encode() + b"\n")
            await writer.drain()
            line = await reader.readline()
            if not line.endswith(b"\n"):
                raise EOFError("the connection ended")
            return line

        return _result(await self.converse(conversation))


def _result(line: bytes) -> Any:
    try:
        answer = json.loads(line)
    except (ValueError, RecursionError):
        answer = None
    match answer:
        case {"ok": result}:
            return result
        case {"code": int(code), **_unused}:
            raise RefusedByCode(code)
        case {"refused": str(code), "error": str(text), **_unused}:
            raise NotDone(code, text[:MAX_SHOWN])
        case {"error": str(text), **_unused}:
            raise NoAnswer(text[:MAX_SHOWN])
    shown = line[:MAX_SHOWN].decode(errors="replace")
    raise NoAnswer(f"expected an answer as a line of JSON, found {shown!r}")
