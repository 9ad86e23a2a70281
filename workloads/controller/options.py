"""What can be chosen about the workloads on broker groups."""

from __future__ import annotations

from dataclasses import dataclass

from harness.declare import option


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
    apply_share: float = option(0.3, "The share of operations by which brokers ask for their ids.", low=0.01, high=0.9)
    replica_share: float = option(
        0.3, "The share of operations that read the master and the sync set.", low=0, high=0.9
    )
    ops_per_group: int = option(
        40, "The most operations on each broker group; groups come one after the other.", low=1, high=1_000_000_000
    )
