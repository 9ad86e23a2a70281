"""Which clients of a system with a leader follow it, an option that several systems have."""

from __future__ import annotations

import enum


class Routing(enum.StrEnum):
    """Which clients leave a node that is not the leader."""

    PINNED = "pinned"
    LEADER = "leader"
    MIXED = "mixed"

    def follows(self, process: int, nodes: int) -> bool:
        """Returns whether the client of `process` follows the leader.

        With `mixed`, every node with two clients has one of each kind. This holds if processes go to the nodes in turn (closed
        loop) and in blocks (open loop). With an even number of nodes, the parity of the process alone would not do.
        """
        turn = process if nodes % 2 else process + process // nodes
        return self is Routing.LEADER or (self is Routing.MIXED and turn % 2 == 1)
