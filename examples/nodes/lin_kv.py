#!/usr/bin/env python3
"""Registers that the service lin-kv holds: each request goes there, and its answer back.

With `--service seq-kv`, the planted bug, a read can return an old value.
"""

import sys

from node import Node

node = Node()
SERVICE = sys.argv[sys.argv.index("--service") + 1] if "--service" in sys.argv else "lin-kv"


def forward(message):
    """Asks the service, and answers with its answer."""
    request = {key: value for key, value in message["body"].items() if key != "msg_id"}
    node.ask(SERVICE, request, lambda answer: node.reply(message, answer))


for kind in ("read", "write", "cas"):
    node.on(kind)(forward)

node.run()
