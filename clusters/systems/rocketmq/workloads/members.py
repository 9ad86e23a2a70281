"""The workloads on groups whose brokers join and leave: compare-and-set on the sync set's epoch, and a mix of all requests."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeVar

from clusters.systems.rocketmq.workloads.group import SUCCESS
from clusters.systems.rocketmq.workloads.groups import (
    FUNCTIONS,
    HALF,
    GroupWorkload,
    apply_of,
    heartbeat_of,
    ops_per_group_option,
    share_option,
)
from clusters.systems.rocketmq.workloads.parts import altered, epochs_grow, master_in_sync, one_master
from clusters.systems.rocketmq.workloads.uncertain import UncertainGroup
from harness.combinators import KeysInTurn, each_stream, independent, mix, on_update
from harness.declare import option
from harness.errors import InputError
from harness.op import Invocation, OpType

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from harness.combinators import Stream
    from harness.generator import Answer, Asker, Generator
    from harness.op import Op, Value

MOST: Final = 0.95
LAST_SEEN: Final = "last-seen"
LATE_SHARE: Final = 0.1  # the share of alters that expect an old epoch
ANY_SHARE: Final = 0.1  # the share of alters whose sync set may have brokers without an id
MEMBERS_SHARE: Final = 0.7  # the probability that an alter puts a broker into the sync set
ADDRESSES: Final = 2
_SHARE: Final = "_share"
_EXPECTED: Final = ("master", "master_epoch", "sync_epoch")


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberOptions:
    """The options of the workloads whose brokers join and leave: the share of every function except `alter`."""

    brokers: int = option(3, "The number of brokers in a group.", low=2, high=1000)
    ops_per_group: int = ops_per_group_option(60)

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

    heartbeat_share: float = share_option("heartbeat", 0.1, low=0.01)
    leave_share: float = share_option("leave", 0.0)
    elect_share: float = share_option("elect", 0.1, low=0.01)
    replica_share: float = share_option("replica", 0.2)
    state_share: float = share_option("state", 0.1)


@dataclass(frozen=True, slots=True, kw_only=True)
class MixedOptions(MemberOptions):
    """The options of the workload that mixes all requests of brokers."""

    heartbeat_share: float = share_option("heartbeat", 0.12, low=0.01)
    leave_share: float = share_option("leave", 0.04)
    apply_share: float = share_option("apply", 0.06)
    register_share: float = share_option("register", 0.1)
    elect_share: float = share_option("elect", 0.15, low=0.01)
    next_share: float = share_option("next", 0.06)
    replica_share: float = share_option("replica", 0.12)
    state_share: float = share_option("state", 0.1)


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


MemberOptionsT = TypeVar("MemberOptionsT", bound=MemberOptions)


class MemberWorkload(GroupWorkload[MemberOptionsT]):
    """Broker groups whose brokers send heartbeats, run for master, and alter the sync set. A stream is one broker.

    An alter expects the master and the epochs of the latest answer about its group. Sometimes it expects the epoch before. Its
    sync set has only brokers with an id, as far as answers show, but sometimes others too. The controller refuses an alter if
    the broker has no id or the group no master. So until answers show both, the broker requests its id or an election instead.
    """

    model = "clusters.systems.rocketmq.workloads.uncertain:UncertainGroup"
    rules = UncertainGroup()
    rest = (one_master, master_in_sync, epochs_grow, altered)

    def generator(self, *, seed: int, streams: int) -> Generator:
        """Returns all requests of brokers. The first two of a broker in a group request its id and send a heartbeat."""
        known = Known()
        streamed = each_stream(lambda stream: self._operations(stream, known), seed=seed, streams=streams)
        return on_update(known.update, streamed)

    def _operations(self, stream: Stream, known: Known) -> Generator:
        brokers = self.options.brokers
        broker = 1 + stream.number % brokers
        groups = KeysInTurn(stream, self.options.ops_per_group)

        def request(f: str) -> Callable[[Asker], Invocation]:
            def operation(_: Asker) -> Invocation:
                draw = stream.random()
                stream.skip(brokers)
                return _request(f, broker, draw)

            return operation

        def alter(asker: Asker) -> Invocation:
            draw = stream.random()
            members = [member for member in range(1, brokers + 1) if stream.random() < MEMBERS_SHARE] or [broker]
            late, foreign = draw < LATE_SHARE, draw > 1 - ANY_SHARE
            if asker.preview:
                flags = {"late": True} if late else {"any": True} if foreign else {}
                return Invocation("alter", {**dict.fromkeys(_EXPECTED, LAST_SEEN), "sync_set": members, **flags})
            return known.alter(stream.key, broker, members, late=late, foreign=foreign)

        joining = request("apply"), request("heartbeat")
        later = mix(stream, *((share, request(f)) for f, share in self.options.shares.items()), rest=alter)

        def operation(asker: Asker) -> Answer:
            if groups.place >= len(joining):
                return later.ask(asker)
            stream.skip(1)
            return joining[groups.place](asker)

        return independent(stream, groups, operation)


def _request(f: str, broker: int, draw: float) -> Invocation:
    """Returns a request of a broker; `draw` is a draw for its argument."""
    argument: Value = None
    match f:
        case "apply":
            argument = apply_of(broker, broker - 1)
        case "heartbeat":
            argument = heartbeat_of(broker)
        case "elect":
            argument = {"id": broker, "designate": draw < HALF}
        case "register":
            argument = {"id": broker, "address": f"broker-{broker}:{10911 + int(draw * ADDRESSES)}"}
        case "leave":
            argument = {"id": broker}
    return Invocation(f, argument)


class SyncStateSetWorkload(MemberWorkload[SyncStateSetOptions]):
    """Compare-and-set on the epoch of the sync set; see `harness.workload.Workload`."""

    name = "sync-state-set"
    summary = "Brokers alter the sync sets of independent groups by compare-and-set; a model checks every answer."
    Options = SyncStateSetOptions
    functions = MappingProxyType(
        {f: FUNCTIONS[f] for f in ("apply", "heartbeat", "leave", "elect", "alter", "next", "replica", "state")}
    )


class ControllerWorkload(MemberWorkload[MixedOptions]):
    """A mix of all requests of brokers; see `harness.workload.Workload`. `clean` is not a request of brokers."""

    name = "controller"
    summary = "Brokers of independent groups join, leave and send all requests of brokers; a model checks every answer."
    Options = MixedOptions
    functions = FUNCTIONS


class Known:
    """What the answers show about the groups: the ids of brokers, the master and the epochs."""

    def __init__(self) -> None:
        self._seen: dict[str | None, dict[str, int]] = {}
        self._ids: dict[str | None, set[int]] = defaultdict(set)
        self._applied: dict[int | str, int] = {}  # the id in the latest request of each process for an id

    def alter(self, key: str | None, broker: int, members: list[int], *, late: bool, foreign: bool) -> Invocation:
        """Returns an alter of a group, or what the broker needs before it.

        Args:
            key: The group.
            broker: The id of the broker.
            members: The drawn brokers of the sync set.
            late: Whether it expects the epoch before.
            foreign: Whether the sync set may have brokers without an id.
        """
        ids, seen = self._ids[key], self._seen.get(key, {})
        if broker not in ids:
            return Invocation("apply", apply_of(broker, broker - 1))
        if seen.keys() != set(_EXPECTED):
            return Invocation("elect", {"id": broker, "designate": False})
        chosen = set(members) if foreign else ids.intersection(members)
        # The controller refuses a sync set without the master.
        sync_set = sorted({*chosen, seen["master"]})
        return Invocation("alter", {**seen, "sync_epoch": seen["sync_epoch"] - late, "sync_set": sync_set})

    def update(self, event: Op) -> None:
        """Stores what the answer shows: the ids, the master and the epochs."""
        if event.f == "apply" and event.type is OpType.INVOKE and isinstance(event.value, dict):
            self._applied[event.process] = event.value["id"]
        if event.type is not OpType.OK or not isinstance(event.value, dict):
            return
        if event.f == "apply" and event.value.get("code") == SUCCESS:
            self._ids[event.key].add(self._applied[event.process])
        seen = {name: event.value[name] for name in _EXPECTED if type(event.value.get(name)) is int}
        if "master_epoch" in seen and "master" not in seen:
            self._seen.pop(event.key, None)  # there is no master
        elif seen:
            self._seen.setdefault(event.key, {}).update(seen)
