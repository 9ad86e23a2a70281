"""What can be chosen about the workloads on broker groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from harness.declare import option
from harness.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

MOST: Final = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerIdOptions:
    """The options of the workload of broker ids."""

    ids: int = option(5, "Ids that brokers ask for, from 1 on; the fewer, the more they contend.", low=1, high=1000)
    next_share: float = option(0.3, "The share of operations that ask for the next id.", low=0, high=0.9)
    replica_share: float = option(
        0.1, "The share of operations that read the master and the sync set.", low=0, high=0.9
    )
    ops_per_group: int = option(
        40, "The most operations on each broker group; groups come one after the other.", low=1, high=1_000_000_000
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ElectOptions:
    """The options of the workload of elections."""

    brokers: int = option(3, "Brokers of a group, which stand for master.", low=2, high=1000)
    heartbeat_share: float = option(
        0.0,
        "The share of operations that are heartbeats; without any, a group keeps its first master.",
        low=0,
        high=0.9,
    )
    apply_share: float = option(0.3, "The share of operations by which brokers ask for their ids.", low=0.01, high=0.9)
    replica_share: float = option(
        0.3, "The share of operations that read the master and the sync set.", low=0, high=0.9
    )
    ops_per_group: int = option(
        40, "The most operations on each broker group; groups come one after the other.", low=1, high=1_000_000_000
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncStateSetOptions:
    """The options of the workload of sync sets."""

    brokers: int = option(3, "Brokers of a group, each of which sends heartbeats.", low=2, high=1000)
    heartbeat_share: float = option(0.1, "The share of operations that are heartbeats.", low=0.01, high=0.9)
    leave_share: float = option(0.0, "The share of operations by which a broker ends its heartbeats.", low=0, high=0.9)
    elect_share: float = option(0.1, "The share of operations that are elections.", low=0.01, high=0.9)
    replica_share: float = option(
        0.2, "The share of operations that read the master and the sync set.", low=0, high=0.9
    )
    state_share: float = option(0.1, "The share of operations that read the whole group.", low=0, high=0.9)
    ops_per_group: int = option(
        60, "The most operations on each broker group; groups come one after the other.", low=1, high=1_000_000_000
    )

    @property
    def shares(self) -> Mapping[str, float]:
        """Function to its share of all operations; what is left are alters."""
        return {
            "heartbeat": self.heartbeat_share,
            "leave": self.leave_share,
            "elect": self.elect_share,
            "replica": self.replica_share,
            "state": self.state_share,
        }

    def __post_init__(self) -> None:
        check_shares(self.shares)


@dataclass(frozen=True, slots=True, kw_only=True)
class MixedOptions:
    """The options of the workload that mixes all that brokers ask."""

    brokers: int = option(3, "Brokers of a group, each of which comes and goes.", low=2, high=1000)
    heartbeat_share: float = option(0.12, "The share of operations that are heartbeats.", low=0.01, high=0.9)
    leave_share: float = option(0.04, "The share of operations by which a broker ends its heartbeats.", low=0, high=0.9)
    apply_share: float = option(0.06, "The share of operations by which brokers ask for their ids.", low=0, high=0.9)
    register_share: float = option(
        0.1, "The share of operations by which brokers tell their addresses.", low=0, high=0.9
    )
    elect_share: float = option(0.15, "The share of operations that are elections.", low=0.01, high=0.9)
    next_share: float = option(0.06, "The share of operations that ask for the next id.", low=0, high=0.9)
    replica_share: float = option(
        0.12, "The share of operations that read the master and the sync set.", low=0, high=0.9
    )
    state_share: float = option(0.1, "The share of operations that read the whole group.", low=0, high=0.9)
    ops_per_group: int = option(
        60, "The most operations on each broker group; groups come one after the other.", low=1, high=1_000_000_000
    )

    @property
    def shares(self) -> Mapping[str, float]:
        """Function to its share of all operations; what is left are alters."""
        return {
            "heartbeat": self.heartbeat_share,
            "leave": self.leave_share,
            "apply": self.apply_share,
            "register": self.register_share,
            "elect": self.elect_share,
            "next": self.next_share,
            "replica": self.replica_share,
            "state": self.state_share,
        }

    def __post_init__(self) -> None:
        check_shares(self.shares)


def check_shares(shares: Mapping[str, float]) -> None:
    """Holds the shares of all functions but one to what is left for that one.

    Raises:
        InputError: They leave nothing for alters.
    """
    if sum(shares.values()) > MOST:
        said = " + ".join(f"{share:g}" for share in shares.values())
        raise InputError(
            f"expected shares that leave at least {1 - MOST:.0%} of the operations for alters, got {said} = "
            f"{sum(shares.values()):g}; lower one of {', '.join(f'--{f}-share' for f in shares)}"
        )
