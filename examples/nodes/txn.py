#!/usr/bin/env python3
"""Transactions over one database, which is one key of the service lin-kv.

A compare-and-set commits a transaction if nobody else did meanwhile. With `--blind`, the planted bug, it is a write, so a
transaction can overwrite what another one has done.
"""

import sys

from node import Node

node = Node()


@node.on("txn")
def txn(message):
    """Carries out a transaction on a copy of the database, and commits the copy."""

    def got(answer):
        before = answer.get("value")
        after = dict(before or {})
        done = [apply(after, *operation) for operation in message["body"]["txn"]]

        def committed(answer):
            if answer["type"] == "error":
                node.reply(message, {"type": "error", "code": 30, "text": "another transaction committed first"})
            else:
                node.reply(message, {"type": "txn_ok", "txn": done})

        if "--blind" in sys.argv:
            node.ask("lin-kv", {"type": "write", "key": "db", "value": after}, committed)
        else:
            change = {"type": "cas", "key": "db", "from": before, "to": after, "create_if_not_exists": before is None}
            node.ask("lin-kv", change, committed)

    node.ask("lin-kv", {"type": "read", "key": "db"}, got)


def apply(database, kind, key, value):
    """Carries out a micro-operation, and returns it with its result."""
    name = str(key)
    if kind == "r":
        return [kind, key, database.get(name)]
    database[name] = [*database.get(name, []), value] if kind == "append" else value
    return [kind, key, value]


node.run()
