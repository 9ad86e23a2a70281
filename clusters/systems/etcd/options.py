"""The options of etcd's nodes and clients."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from clusters.systems.etcd.releases import Release  # noqa: TC001 - the options read their types at run time
from harness.declare import option
from harness.errors import InputError


class Reads(enum.StrEnum):
    """How a node answers a read."""

    LINEARIZABLE = "linearizable"
    SERIALIZABLE = "serializable"


class Compares(enum.StrEnum):
    """Which keys the transaction that writes compares with what the client read."""

    ALL = "all"
    WRITTEN = "written"
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class EtcdOptions:
    """How the nodes and their clients are configured."""

    etcd_version: Release = option(
        "3.4",
        "The release of etcd. 3.4 is Debian's package, and needs no Go; all others are built from etcd's Go module.",
        releases=True,
    )
    etcd_reads: Reads = option(
        Reads.LINEARIZABLE,
        "linearizable: a node asks a quorum before it answers a read. serializable: it answers from its own state, which may "
        "be old; a negative control.",
    )
    etcd_compares: Compares = option(
        Compares.ALL,
        "What a transaction of list-append or rw-register compares when it writes. all: every key that it read, for strict "
        "serializability. written: the keys that it writes, for snapshot isolation. none: no key, so it loses updates; a "
        "negative control.",
    )
    fencing: bool = option(
        default=True,
        help="Whether an acquire of a lock returns the revision that created the lock, as a fencing token.",
    )
    heartbeat_ms: int = option(100, "Milliseconds between heartbeats of the leader.", low=10, high=60_000)
    election_ms: int = option(
        1000, "Milliseconds without a heartbeat until a node starts an election.", low=50, high=50_000
    )

    def __post_init__(self) -> None:
        if self.election_ms < 5 * self.heartbeat_ms:
            raise InputError(
                f"expected an election timeout of at least five heartbeat intervals, as etcd does, found {self.election_ms} ms "
                f"with an interval of {self.heartbeat_ms} ms"
            )
