#!/usr/bin/env python3
"""A node for the workload echo: it answers with what it got."""

from node import Node

node = Node()


@node.on("echo")
def echo(message):
    """Answers a request."""
    node.reply(message, {"type": "echo_ok", "echo": message["body"]["echo"]})


node.run()
