"""What can be chosen about the workloads on broker groups."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Final

from harness.declare import option
from harness.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

MOST: Final = 0.95


_SHARES: Final[Mapping[str, str]] = {
    "heartbeat": "that are heartbeats",
    "leave": "by which a broker ends its heartbeats",
    "apply": "by which brokers ask for their ids",
    "register": "by which brokers tell their addresses",
    "elect": "that are elections",
    "next": "that ask for the next id",
    "replica": "that read the master and the sync set",
    "state": "that read the whole group",
}
_SHARE: Final = "_share"


def _share(f: str, default: float, *, low: float = 0, more: str = "") -> Any:
    """Returns the option of the share of a function; the field is called `F_share`."""
    return option(default, f"The share of operations {_SHARES[f]}{more}.", low=low, high=0.9)


def _ops_per_group(default: int) -> Any:
    return option(
        default,
        "The most operations on each broker group; groups come one after the other.",
        low=1,
        high=1_000_000_000,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerIdOptions:
    """The options of the workload of broker ids."""

    ids: int = option(5, "Ids that brokers ask for, from 1 on; the fewer, the more they contend.", low=1, high=1000)
    next_share: float = _share("next", 0.3)
    replica_share: float = _share("replica", 0.1)
    ops_per_group: int = _ops_per_group(40)


@dataclass(frozen=True, slots=True, kw_only=True)
class ElectOptions:
    """The options of the workload of elections."""

    brokers: int = option(3, "Brokers of a group, which stand for master.", low=2, high=1000)
    heartbeat_share: float = _share("heartbeat", 0.0, more="; without any, a group keeps its first master")
    apply_share: float = _share("apply", 0.3, low=0.01)
    replica_share: float = _share("replica", 0.3)
    ops_per_group: int = _ops_per_group(40)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberOptions:
    """The options of the workloads whose brokers come and go; each has the share of every function but `alter`."""

    brokers: int = option(3, "Brokers of a group, each of which comes and goes.", low=2, high=1000)
    ops_per_group: int = _ops_per_group(60)

    @property
    def shares(self) -> Mapping[str, float]:
        """Function to its share of all operations, in the order of the fields; what is left are alters."""
        names = (field.name for field in fields(self) if field.name.endswith(_SHARE))
        return {name.removesuffix(_SHARE): getattr(self, name) for name in names}

    def __post_init__(self) -> None:
        check_shares(self.shares)


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncStateSetOptions(MemberOptions):
    """The options of the workload of sync sets."""

    heartbeat_share: float = _share("heartbeat", 0.1, low=0.01)
    leave_share: float = _share("leave", 0.0)
    elect_share: float = _share("elect", 0.1, low=0.01)
    replica_share: float = _share("replica", 0.2)
    state_share: float = _share("state", 0.1)


@dataclass(frozen=True, slots=True, kw_only=True)
class MixedOptions(MemberOptions):
    """The options of the workload that mixes all that brokers ask."""

    heartbeat_share: float = _share("heartbeat", 0.12, low=0.01)
    leave_share: float = _share("leave", 0.04)
    apply_share: float = _share("apply", 0.06)
    register_share: float = _share("register", 0.1)
    elect_share: float = _share("elect", 0.15, low=0.01)
    next_share: float = _share("next", 0.06)
    replica_share: float = _share("replica", 0.12)
    state_share: float = _share("state", 0.1)


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
