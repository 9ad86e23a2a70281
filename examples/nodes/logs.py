#!/usr/bin/env python3
"""Logs in the service lin-kv: a key for each offset of each log, and one for each committed offset.

A compare-and-set takes the first free offset for a message, so an offset belongs to one message, and none stays empty. A
node remembers what it has seen of a log, since no message changes. With `--blind`, a planted bug, it takes an offset by a
write, so two nodes give one offset to two messages.

A compare-and-set raises the committed offset. With the planted bug `--last-commit`, a commit of an older offset lowers it. With
`--own-commits`, each node has its own committed offsets, in memory.
"""

import sys

from node import Node

node = Node()
LENGTH = 20  # messages of one poll
NO_SUCH_KEY = 20
PRECONDITION_FAILED = 22
OWN = {}  # the committed offsets of `--own-commits`
seen = {}  # by log and offset: a message
free = {}  # by log: the first offset that may be free
sends = 0


def unanswered(message):
    """Answers that nothing happened, since a read timed out."""
    node.reply(message, {"type": "error", "code": 11, "text": "lin-kv did not answer"})


def learn(key, offset, entry):
    """Remembers a message, which has the mark of its send beside it."""
    seen[key, offset] = entry[0]
    free[key] = max(free.get(key, 0), offset + 1)


@node.on("send")
def send(message):
    """Takes the first free offset."""
    global sends
    sends += 1
    key = message["body"]["key"]
    entry = [message["body"]["msg"], f"{node.name}/{sends}"]

    def take(offset):
        at = f"{key}/{offset}"

        def taken(answer):
            if answer["type"] != "error":
                done()
            elif answer["code"] == PRECONDITION_FAILED:
                free[key] = max(free.get(key, 0), offset + 1)
                take(free[key])
            else:
                look()

        def look():
            """Reads whose offset it is, after a request that may have taken effect."""
            node.ask("lin-kv", {"type": "read", "key": at}, looked)

        def looked(answer):
            if answer["type"] != "error":
                learn(key, offset, answer["value"])
                if answer["value"] == entry:
                    done()
                else:
                    take(free[key])
            elif answer["code"] == NO_SUCH_KEY:
                take(offset)
            else:
                look()

        def done():
            learn(key, offset, entry)
            node.reply(message, {"type": "send_ok", "offset": offset})

        if "--blind" in sys.argv:
            node.ask("lin-kv", {"type": "write", "key": at, "value": entry}, taken)
        else:
            change = {"type": "cas", "key": at, "from": None, "to": entry, "create_if_not_exists": True}
            node.ask("lin-kv", change, taken)

    take(free.get(key, 0))


@node.on("poll")
def poll(message):
    """Reads messages one after the other, until one is missing."""
    messages = {key: [] for key in message["body"]["offsets"]}
    waiting = list(message["body"]["offsets"].items())

    def next_log():
        if waiting:
            read(*waiting.pop())
        else:
            node.reply(message, {"type": "poll_ok", "msgs": messages})

    def read(key, offset):
        while (key, offset) in seen and len(messages[key]) < LENGTH:
            messages[key].append([offset, seen[key, offset]])
            offset += 1

        def got(answer):
            if answer["type"] != "error":
                learn(key, offset, answer["value"])
                read(key, offset)
            elif answer["code"] == NO_SUCH_KEY:
                next_log()
            else:
                unanswered(message)

        if len(messages[key]) == LENGTH:
            next_log()
        else:
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
    offsets = {}

    def next_log():
        if not waiting:
            node.reply(message, {"type": "list_committed_offsets_ok", "offsets": offsets})
            return
        key = waiting.pop()

        def got(answer):
            if answer["type"] != "error":
                offsets[key] = answer["value"]
            elif answer["code"] != NO_SUCH_KEY:
                unanswered(message)
                return
            next_log()

        if "--own-commits" in sys.argv:
            got({"type": "read_ok", "value": OWN[key]} if key in OWN else {"type": "error", "code": NO_SUCH_KEY})
        else:
            node.ask("lin-kv", {"type": "read", "key": f"committed/{key}"}, got)

    next_log()


node.run()
