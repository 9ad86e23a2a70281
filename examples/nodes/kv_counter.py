#!/usr/bin/env python3
"""A counter in the service lin-kv: each node has a key of its own with the sum of its adds, and a read asks for all keys.

Only the node writes its key, so it can repeat a write that timed out: the same sum twice is the same. With `--shared`, the planted
bug, all nodes add to one key with cas, and repeat a cas that timed out as if it had failed. If it did not fail, it counts twice.
"""

import sys

from node import Node

node = Node()
SERVICE = "lin-kv"
MISSING = 20
SHARED = "--shared" in sys.argv
total = 0  # of the adds here
waiting = []  # adds whose sum is not written yet


def get(key, then):
    """Calls `then` with the value of a key, 0 if it is missing; asks again after any other error."""

    def answered(body):
        if body["type"] == "read_ok":
            then(body["value"])
        elif body["code"] == MISSING:
            then(0)
        else:
            get(key, then)

    node.ask(SERVICE, {"type": "read", "key": key}, answered)


@node.at_start
def start():
    """Reads what this node had counted before it was killed."""

    def read(value):
        global total, ready
        total, ready = value, True
        write()

    get(node.name, read)


ready = False
writing = False


def write():
    """Writes the sum, and then answers the adds in it. There is one write at a time."""
    global total, writing
    if writing or not ready or not waiting:
        return
    writing, taken = True, waiting[:]
    waiting.clear()
    total += sum(message["body"]["delta"] for message in taken)

    def put():
        node.ask(SERVICE, {"type": "write", "key": node.name, "value": total}, answered)

    def answered(body):
        global writing
        if body["type"] != "write_ok":
            put()
            return
        writing = False
        for message in taken:
            node.reply(message, {"type": "add_ok"})
        write()

    put()


def add_shared(message):
    """Adds to the shared key by a cas, until one does not fail."""

    def swap(value):
        new = value + message["body"]["delta"]
        cas = {"type": "cas", "key": "sum", "from": value, "to": new, "create_if_not_exists": True}
        node.ask(SERVICE, cas, answered)

    def answered(body):
        if body["type"] == "cas_ok":
            node.reply(message, {"type": "add_ok"})
        else:
            get("sum", swap)

    get("sum", swap)


@node.on("add")
def add(message):
    """Counts an add."""
    if SHARED:
        add_shared(message)
    else:
        waiting.append(message)
        write()


@node.on("read")
def read(message):
    """Answers with the sum of all keys."""
    keys = ["sum"] if SHARED else node.names
    values = []

    def one(value):
        values.append(value)
        if len(values) == len(keys):
            node.reply(message, {"type": "read_ok", "value": sum(values)})

    for key in keys:
        get(key, one)


node.run()
