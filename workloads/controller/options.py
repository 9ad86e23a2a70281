"""The options of the workloads on broker groups."""

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
    "leave": "that end the heartbeats of a broker",
    "apply": "that request an id",
    "register": "that register the address of a broker",
    "elect": "that are elections",
    "next": "that read the next id",
    "replica": "that read the master and the sync set",
    "state": "that read the whole group",
}
_SHARE: Final = "_share"


def _share(f: str, default: float, *, low: float = 0, more: str = "") -> Any:
    """Returns the option for the share of a function; the name of its field is `F_share`."""
    return option(default, f"The share of operations {_SHARES[f]}{more}.", low=low, high=0.9)


def _ops_per_group(default: int) -> Any:
    return option(
        default,
        "The maximum number of operations on each broker group; one group follows the other.",
        low=1,
        high=1_000_000_000,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerIdOptions:
    """The options of the workload of broker ids."""

    ids: int = option(
        5, "The number of ids that brokers request; with fewer ids, brokers contend more.", low=1, high=1000
    )
    next_share: float = _share("next", 0.3)
    replica_share: float = _share("replica", 0.1)
    ops_per_group: int = _ops_per_group(40)


@dataclass(frozen=True, slots=True, kw_only=True)
class ElectOptions:
    """The options of the workload of elections."""

    brokers: int = option(3, "The number of brokers in a group.", low=2, high=1000)
    heartbeat_share: float = _share("heartbeat", 0.0, more="; with 0, a group keeps its first master")
    apply_share: float = _share("apply", 0.3, low=0.01)
    replica_share: float = _share("replica", 0.3)
    ops_per_group: int = _ops_per_group(40)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberOptions:
    """The options of the workloads whose brokers join and leave: the share of every function except `alter`."""

    brokers: int = option(3, "The number of brokers in a group.", low=2, high=1000)
    ops_per_group: int = _ops_per_group(60)

    @property
    def shares(self) -> Mapping[str, float]:
        """The share of each function in all operations, in the order of the fields. The rest are alters."""
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
    """The options of the workload that mixes all requests of brokers."""

    heartbeat_share: float = _share("heartbeat", 0.12, low=0.01)
    leave_share: float = _share("leave", 0.04)
    apply_share: float = _share("apply", 0.06)
    register_share: float = _share("register", 0.1)
    elect_share: float = _share("elect", 0.15, low=0.01)
    next_share: float = _share("next", 0.06)
    replica_share: float = _share("replica", 0.12)
    state_share: float = _share("state", 0.1)


def check_shares(shares: Mapping[str, float]) -> None:
    """Checks that the shares of the other functions leave a share for alters.

    Raises:
        InputError: They leave too little.
    """
    if sum(shares.values()) > MOST:
        terms = " + ".join(f"{share:g}" for share in shares.values())
        raise InputError(
            f"expected shares that leave at least {1 - MOST:.0%} of the operations for alters, found {terms} = "
            f"{sum(shares.values()):g}; lower one of {', '.join(f'--{f}-share' for f in shares)}"
        )
