"""A counter in seq-kv. A node makes its key there before it answers `init`, and reads the keys of all nodes.

With `--one-key`, all nodes write the sum of one key, which loses adds of nodes that read the same sum.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from wire import answer, messages, say

if TYPE_CHECKING:
    from collections.abc import Callable

ONE_KEY = "--one-key" in sys.argv


class Counter:
    """The counter of a node."""

    def __init__(self) -> None:
        self.name = ""
        self.names: list[str] = []
        self.own = 0
        self.asked = 0
        self.waiting: dict[int, Callable[[Any], None]] = {}

    def ask(self, then: Callable[[Any], None], **body: Any) -> None:
        """Sends a request to the service; its answer goes to a function."""
        self.asked += 1
        self.waiting[self.asked] = then
        say(self.name, "seq-kv", msg_id=self.asked, **body)

    def key_of(self, node: str) -> str:
        """Returns the key of a node."""
        return "sum" if ONE_KEY else node

    def init(self, message: Any) -> None:
        """Makes the key of the node, and then answers."""
        self.name, self.names = message["body"]["node_id"], message["body"]["node_ids"]
        self.ask(lambda _: answer(self.name, message), type="write", key=self.key_of(self.name), value=0)

    def add(self, message: Any) -> None:
        """Adds to the own sum; with one key, to the sum that is there."""

        def write(value: int) -> None:
            self.ask(lambda _: answer(self.name, message), type="write", key=self.key_of(self.name), value=value)

        delta = message["body"]["delta"]
        if ONE_KEY:
            self.ask(lambda reply: write(reply["value"] + delta), type="read", key="sum")
        else:
            self.own += delta
            write(self.own)

    def read(self, message: Any) -> None:
        """Adds up all sums. A write comes first, so that the node sees the newest state."""
        keys = sorted({self.key_of(node) for node in self.names})
        values: dict[str, int] = {}

        def take(key: str, body: Any) -> None:
            values[key] = body.get("value", 0)
            if len(values) == len(keys):
                answer(self.name, message, value=sum(values.values()))

        def seen(_: Any) -> None:
            for key in keys:
                self.ask(lambda body, key=key: take(key, body), type="read", key=key)  # type: ignore[misc]

        self.ask(seen, type="write", key=f"seen by {self.name}", value=self.asked)

    def run(self) -> None:
        """Handles messages until stdin ends."""
        for message in messages():
            body = message["body"]
            if "in_reply_to" in body:
                self.waiting.pop(body["in_reply_to"])(body)
            else:
                {"init": self.init, "add": self.add, "read": self.read}[body["type"]](message)


Counter().run()
