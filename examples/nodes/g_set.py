#!/usr/bin/env python3
"""A set that grows: each node sends all that it knows to all others, again and again."""

from node import Node

node = Node()
elements = set()
AGAIN_MS = 200


@node.on("add")
def add(message):
    """Takes an element of a client."""
    elements.add(message["body"]["element"])
    node.reply(message, {"type": "add_ok"})


@node.on("read")
def read(message):
    """Answers with all elements."""
    node.reply(message, {"type": "read_ok", "value": sorted(elements)})


@node.on("known")
def known(message):
    """Takes the elements of another node."""
    elements.update(message["body"]["elements"])


@node.at_start
def start():
    """Begins to tell."""
    node.every(AGAIN_MS, tell)


def tell():
    """Sends all elements to all others."""
    for other in node.names:
        if other != node.name:
            node.send(other, {"type": "known", "elements": sorted(elements)})


node.run()
