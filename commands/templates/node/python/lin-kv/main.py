#!/usr/bin/env python3
"""A node for the workload lin-kv: it asks the service lin-kv, and gives its answer to the client."""

from node import Node

node = Node()


def forward(message):
    """Asks the service."""
    request = {key: value for key, value in message["body"].items() if key != "msg_id"}
    node.ask("lin-kv", request, lambda answer: node.reply(message, answer))


for kind in ("read", "write", "cas"):
    node.on(kind)(forward)

node.run()
