"""Registers with a leader, n0. A follower hands a client's message on as it is, with the client as its sender.

The leader answers the client, and tells the followers what it wrote. With `--local-reads`, a follower answers reads from that.
"""

from __future__ import annotations

import sys
from typing import Any

from wire import answer, hand_on, requests, say

LEADER = "n0"


def main() -> None:
    """Handles messages until stdin ends."""
    values: dict[int, Any] = {}
    for name, names, message in requests():
        body = message["body"]
        kind = body["type"]
        if kind == "wrote":
            values[body["key"]] = body["value"]
        elif name != LEADER and not (kind == "read" and "--local-reads" in sys.argv):
            hand_on(message, LEADER)
        elif kind == "read" and body["key"] in values:
            answer(name, message, value=values[body["key"]])
        elif kind == "read" or (kind == "cas" and body["key"] not in values):
            answer(name, message, type="error", code=20, text="no such key")
        elif kind == "cas" and values[body["key"]] != body["from"]:
            answer(name, message, type="error", code=22, text="another value")
        else:
            values[body["key"]] = body["to"] if kind == "cas" else body["value"]
            for other in names:
                if other != name:
                    say(name, other, type="wrote", key=body["key"], value=values[body["key"]])
            answer(name, message)


main()
