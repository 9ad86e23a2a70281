"""The client of kv-store: the connection of one process, and the requests of each workload."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, ClassVar

from clusters.kit.answers import NoAnswer, Refused
from clusters.kit.contracts import Done, Registers, Seen, by_workload
from clusters.kit.exchange import Exchange

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Mapping

    from harness.node import Node
    from harness.op import Value


# CHANGE: a class for each workload that your system serves, from its contract in `clusters.kit.contracts`. The contract says
# what an operation becomes without an answer; mypy names a method that is missing.
class KvStoreRegisters(Registers):
    """Reads, writes and compare-and-sets of registers."""

    serves = "read, write and cas are POST requests to the key's path"
    # CHANGE: the codes of errors after which a write certainly never happens, each with its name in the history. After any
    # other error it may still happen. 503: the node could not reach the primary, so it sent nothing.
    never_happened: ClassVar[Mapping[str, str]] = {"503": "no-primary"}

    def __init__(self, node: Node, port: int) -> None:
        self.node = node
        self._exchange = Exchange(node.address, port)

    async def read(self, key: str) -> Seen:
        return Seen((await self._post(key, {"op": "read"}))["value"])

    async def write(self, key: str, value: Value) -> Done:
        await self._post(key, {"op": "write", "value": value})
        return Done()

    async def cas(self, key: str, expected: Value, new: Value) -> Done | None:
        answer = await self._post(key, {"op": "cas", "expected": expected, "value": new})
        return Done() if answer["applied"] else None

    async def close(self) -> None:
        await self._exchange.close()

    async def _post(self, key: str, request: dict[str, Value]) -> dict[str, Any]:
        """Sends a request, and returns the body of its answer. The server closes the connection after each answer."""

        async def conversation(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
            content = json.dumps(request).encode()
            writer.write(f"POST /{key} HTTP/1.0\r\nContent-Length: {len(content)}\r\n\r\n".encode() + content)
            await writer.drain()
            return await reader.read()

        try:
            answer = await self._exchange.converse(conversation)
        finally:
            await self._exchange.close()
        if not answer:
            raise NoAnswer("the node closed the connection before it answered")
        head, _, text = answer.partition(b"\r\n\r\n")
        try:
            status = head.split()[1].decode()
            body: dict[str, Any] = json.loads(text)
        except (ValueError, IndexError) as error:
            raise NoAnswer(f"expected an answer of HTTP with JSON, found {answer[:100]!r}") from error
        if status != "200":
            raise Refused(status, f"status {status}: {body.get('error')}")
        return body


CLIENTS = by_workload(KvStoreRegisters)
