"""The operations of one stream, drawn from the seed.

The n-th operation of stream `i` depends only on the seed, `i` and `n`. A stream is one broker. In the workloads of ids and
elections each stream has its own check code, so two streams never own the same id.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.op import Invocation
from harness.randomness import stream
from workloads.register.streams import group_of

if TYPE_CHECKING:
    from harness.op import Value
    from workloads.controller.options import BrokerIdOptions, ElectOptions, MemberOptions

HALF = 0.5
ALTER = "alter"
LATE = "late"
LATE_SHARE = 0.1  # the share of alters that expect an old epoch
ANY = "any"
ANY_SHARE = 0.1  # the share of alters whose sync set may have brokers without an id
MEMBERS_SHARE = 0.7  # the probability that an alter puts a broker into the sync set
ADDRESSES = 2


class BrokerIdStream:
    """Draws the operations of one stream of the workload of broker ids."""

    def __init__(self, options: BrokerIdOptions, *, seed: int, number: int, streams: int) -> None:
        self._options = options
        self._draws = stream(seed, f"worker/{number}")
        self._group = group_of(number, streams, options.ops_per_group)
        self._check = check_code(number)
        self._count = 0

    def next(self) -> Invocation:
        """Draws the next operation."""
        kind, place = self._draws.random(), self._draws.random()
        key = self._group.key(self._count)
        self._count += 1
        if kind < self._options.next_share:
            return Invocation("next", None, key)
        if kind < self._options.next_share + self._options.replica_share:
            return Invocation("replica", None, key)
        return Invocation("apply", {"id": 1 + int(place * self._options.ids), "check": self._check}, key)


class ElectStream:
    """Draws the operations of one stream of the workload of elections. Its broker has one id."""

    def __init__(self, options: ElectOptions, *, seed: int, number: int, streams: int) -> None:
        self._options = options
        self._draws = stream(seed, f"worker/{number}")
        self._group = group_of(number, streams, options.ops_per_group)
        self._id = 1 + number % options.brokers
        self._check = check_code(number)
        self._count = 0

    def next(self) -> Invocation:
        """Draws the next operation. The first one in a group requests the id."""
        kind, place = self._draws.random(), self._draws.random()
        key = self._group.key(self._count)
        is_first = not self._count or key != self._group.key(self._count - 1)
        self._count += 1
        if is_first or kind < self._options.apply_share:
            return Invocation("apply", {"id": self._id, "check": self._check}, key)
        if kind < self._options.apply_share + self._options.replica_share:
            return Invocation("replica", None, key)
        if kind > 1 - self._options.heartbeat_share:
            return heartbeat(self._id, key)
        return Invocation("elect", {"id": self._id, "designate": place < HALF}, key)


class MemberStream:
    """Draws the operations of one stream, whose broker sends heartbeats, runs for master, and alters the sync set.

    The first two operations in a group request the id and send a heartbeat. An alter has only the new sync set. During the run,
    the generator adds the expected master and epochs, and puts the master into the sync set.

    Attributes:
        broker: The id of its broker.
    """

    def __init__(self, options: MemberOptions, *, seed: int, number: int, streams: int) -> None:
        self._draws = stream(seed, f"worker/{number}")
        self._group = group_of(number, streams, options.ops_per_group)
        self._brokers = options.brokers
        self._shares = options.shares
        self.broker = 1 + number % options.brokers
        self._check = check_code(number % options.brokers)
        self._count = 0

    def next(self) -> Invocation:
        """Draws the next operation.

        An alter has `sync_set`, `late` if it must expect an old epoch, and `any` if it may have brokers without an id.
        """
        kind, place = self._draws.random(), self._draws.random()
        members = [each for each in range(1, self._brokers + 1) if self._draws.random() < MEMBERS_SHARE]
        key = self._group.key(self._count)
        before = [self._group.key(self._count - back) if self._count >= back else None for back in (1, 2)]
        self._count += 1
        if before[0] != key:
            return self.apply(key)
        if before[1] != key:
            return self._operation("heartbeat", place, key)
        for f, share in self._shares.items():
            kind -= share
            if kind < 0:
                return self._operation(f, place, key)
        flags: dict[str, Value] = {LATE: True} if place < LATE_SHARE else {ANY: True} if place > 1 - ANY_SHARE else {}
        return Invocation(ALTER, {"sync_set": members or [self.broker], **flags}, key)

    def apply(self, key: str) -> Invocation:
        """Returns the request for the id of the broker."""
        return Invocation("apply", {"id": self.broker, "check": self._check}, key)

    def elect(self, key: str, *, designate: bool) -> Invocation:
        """Returns the request for an election, as a candidate."""
        return Invocation("elect", {"id": self.broker, "designate": designate}, key)

    def _operation(self, f: str, place: float, key: str) -> Invocation:
        match f:
            case "heartbeat":
                return heartbeat(self.broker, key)
            case "apply":
                return self.apply(key)
            case "elect":
                return self.elect(key, designate=place < HALF)
        arguments: dict[str, Value] = {
            "register": {"id": self.broker, "address": f"broker-{self.broker}:{10911 + int(place * ADDRESSES)}"},
            "leave": {"id": self.broker},
        }
        return Invocation(f, arguments.get(f), key)


def heartbeat(broker: int, key: str) -> Invocation:
    """Returns a heartbeat of a broker without a log, since the model ignores epochs and offsets."""
    return Invocation("heartbeat", {"id": broker, "epoch": 0, "max_offset": 0, "priority": 0}, key)


def check_code(number: int) -> str:
    """Returns the check code of a stream's broker: `address;timestamp`."""
    return f"broker-{number}:10911;{number}"
