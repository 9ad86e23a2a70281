"""The nodes of a cluster as members in one text, as DLedger's and RocketMQ's lists of members are: `id-host:port;...`.

An id ends at the first hyphen, so a node whose name has one gets another id. Whoever talks to such a system says ids, and
everybody else names of nodes; only this module knows which is which.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from harness.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.node import Node

NAME = re.compile(r"[A-Za-z0-9._]+")
_OTHER = re.compile(r"[^A-Za-z0-9._]")


class Members:
    """The members of a group: which id stands for which node.

    Attributes:
        text: The list of all members.
    """

    def __init__(self, nodes: Sequence[Node], *, port: int, system: str) -> None:
        """Gives each node an id: its name, with an underscore for each character that an id cannot have.

        Where two nodes would get one id, the later one's has a number behind it.

        Args:
            nodes: The nodes.
            port: The port of each member.
            system: What the system is called, for errors.

        Raises:
            InputError: A node's address has a colon, at which a host ends.
        """
        self._ids: dict[str, str] = {}
        taken = {node.name for node in nodes if NAME.fullmatch(node.name)}
        for node in nodes:
            if ":" in node.address:
                raise InputError(
                    f"{system} cannot use the node {node.name} at {node.address!r}: its list of members has no IPv6 "
                    "addresses; give the node an IPv4 address or a host name"
                )
            self._ids[node.name] = node.name if node.name in taken else _free(_OTHER.sub("_", node.name), taken)
            taken.add(self._ids[node.name])
        self._names = {member: name for name, member in self._ids.items()}
        self.text = ";".join(f"{self._ids[node.name]}-{node.address}:{port}" for node in nodes)

    def id_of(self, name: str) -> str:
        """Returns the id of a node."""
        return self._ids[name]

    def name_of(self, member: str) -> str:
        """Returns the name of the node with an id; the id itself if no node has it."""
        return self._names.get(member, member)


def _free(wanted: str, taken: set[str]) -> str:
    number = 1
    member = wanted
    while member in taken:
        number += 1
        member = f"{wanted}_{number}"
    return member
