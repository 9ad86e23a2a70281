"""The options of Nacos' nodes and clients."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from harness.declare import option


class Asks(enum.StrEnum):
    """The node that a client asks."""

    OWN = "own"
    LEADER = "leader"


class Writes(enum.StrEnum):
    """When the leader acknowledges a write."""

    FOLLOWERS = "followers"
    LEADER = "leader"


@dataclass(frozen=True, slots=True, kw_only=True)
class NacosOptions:
    """How the clients use the nodes."""

    nacos_asks: Asks = option(
        Asks.OWN,
        "own: a client stays at its node, which reads from its own state. leader: a client follows the leader that its node "
        "names.",
    )
    nacos_writes: Writes = option(
        Writes.FOLLOWERS,
        "followers: the service has a health check of the server, so the leader waits for two followers. leader: it has none, "
        "so the leader acknowledges what no follower has; a negative control.",
    )
