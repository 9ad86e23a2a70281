"""The keys of the workloads of Maelstrom: the numbers 0, 1, ... in decimal, as its programs expect them.

Programs may choose a shard by `key % n`, or by `int(key) % n` where a request has the key as a text.
"""

from __future__ import annotations

from typing import Final

NUMBERED: Final = ""  # what each key begins with before its number
