"""Registers in a service: each request goes there with the client as its sender, so the service answers the client.

With `--seq-kv`, another service gets them, which is not linearizable.
"""

from __future__ import annotations

import sys

from wire import answer, messages, write

for message in messages():
    if message["body"]["type"] == "init":
        answer(message["body"]["node_id"], message)
    else:
        write({**message, "dest": "seq-kv" if "--seq-kv" in sys.argv else "lin-kv"})
