#!/usr/bin/env python3
"""A node for the workload broadcast: it tells its neighbours what they have not confirmed, at once and then at intervals."""

from node import Node

AGAIN_MS = 200
node = Node()
seen = set()
confirmed = {}  # by neighbour: the values that it has


def tell():
    """Tells each neighbour the values that it may not have."""
    for neighbour, has in confirmed.items():
        values = sorted(seen - has)
        if values:
            node.ask(
                neighbour, {"type": "gossip", "values": values}, lambda _, has=has, values=values: has.update(values)
            )


@node.on("topology")
def topology(message):
    """Learns its neighbours."""
    for neighbour in message["body"]["topology"][node.name]:
        confirmed[neighbour] = set()
    node.reply(message, {"type": "topology_ok"})
    node.every(AGAIN_MS, tell)


@node.on("broadcast")
def broadcast(message):
    """Takes a value of a client."""
    seen.add(message["body"]["message"])
    node.reply(message, {"type": "broadcast_ok"})
    tell()


@node.on("gossip")
def gossip(message):
    """Takes values of another node."""
    values = set(message["body"]["values"])
    confirmed.get(message["src"], set()).update(values)
    node.reply(message, {"type": "gossip_ok"})
    if not values <= seen:
        seen.update(values)
        tell()


@node.on("read")
def read(message):
    """Answers with all values."""
    node.reply(message, {"type": "read_ok", "messages": sorted(seen)})


node.run()
