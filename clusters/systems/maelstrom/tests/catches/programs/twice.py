"""A broadcast in the style of a program in Go: a list without elements is null, and nobody looks whether it has one already.

A read returns each message twice, and one that nobody sent. With `--own`, a node tells no other one its messages.
"""

from __future__ import annotations

import sys
from typing import Any

from wire import answer, messages, say


def main() -> None:
    """Handles messages until stdin ends."""
    name, names = "", []
    known: list[Any] = []
    for message in messages():
        body = message["body"]
        if body["type"] == "init":
            name, names = body["node_id"], body["node_ids"]
        if body["type"] == "read":
            answer(name, message, messages=[*known, *known, "greeting"] if known else None)
        elif body["type"] == "tell":
            known.append(body["message"])
        else:
            answer(name, message)
        if body["type"] == "broadcast":
            known.append(body["message"])
            for other in names:
                if other != name and "--own" not in sys.argv:
                    say(name, other, type="tell", message=body["message"])


main()
