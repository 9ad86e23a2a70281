#!/usr/bin/env python3
"""Broadcast over a hub: all nodes tell the first node, and the first node tells all others.

With `--batch MILLISECONDS`, a node collects what it tells for so long. So fewer messages carry it, and they arrive later. A
message that is not confirmed is sent again.
"""

import sys

from node import Node

node = Node()
BATCH_MS = int(sys.argv[sys.argv.index("--batch") + 1]) if "--batch" in sys.argv else 0
AGAIN_MS = 1000
seen = set()
collected = set()
unconfirmed = {}


def others():
    """Returns the nodes that this node tells."""
    hub = node.names[0]
    return [name for name in node.names if name != hub] if node.name == hub else [hub]


def learn(values, source):
    """Takes values, and tells the others those that are new."""
    new = set(values) - seen
    seen.update(new)
    for other in others():
        if other != source:
            unconfirmed.setdefault(other, set()).update(new)
    collected.update(new)
    if not BATCH_MS:
        tell()


def tell():
    """Tells what it has collected."""
    for other in others():
        values = collected & unconfirmed.get(other, set())
        if values:
            send(other, values)
    collected.clear()


def send(other, values):
    """Sends values until they are confirmed."""
    node.ask(other, {"type": "tell", "values": sorted(values)}, lambda _: unconfirmed[other].difference_update(values))


@node.at_start
def start():
    """Begins to send."""
    if BATCH_MS:
        node.every(BATCH_MS, tell)
    node.every(AGAIN_MS, again)


waiting = {}


def again():
    """Sends what a node has not confirmed for a whole interval."""
    for other, values in unconfirmed.items():
        late = values & waiting.get(other, set())
        if late:
            send(other, late)
        waiting[other] = set(values)


@node.on("topology")
def topology(message):
    """Ignores the neighbours."""
    node.reply(message, {"type": "topology_ok"})


@node.on("broadcast")
def broadcast(message):
    """Takes a message of a client."""
    node.reply(message, {"type": "broadcast_ok"})
    learn([message["body"]["message"]], None)


@node.on("tell")
def told(message):
    """Takes values of another node."""
    node.reply(message, {"type": "tell_ok"})
    learn(message["body"]["values"], message["src"])


@node.on("read")
def read(message):
    """Answers with all messages."""
    node.reply(message, {"type": "read_ok", "messages": sorted(seen)})


node.run()
