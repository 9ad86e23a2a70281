#!/usr/bin/env python3
"""Broadcast: each message goes to the neighbours at once, and again at intervals until they confirm it.

With `--once`, the planted bug, it goes to each neighbour once. A partition then loses it.
"""

import sys

from node import Node

node = Node()
seen = set()
neighbours = []
unconfirmed = {}
AGAIN_MS = 200


def learn(values, source):
    """Takes new values, and passes them on to the neighbours that may not know them."""
    new = [value for value in values if value not in seen]
    seen.update(new)
    for other in neighbours:
        if new and other != source:
            unconfirmed.setdefault(other, set()).update(new)
            pass_on(other, new)


def pass_on(other, values):
    """Sends values to a neighbour, and forgets them when it confirms them."""
    if "--once" in sys.argv:
        node.send(other, {"type": "gossip", "values": values})
        return
    node.ask(other, {"type": "gossip", "values": values}, lambda _: unconfirmed[other].difference_update(values))


@node.on("topology")
def topology(message):
    """Learns its neighbours."""
    neighbours[:] = message["body"]["topology"][node.name]
    node.reply(message, {"type": "topology_ok"})
    if "--once" not in sys.argv:
        node.every(AGAIN_MS, again)


def again():
    """Sends what a neighbour has not confirmed."""
    for other, values in unconfirmed.items():
        if values:
            pass_on(other, sorted(values))


@node.on("broadcast")
def broadcast(message):
    """Takes a message of a client."""
    learn([message["body"]["message"]], None)
    node.reply(message, {"type": "broadcast_ok"})


@node.on("gossip")
def gossip(message):
    """Takes messages of a neighbour."""
    learn(message["body"]["values"], message["src"])
    if "msg_id" in message["body"]:
        node.reply(message, {"type": "gossip_ok"})


@node.on("read")
def read(message):
    """Answers with all messages."""
    node.reply(message, {"type": "read_ok", "messages": sorted(seen)})


node.run()
