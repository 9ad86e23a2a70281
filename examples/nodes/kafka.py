#!/usr/bin/env python3
"""Logs in the service lin-kv: a key for the next offset of each log, and a key for each message.

A compare-and-set of the next offset gives an offset to one message only. With `--blind`, the planted bug, it is a write, so two
nodes give one offset to two messages.
"""

import sys

from node import Node

node = Node()
LENGTH = 20  # messages of one poll


@node.on("send")
def send(message):
    """Takes the next offset."""
    body = message["body"]

    def got(answer):
        take(answer.get("value", 0))

    def take(offset):
        def taken(answer):
            if answer["type"] == "error":
                node.ask("lin-kv", {"type": "read", "key": f"next/{body['key']}"}, got)
            else:
                node.ask("lin-kv", {"type": "write", "key": f"{body['key']}/{offset}", "value": body["msg"]}, written)

        def written(_):
            node.reply(message, {"type": "send_ok", "offset": offset})

        if "--blind" in sys.argv:
            node.ask("lin-kv", {"type": "write", "key": f"next/{body['key']}", "value": offset + 1}, taken)
            return
        change = {"type": "cas", "key": f"next/{body['key']}", "from": offset, "to": offset + 1}
        node.ask("lin-kv", {**change, "create_if_not_exists": offset == 0}, taken)

    node.ask("lin-kv", {"type": "read", "key": f"next/{body['key']}"}, got)


@node.on("poll")
def poll(message):
    """Reads messages one after the other, until one is missing."""
    found = {key: [] for key in message["body"]["offsets"]}
    waiting = list(message["body"]["offsets"].items())

    def next_log():
        if not waiting:
            node.reply(message, {"type": "poll_ok", "msgs": found})
            return
        key, offset = waiting.pop()
        read(key, offset)

    def read(key, offset):
        def got(answer):
            if answer["type"] == "error" or len(found[key]) == LENGTH:
                next_log()
                return
            found[key].append([offset, answer["value"]])
            read(key, offset + 1)

        node.ask("lin-kv", {"type": "read", "key": f"{key}/{offset}"}, got)

    next_log()


node.run()
