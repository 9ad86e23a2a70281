#!/usr/bin/env python3
"""Identifiers: the node's name and a number. After a restart, `number` would begin again, so the start of the node counts too."""

import sys
import time

from node import Node

node = Node()
start = time.time_ns()
count = 0


@node.on("generate")
def generate(message):
    """Answers with a new identifier."""
    global count
    count += 1
    # The planted bug: without the time of the start, a node that was killed gives the same identifiers again.
    parts = [node.name, count] if "--forget-start" in sys.argv else [node.name, start, count]
    node.reply(message, {"type": "generate_ok", "id": "-".join(map(str, parts))})


node.run()
