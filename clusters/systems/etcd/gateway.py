"""The JSON gateway of an etcd node: requests, answers, and what is known of a request without an answer.

The gateway is HTTP in front of etcd's gRPC service, on the port for clients. Keys and values are base64. 64-bit numbers are
texts of decimal digits. An answer leaves out members that are false, 0 or empty.

Source: etcd's documentation, "gRPC gateway", and the JSON mapping of Protocol Buffers 3.
"""

from __future__ import annotations

import base64
import json
from collections import deque
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from clusters.kit.answers import NoAnswer, Refused
from clusters.kit.http import LONGER, MAX_ANSWER_BYTES, Http, answering

if TYPE_CHECKING:
    from collections.abc import Mapping

    import aiohttp

    from harness.op import Value

PORT: Final = 2379
HTTP_OK: Final = 200
MAX_MESSAGE: Final = 200


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

    def message(self, absent: str) -> str:
        """Returns the message of an error, shortened; `absent` if it has none."""
        return str(self._body.get("message", self._body.get("error", absent)))[:MAX_MESSAGE]

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
            return [_entry(kv) for kv in kvs]
        except _UNREADABLE as error:
            raise NoAnswer(
                f"expected keys with values and revisions, found {str(kvs)[:MAX_MESSAGE]}: {error!r}"
            ) from error

    def ranges(self, count: int) -> list[list[Entry]]:
        """Returns the keys of each range of a transaction.

        Args:
            count: How many ranges the transaction has.

        Raises:
            NoAnswer: The ranges are not readable, or there are more or fewer of them.
        """
        responses = self._body.get("responses", [])
        try:
            ranges = [Answer(response["response_range"]).entries() for response in responses]
        except _UNREADABLE as error:
            raise NoAnswer(
                f"expected the ranges of a transaction, found {str(responses)[:MAX_MESSAGE]}: {error!r}"
            ) from error
        if len(ranges) != count:
            raise NoAnswer(f"expected {count} ranges of a transaction, found {len(ranges)}")
        return ranges

    def events(self) -> list[Entry]:
        """Returns the puts that a message of a watch shows, in its order.

        Raises:
            NoAnswer: The message is not readable, or the watch has ended.
        """
        try:
            result = self._body["result"]
            if result.get("canceled"):
                raise NoAnswer(f"etcd cancelled the watch: {str(result)[:MAX_MESSAGE]}")
            return [_entry(event["kv"]) for event in result.get("events", []) if event.get("type", "PUT") == "PUT"]
        except _UNREADABLE as error:
            raise NoAnswer(
                f"expected the events of a watch, found {str(self._body)[:MAX_MESSAGE]}: {error!r}"
            ) from error


class Gateway:
    """A connection to the gateway of one node."""

    def __init__(self, address: str) -> None:
        """Connects with the first request.

        Args:
            address: The address of the node.
        """
        self._http = _http(address)

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
        status, content = await self._http.send("POST", method, json=request)
        answer = _parsed(content, status)
        if status != HTTP_OK:
            message = answer.message(f"status {status}")
            raise Refused(message, message)
        return answer

    async def close(self) -> None:
        """Closes the connection."""
        await self._http.close()


class Watch:
    """The events of one key, as a node sends them on a connection of their own.

    Attributes:
        following: The revision after the last event that was taken; before the first one, that from which on the watch begins.
    """

    def __init__(self, address: str, key: str, first: int) -> None:
        """Connects with the first wait.

        Args:
            address: The address of the node.
            key: The key.
            first: The revision from which on the watch shows the changes of the key.
        """
        self.following = first
        self._http = _http(address)
        start = max(1, first)  # 0 would be now
        self._create = {"create_request": {"key": encoded(key), "start_revision": str(start)}}
        self._response: aiohttp.ClientResponse | None = None
        self._shown = start - 1  # the highest revision among the events so far
        self._part = b""  # the begin of a line whose end has not come
        self._events: deque[Entry] = deque()

    async def until(self, revision: int) -> None:
        """Waits until an event of this or a higher revision has come. It may be cancelled, and loses no event then.

        Raises:
            NotSent: The node got no request.
            NoAnswer: The watch has ended, or sent what is no event.
        """
        with answering():
            if self._response is None:
                self._response = await self._http.open("POST", "watch", json=self._create)
            while self._shown < revision:
                self._receive(await self._response.content.readany(), self._response.status)

    def _receive(self, more: bytes, status: int) -> None:
        if not more:
            raise NoAnswer("the watch has ended")
        *lines, self._part = (self._part + more).split(b"\n")
        if len(self._part) > MAX_ANSWER_BYTES:
            raise NoAnswer(LONGER)
        for line in lines:
            for event in _parsed(line, status).events():
                self._events.append(event)
                self._shown = max(self._shown, event.modified)

    def take(self, last: int) -> list[Entry]:
        """Returns the events that came and were not taken, in the order in which they came, until one is above `last`."""
        taken = []
        while self._events and self._events[0].modified <= last:
            taken.append(self._events.popleft())
        self.following = max([self.following, *(event.modified + 1 for event in taken)])
        return taken

    async def close(self) -> None:
        """Closes the connection."""
        if self._response is not None:
            self._response.close()
        await self._http.close()


_UNREADABLE: Final = (TypeError, KeyError, ValueError, AttributeError)


def _http(address: str) -> Http:
    return Http(f"http://{address}:{PORT}/v3/")


def _parsed(content: bytes, status: int) -> Answer:
    try:
        body = json.loads(content)
    except (ValueError, RecursionError):
        body = None
    if not isinstance(body, dict):
        raise NoAnswer(f"expected an object of JSON, found {content[:MAX_MESSAGE]!r} with the status {status}")
    return Answer(body)


def _entry(kv: Any) -> Entry:
    return Entry(_text(kv["key"]), _text(kv.get("value", "")), int(kv["create_revision"]), int(kv["mod_revision"]))


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
