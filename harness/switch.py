"""The interface of a switch: a process of Labrys that carries the packets between nodes, and can disturb those of each link.

A cluster that can have one has an attribute `switch`. A link is directed, from one port to another. The ports are the nodes,
and `CONTROL` for this machine. A rule draws what happens to each packet from its own seed. So the n-th packet on a link with
the same rule has the same fate.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol, cast

from harness.console.members import TimeNs, Whole  # noqa: TC001 - members are read by their annotations
from harness.errors import InfrastructureError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from harness.cluster import Cluster
    from harness.world import Disturbance, Pair

CONTROL = "control"


class SwitchEnded(InfrastructureError):  # noqa: N818 - a state, and named so in messages
    """The switch ended before the run did, so the nodes had no network from then on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bandwidth:
    """A limit of the rate of a link.

    Attributes:
        bits_per_s: The rate.
        burst_bytes: What may pass at once after a pause.
        patience_ns: How long a packet may wait; a packet that would wait longer is lost.
    """

    bits_per_s: int
    burst_bytes: int
    patience_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """What happens to the packets of a link.

    Attributes:
        seed: The seed of its random numbers.
        disturbance: What is drawn for each packet; None: nothing.
        bandwidth: The limit of the rate; None: there is none.
        cut: Whether no packet passes.
    """

    seed: int
    disturbance: Disturbance | None = None
    bandwidth: Bandwidth | None = None
    cut: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Awaited:
    """A packet between nodes that somebody waits for. Right after it, the packets between nodes stand still for a moment.

    A packet counts as its sender hands it over, so a large write may be one, and a repeated one counts again.

    Attributes:
        links: The links on which packets count.
        nth: Its number among those that count, from 1.
        port: The port of one end; 0: any.
        least_bytes: The least number of bytes that it carries, without its headers.
        has: What these bytes contain; empty: anything.
        hold_ns: How long the packets stand still.
    """

    links: tuple[Pair, ...]
    nth: int
    port: int
    least_bytes: int
    has: bytes
    hold_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Passed:
    """The packet that somebody waited for.

    Attributes:
        link: Its link.
        ports: Its ports: that of the sender, and that of the receiver.
        bytes: How many bytes it carries.
        ago_ns: How long ago it passed.
    """

    link: Pair
    ports: tuple[int, int]
    bytes: int
    ago_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What came of a wait so far.

    Attributes:
        count: How many packets counted.
        held: How many frames stood still after the one.
        passed: The one; None: it has not passed yet.
    """

    count: int
    held: int
    passed: Passed | None


class Happened(StrEnum):
    """What can happen to the connections on a link, as the switch counts it."""

    OPENED = "opened"  # a first packet of a connection (SYN)
    REFUSED = "refused"  # a refusal of a connection (RST to a SYN)
    RESET = "reset"  # an end by force (RST)
    RESENT = "resent"  # a packet that takes a place in the stream, for another time
    STALLED = "stalled"  # the same, a second or longer after its first time


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionNote:
    """What happened to the connections on a link within 0.1 s.

    Attributes:
        time_ns: The start of the 0.1 s.
        source: The node whose packets these were.
        target: The node that they went to.
        what: What happened.
        count: How often.
    """

    time_ns: TimeNs
    source: str
    target: str
    what: Happened
    count: Whole


class Switch(Protocol):
    """A switch. Its methods block, and can be called from several threads.

    Attributes:
        recording: The file that `stop` writes with the last packets that went out, as pcap; None: none. It must not be there.
        noted: What happened to connections between nodes up to the last `stop`, on CLOCK_MONOTONIC. None: it was not on, or it
            ended by itself.
    """

    recording: Path | None
    noted: Sequence[ConnectionNote] | None

    @property
    def is_on(self) -> bool:
        """Returns whether it has been started, and not stopped. It is on even if it has ended by itself."""
        ...

    def ports(self) -> tuple[str, ...]:
        """Returns the names of its ports: the nodes, and `CONTROL`."""
        ...

    def start(self) -> None:
        """Lets it carry the packets from now on. Does nothing if it is on.

        Raises:
            InfrastructureError: It cannot be built or started here.
        """
        ...

    def set(self, rules: Mapping[Pair, Rule]) -> None:
        """Gives each of these links this rule in place of its own.

        Raises:
            SwitchEnded: It has ended.
        """
        ...

    def clear(self, links: Iterable[Pair] | None = None) -> None:
        """Takes the rules of these links, or of all links. Packets that wait go out at once.

        Raises:
            SwitchEnded: It has ended.
        """
        ...

    def wait_for(self, awaited: Awaited) -> int:
        """Begins to wait for a packet. Returns the number of the wait.

        Raises:
            SwitchEnded: It has ended.
        """
        ...

    def seen(self, wait: int) -> Seen:
        """Returns what came of a wait.

        Raises:
            SwitchEnded: It has ended.
        """
        ...

    def end_wait(self, wait: int) -> None:
        """Ends a wait.

        Raises:
            SwitchEnded: It has ended.
        """
        ...

    def counts(self) -> Mapping[Pair, Mapping[str, int]]:
        """Returns the counters of each link that carried a frame, since the start.

        `frames` and `bytes` came to the link, large segments as one frame. `ruled` packets were under a rule: `cut`, `lost`,
        `limited` (by the rate), `duplicated`, `damaged`, `delayed`, `ahead` (sent while an earlier one waited). `held_us` is
        the sum of the times that they waited, `held_max_us` the longest. `full` and `refused` are lost for want of room.

        Raises:
            SwitchEnded: It has ended.
        """
        ...

    def stop(self) -> None:
        """Gives the packets back to the bridge. Does nothing if it is not on.

        Raises:
            SwitchEnded: It had ended by itself. The nodes have their network again.
            InfrastructureError: The nodes cannot have their network again.
        """
        ...


def switch_of(cluster: Cluster) -> Switch | None:
    """Returns the switch of a cluster; None if it cannot have one."""
    return cast("Switch | None", getattr(cluster, "switch", None))
