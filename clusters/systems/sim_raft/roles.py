"""The roles of a node (section 3.3)."""

from __future__ import annotations

import enum


class Role(enum.StrEnum):
    """A node's role. A node that asks for pre-votes is a candidate too."""

    FOLLOWER = "follower"
    CANDIDATE = "candidate"
    LEADER = "leader"
