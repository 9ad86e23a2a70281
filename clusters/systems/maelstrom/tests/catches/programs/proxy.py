"""Registers in a service: each request goes there with the client as its sender, so the service answers the client.

With `--seq-kv`, another service gets them, which is not linearizable.
"""

from __future__ import annotations

import sys

from wire import hand_on, requests

for _, _, request in requests():
    hand_on(request, "seq-kv" if "--seq-kv" in sys.argv else "lin-kv")
