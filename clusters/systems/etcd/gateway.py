"""The JSON gateway of an etcd node: requests, answers, and what is known of a request without an answer.

The gateway is HTTP in front of etcd's gRPC service, on the port for clients. Keys and values are base64. 64-bit numbers are
texts of decimal digits. An answer leaves out members that are false, 0 or empty.

Source: etcd's documentation, "gRPC gateway", and the JSON mapping of Protocol Buffers 3.
"""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from clusters.systems.answers import NoAnswer, NotSent
from harness.errors import LabrysError

if TYPE_CHECKING:
    from collections.abc import Mapping

    import aiohttp

    from harness.op import Value

PORT: Final = 2379
CONNECT_TIMEOUT_S: Final = 1.0
MAX_ANSWER_BYTES: Final = 64 << 20
HTTP_OK: Final = 200
MAX_MESSAGE: Final = 200


class Refused(LabrysError):  # noqa: N818 - as it reads in `except`
    """etcd answered with an error.

    Attributes:
        message: Its message, such as `etcdserver: leader changed`.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class Entry(NamedTuple):
    """A key with its value, as a node holds it.

    Attributes:
        key: The key.
        value: The value.
        created: The revision that created the key.
        modified: The revision of its last change.
    """

    key: str
    value: str
    created: int
    modified: int


class Answer:
    """The body of an answer; every member has the default of its type if it is absent."""

    def __init__(self, body: Mapping[str, Value]) -> None:
        self._body = body

    def number(self, name: str) -> int:
        """Returns a number, 0 if it is absent.

        Raises:
            NoAnswer: The member is no number.
        """
        value = self._body.get(name, 0)
        try:
            return int(value)
        except (TypeError, ValueError):
            raise NoAnswer(f"expected a number as {name}, found {str(value)[:MAX_MESSAGE]}") from None

    def flag(self, name: str) -> bool:
        """Returns whether a member is true."""
        return self._body.get(name) is True

    def header(self) -> Answer:
        """Returns the header: `revision`, `member_id`, `raft_term`."""
        header = self._body.get("header")
        return Answer(header if isinstance(header, dict) else {})

    def entries(self) -> list[Entry]:
        """Returns the keys of a range.

        Raises:
            NoAnswer: A key is not readable.
        """
        kvs = self._body.get("kvs", [])
        try:
            return [
                Entry(_text(kv["key"]), _text(kv.get("value", "")), int(kv["create_revision"]), int(kv["mod_revision"]))
                for kv in kvs
            ]
        except (TypeError, KeyError, ValueError, AttributeError) as error:
            raise NoAnswer(
                f"expected keys with values and revisions, found {str(kvs)[:MAX_MESSAGE]}: {error!r}"
            ) from error


class Gateway:
    """A connection to the gateway of one node."""

    def __init__(self, address: str) -> None:
        """Connects with the first request.

        Args:
            address: The address of the node.
        """
        self._url = f"http://{address}:{PORT}/v3/"
        self._session: aiohttp.ClientSession | None = None

    async def call(self, method: str, request: Mapping[str, Value]) -> Answer:
        """Sends a request, and returns the answer. The library never sends it twice, because it is a POST.

        Args:
            method: The path without `/v3/`, such as `kv/range`.
            request: The body.

        Raises:
            NotSent: The node got no request.
            NoAnswer: The node may have got it, and the answer is missing or not readable.
            Refused: etcd answered with an error.
        """
        import aiohttp  # noqa: PLC0415 - an extra, which only runs of etcd need

        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=1),
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT_S),
            )
        try:
            async with self._session.post(self._url + method, json=request, allow_redirects=False) as response:
                content = await _bounded(response)
                status = response.status
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            raise NotSent(_words(error)) from error
        except (aiohttp.ClientError, OSError) as error:
            raise NoAnswer(_words(error)) from error
        try:
            body = json.loads(content)
        except (ValueError, RecursionError):
            body = None
        if not isinstance(body, dict):
            raise NoAnswer(f"expected an object of JSON, found {content[:MAX_MESSAGE]!r} with the status {status}")
        if status != HTTP_OK:
            raise Refused(str(body.get("message", body.get("error", f"status {status}")))[:MAX_MESSAGE])
        return Answer(body)

    async def close(self) -> None:
        """Closes the connection."""
        if self._session is not None:
            await self._session.close()


async def _bounded(response: aiohttp.ClientResponse) -> bytes:
    parts: list[bytes] = []
    size = 0
    async for part in response.content.iter_any():
        size += len(part)
        if size > MAX_ANSWER_BYTES:
            raise NoAnswer(f"expected an answer of at most {MAX_ANSWER_BYTES >> 20} MiB, found a longer one")
        parts.append(part)
    return b"".join(parts)


def encoded(text: str) -> str:
    """Returns a key or a value as a request has it."""
    return base64.b64encode(text.encode()).decode()


def after(prefix: str) -> str:
    """Returns the end of the range of all keys with a prefix, as a request has it.

    Args:
        prefix: The prefix; its last character is below U+007F.
    """
    return encoded(prefix[:-1] + chr(ord(prefix[-1]) + 1))


def _text(value: Any) -> str:
    return base64.b64decode(value, validate=True).decode()


def _words(error: Exception) -> str:
    return str(error) or type(error).__name__
