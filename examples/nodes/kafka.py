#!/usr/bin/env python3
"""Logs in the service lin-kv: for each log, a key for its next offset, one for its committed offset, and one for each message.

A compare-and-set of the next offset gives an offset to one message only. With `--blind`, a planted bug, it is a write, so two
nodes give one offset to two messages.

A compare-and-set raises the committed offset. With the planted bug `--last-commit`, a commit of an older offset lowers it. With
`--own-commits`, each node has its own committed offsets, in memory.
"""

import sys

from node import Node

node = Node()
LENGTH = 20  # messages of one poll
NO_SUCH_KEY = 20
OWN = {}  # the committed offsets of `--own-commits`


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


@node.on("commit_offsets")
def commit(message):
    """Raises the committed offsets, one log after the other."""
    waiting = list(message["body"]["offsets"].items())

    def next_log():
        if not waiting:
            node.reply(message, {"type": "commit_offsets_ok"})
            return
        key, offset = waiting.pop()
        if "--own-commits" in sys.argv:
            OWN[key] = max(offset, OWN.get(key, offset))
            next_log()
            return
        at = {"key": f"committed/{key}"}

        def got(answer):
            before = answer.get("value")
            if before is not None and before >= offset and "--last-commit" not in sys.argv:
                next_log()
                return
            change = {"type": "cas", **at, "from": before, "to": offset, "create_if_not_exists": before is None}
            node.ask("lin-kv", change, changed)

        def changed(answer):
            if answer["type"] == "error":
                node.ask("lin-kv", {"type": "read", **at}, got)
            else:
                next_log()

        node.ask("lin-kv", {"type": "read", **at}, got)

    next_log()


@node.on("list_committed_offsets")
def list_committed(message):
    """Reads the committed offsets, one log after the other. It leaves out logs without one."""
    waiting = list(message["body"]["keys"])
    found = {}

    def next_log():
        if not waiting:
            node.reply(message, {"type": "list_committed_offsets_ok", "offsets": found})
            return
        key = waiting.pop()

        def got(answer):
            if answer["type"] != "error":
                found[key] = answer["value"]
            elif answer["code"] != NO_SUCH_KEY:
                node.reply(message, {"type": "error", "code": 11, "text": "lin-kv did not answer"})
                return
            next_log()

        if "--own-commits" in sys.argv:
            got({"type": "read_ok", "value": OWN[key]} if key in OWN else {"type": "error", "code": NO_SUCH_KEY})
        else:
            node.ask("lin-kv", {"type": "read", "key": f"committed/{key}"}, got)

    next_log()


node.run()
