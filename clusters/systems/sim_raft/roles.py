"""What a node is at a time (section 3.3)."""

from __future__ import annotations

import enum


class Role(enum.StrEnum):
    """A node's role; a candidate may only be asking for pre-votes."""

    FOLLOWER = "follower"
    CANDIDATE = "candidate"
    LEADER = "leader"
