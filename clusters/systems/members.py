"""What a node's name and address must be like where a list of members is one text, as RocketMQ's and DLedger's is."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from harness.errors import InputError

if TYPE_CHECKING:
    from harness.node import Node

NAME = re.compile(r"[A-Za-z0-9._]+")


def check_member(node: Node, system: str) -> None:
    """Holds a node to what `id-host:port;...` and `host:port,...` can say: an id ends at a hyphen, a host at a colon.

    Raises:
        InputError: The system cannot use the node; the message says how to name it.
    """
    if not NAME.fullmatch(node.name) or ":" in node.address:
        raise InputError(
            f"{system} cannot use a node named {node.name!r} at {node.address!r}: name it with letters, digits, dots and "
            "underscores only, and give it an IPv4 address or a host name"
        )
