"""A set that grows. The nodes number their messages to each other and to services with texts, and add members of their own.

A node repeats an element every 200 ms until the other node has confirmed it. Its clock is `timer`. With `--once`, it does not.
"""

from __future__ import annotations

import sys
from typing import Any

from wire import answer, messages, say

AGAIN_MS = 200


def main() -> None:  # noqa: C901 - one branch for each type
    """Handles messages until stdin ends."""
    name, names = "", []
    elements: list[Any] = []
    unconfirmed: dict[str, tuple[str, Any]] = {}
    for message in messages():
        body = message["body"]
        kind = body.get("type")
        if kind == "init":
            name, names = body["node_id"], body["node_ids"]
            answer(name, message)
        elif kind == "add":
            elements.append(body["element"])
            for other in names:
                if other != name:
                    number = f"{name} to {other}, {len(elements)}"
                    unconfirmed[number] = other, body["element"]
                    say(name, other, type="element", msg_id=number, element=body["element"], hops=[name])
            answer(name, message, note={"also": ["a member", 1.5]})
        elif kind == "read":
            answer(name, message, value=elements, msg_id=f"read {len(elements)}")
        elif kind == "element":
            if body["element"] not in elements:
                elements.append(body["element"])
            say(name, message["src"], in_reply_to=body["msg_id"])  # a confirmation has no type
        elif kind == "wait_ok":
            for number, (other, element) in unconfirmed.items():
                say(name, other, type="element", msg_id=number, element=element, hops=[name, "again"])
        else:
            unconfirmed.pop(body["in_reply_to"], None)
        if kind in {"init", "wait_ok"} and "--once" not in sys.argv:
            say(name, "timer", type="wait", ms=AGAIN_MS, msg_id=f"after {len(elements)}")


main()
