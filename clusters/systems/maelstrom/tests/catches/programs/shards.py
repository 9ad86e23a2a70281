"""Logs on shards: the node `key % nodes` has a log, and the others hand its requests on.

Offsets begin at 1, and a list without a commit has offset 0. With `--own`, each node is the owner of all logs.
"""

from __future__ import annotations

import sys
from typing import Any

from wire import answer, hand_on, requests


def key_of(body: Any) -> str:
    """Returns the key of a request."""
    key: str
    (key,) = [body["key"]] if "key" in body else body.get("keys") or body["offsets"]
    return key


def main() -> None:
    """Handles messages until stdin ends."""
    logs: dict[str, list[Any]] = {}
    committed: dict[str, int] = {}
    for name, names, message in requests():
        body = message["body"]
        kind = body["type"]
        key = key_of(body)
        owner = name if "--own" in sys.argv else names[int(key) % len(names)]
        log = logs.setdefault(key, [])
        if owner != name:
            hand_on(message, owner)
        elif kind == "send":
            log.append([len(log) + 1, body["msg"]])
            answer(name, message, offset=len(log))
        elif kind == "poll":
            answer(name, message, msgs={key: [entry for entry in log if entry[0] >= body["offsets"][key]]})
        elif kind == "commit_offsets":
            committed[key] = max(body["offsets"][key], committed.get(key, 0))
            answer(name, message)
        else:
            answer(name, message, offsets={key: committed.get(key, 0)})


main()
