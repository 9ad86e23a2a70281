"""The client of kv-store: the connection of one process, and the meaning of each answer."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

from harness.op import Fail, Info, Ok

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness.node import Node
    from harness.op import Invocation, Outcome

CONNECT_TIMEOUT_S = 2.0

# CHANGE: the outcome of a write for each status. `Fail` only if the write certainly never happens; `Info` in all other cases.
# A read has no effect, so a read without an answer is always `Fail`.
OUTCOMES: Mapping[int, type[Fail | Info]] = {
    503: Fail,  # the node could not reach the primary, so it sent nothing
    504: Info,  # the node sent the write, and the primary did not answer
}


class KvStoreClient:
    """Reads, writes and compare-and-sets of registers; see `harness.client.Client`."""

    def __init__(self, node: Node, port: int) -> None:
        self.node = node
        self._port = port

    async def invoke(self, invocation: Invocation) -> Outcome:
        """Carries out one operation."""
        lost = Fail if invocation.f == "read" else Info
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                reader, writer = await asyncio.open_connection(self.node.address, self._port)
        except OSError as error:  # nothing was sent, so nothing can happen; a TimeoutError is an OSError
            return Fail(f"not-connected: {error}")
        try:
            status, body = await _post(reader, writer, f"/{invocation.key}", _request(invocation))
        except (OSError, EOFError, ValueError) as error:
            return lost(f"no-answer: {error}")
        finally:
            writer.close()
        if status != 200:
            kind = Fail if invocation.f == "read" else OUTCOMES.get(status, Info)
            return kind(f"status-{status}: {body.get('error')}")
        if invocation.f == "read":
            return Ok(body["value"])
        return Ok(invocation.value) if body["applied"] else Fail(f"cas-mismatch: holds {body['value']}")

    async def close(self) -> None:
        """Does nothing, because each operation closes its own connection."""


def _request(invocation: Invocation) -> dict[str, Any]:
    """Returns the request of an operation of the workload `register`."""
    if invocation.f == "cas":
        expected, new = invocation.value
        return {"op": "cas", "expected": expected, "value": new}
    return {"op": invocation.f, "value": invocation.value}


async def _post(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, path: str, document: dict[str, Any]
) -> tuple[int, dict[str, Any]]:
    content = json.dumps(document).encode()
    head = f"POST {path} HTTP/1.0\r\nContent-Length: {len(content)}\r\n\r\n"
    writer.write(head.encode() + content)
    await writer.drain()
    answer = await reader.read()
    if not answer:
        raise EOFError("the node closed the connection before it answered")
    start, _, body = answer.partition(b"\r\n\r\n")
    _, status, *_ = start.split(maxsplit=2)  # a ValueError if this is no answer of HTTP, as for `int` and `loads`
    return int(status), json.loads(body)
