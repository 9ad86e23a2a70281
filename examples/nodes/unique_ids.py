#!/usr/bin/env python3
"""Identifiers: the node's name, a random number of this start, and a number that counts.

With `--forget-start`, the planted bug, the second is missing. A node that was killed then gives the same identifiers again.
"""

import sys

from node import Node

node = Node()
start = node.random.getrandbits(64)
count = 0


@node.on("generate")
def generate(message):
    """Answers with a new identifier."""
    global count
    count += 1
    parts = [node.name, count] if "--forget-start" in sys.argv else [node.name, start, count]
    node.reply(message, {"type": "generate_ok", "id": "-".join(map(str, parts))})


node.run()
