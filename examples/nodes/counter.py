#!/usr/bin/env python3
"""A counter without coordination: each node counts its own adds, and tells the others its counts now and then.

With `--sum`, the planted bug, it adds what others tell in place of taking the largest. A message that comes twice counts twice.
"""

import sys

from node import Node

node = Node()
counts = {}  # by node: the sum of the positive and of the negative adds
INTERVAL_MS = 300


@node.at_start
def start():
    """Begins to count."""
    counts[node.name] = [0, 0]
    node.every(INTERVAL_MS, tell)


def tell():
    """Tells all others what it knows."""
    for other in node.names:
        if other != node.name:
            node.send(other, {"type": "counts", "counts": counts})


@node.on("counts")
def learn(message):
    """Takes the larger of two counts, since both only grow."""
    for name, (more, less) in message["body"]["counts"].items():
        mine = counts.setdefault(name, [0, 0])
        if "--sum" in sys.argv and name != node.name:
            counts[name] = [mine[0] + more, mine[1] + less]
        else:
            counts[name] = [max(mine[0], more), max(mine[1], less)]


@node.on("add")
def add(message):
    """Counts an add."""
    delta = message["body"]["delta"]
    counts[node.name][delta < 0] += abs(delta)
    node.reply(message, {"type": "add_ok"})


@node.on("read")
def read(message):
    """Answers with the sum of all counts that it knows."""
    node.reply(message, {"type": "read_ok", "value": sum(more - less for more, less in counts.values())})


node.run()
