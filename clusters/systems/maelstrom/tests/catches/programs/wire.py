"""Messages as lines of JSON, and nothing more: the programs of this folder write them as they come."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


def messages() -> Iterator[Any]:
    """Yields the messages of stdin."""
    for line in sys.stdin:
        yield json.loads(line)


def write(message: Any) -> None:
    """Writes a message as it is."""
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def say(source: str, dest: str, **body: Any) -> None:
    """Writes a message with a body."""
    write({"src": source, "dest": dest, "body": body})


def hand_on(message: Any, dest: str) -> None:
    """Writes a message to another node or to a service, with its own sender."""
    write({**message, "dest": dest})


def answer(name: str, message: Any, **body: Any) -> None:
    """Answers a message; the type is that of the message with `_ok`, if no other is given."""
    asked = message["body"]
    say(name, message["src"], **{"type": asked["type"] + "_ok", "in_reply_to": asked["msg_id"], **body})


def requests() -> Iterator[tuple[str, list[str], Any]]:
    """Answers `init`, and yields each later message, with the node's name and the names of all nodes."""
    name, names = "", []
    for message in messages():
        body = message["body"]
        if body["type"] == "init":
            name, names = body["node_id"], body["node_ids"]
            answer(name, message)
        else:
            yield name, names, message
