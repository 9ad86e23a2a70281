"""The ids of a cluster's nodes in the member lists of DLedger and RocketMQ: `id-host:port;...`.

An id ends at the first hyphen, so a node with a hyphen in its name gets a different id. Messages to such a system have ids, and
the rest of Labrys uses names of nodes. This module converts between them.
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
    """The members of a group, with the id of each node.

    Attributes:
        text: The list of all members.
    """

    def __init__(self, nodes: Sequence[Node], *, port: int, system: str, numbered: bool = False) -> None:
        """Gives each node an id: its name, with an underscore for each character that an id cannot have.

        If two nodes would get the same id, the later one gets a number at its end.

        Args:
            nodes: The nodes.
            port: The port of each member.
            system: The system's name, for errors.
            numbered: Whether the ids are `n0`, `n1` and so on, in the order of the nodes; the commit log of a broker of
                RocketMQ needs a letter and a number.

        Raises:
            InputError: A node's address has a colon, which ends the host in such a list.
        """
        self._ids: dict[str, str] = {}
        taken = {node.name for node in nodes if NAME.fullmatch(node.name)}
        for index, node in enumerate(nodes):
            if ":" in node.address:
                raise InputError(
                    f"{system} cannot use the node {node.name} at {node.address!r}: its list of members has no IPv6 "
                    "addresses; give the node an IPv4 address or a host name"
                )
            if numbered:
                self._ids[node.name] = f"n{index}"
                continue
            self._ids[node.name] = node.name if node.name in taken else _free(_OTHER.sub("_", node.name), taken)
            taken.add(self._ids[node.name])
        self._names = {member: name for name, member in self._ids.items()}
        self.text = ";".join(f"{self._ids[node.name]}-{node.address}:{port}" for node in nodes)

    def id_of(self, name: str) -> str:
        """Returns the id of a node."""
        return self._ids[name]

    def name_of(self, member: str) -> str:
        """Returns the name of the node with this id; the id itself if no node has it."""
        return self._names.get(member, member)


def _free(wanted: str, taken: set[str]) -> str:
    number = 1
    member = wanted
    while member in taken:
        number += 1
        member = f"{wanted}_{number}"
    return member
