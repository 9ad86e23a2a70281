#!/usr/bin/env python3
"""Transactions over registers that each node carries out by itself, also behind a partition. The result is read committed.

A transaction happens at one moment at its node, and gets a Lamport stamp, which is larger than all that its node has seen. Each
node keeps for each key the write with the largest stamp. So all nodes have the writes of a key in one order.

A node tells each other node what it wrote, in one message, and waits until that is confirmed before it tells more. After a
time it sends the message again. A message has all writes of its transactions, and they are applied at one moment, so nobody
reads a part of a transaction. All is in memory: a kill loses what others do not know yet.

With the planted bug `--write-by-write`, each write has a message of its own, also one that its transaction replaces later.
"""

import sys

from node import Node

node = Node()
registers = {}  # by key: the value, and its stamp, a list of a number and the name of a node
untold = {}  # by node: what it has not confirmed, by key as in `registers`
told = {}  # by node: what the message in flight has
latest = 0
TELL_MS = 20
AGAIN_MS = 500


@node.at_start
def start():
    """Begins to tell the others."""
    for other in node.names:
        if other != node.name:
            untold[other] = {}
            told[other] = None
    node.every(TELL_MS, tell_all)


def tell_all():
    """Tells each node what is new for it, unless a message to it is in flight."""
    for other, writes in untold.items():
        if writes and told[other] is None:
            tell(other)


def tell(other):
    """Sends all that a node has not confirmed."""
    sent = told[other] = dict(untold[other])

    def confirmed(_):
        for key, write in sent.items():
            if untold[other].get(key) == write:
                del untold[other][key]
        if told[other] is sent:
            told[other] = None

    def again():
        if told[other] is sent:
            tell(other)

    node.ask(other, {"type": "writes", "writes": list(sent.items())}, confirmed)
    node.after(AGAIN_MS, again)


@node.on("writes")
def learn(message):
    """Applies the writes of another node at once."""
    global latest
    for key, write in message["body"]["writes"]:
        latest = max(latest, write[1][0])
        if key not in registers or registers[key][1] < write[1]:
            registers[key] = write
    if "msg_id" in message["body"]:
        node.reply(message, {"type": "writes_ok"})


@node.on("txn")
def txn(message):
    """Carries out a transaction."""
    global latest
    latest += 1
    done, written = [], {}
    for kind, key, value in message["body"]["txn"]:
        if kind == "r":
            pair = written.get(key) or registers.get(key)
            done.append([kind, key, pair and pair[0]])
        else:
            written[key] = [value, [latest, node.name]]
            done.append([kind, key, value])
            if "--write-by-write" in sys.argv:
                for other in untold:
                    node.send(other, {"type": "writes", "writes": [[key, written[key]]]})
    registers.update(written)
    if "--write-by-write" not in sys.argv:
        for writes in untold.values():
            writes.update(written)
    node.reply(message, {"type": "txn_ok", "txn": done})


node.run()
