"""A simulated world, as the harness and the faults see it: nodes that exist in virtual time only.

A cluster that is simulated has an attribute `world` (`SimulatedCluster`). A run then takes place in that world's time, and
faults have their effect there and not over SSH. The law: whatever changes the world comes from the run's seed, so that the same
seed and options give the same history.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterable, Mapping, Sequence
    from typing import Any

    from harness.cluster import Cluster

T = TypeVar("T")

Pair: TypeAlias = "tuple[str, str]"  # from a node to a node


@dataclass(frozen=True, slots=True, kw_only=True)
class Disturbance:
    """What happens to packets on their way, each by itself.

    Attributes:
        lose: The part that is lost.
        duplicate: The part that arrives twice.
        damage: The part with a wrong checksum, which the receiver drops.
        delay_ns: How much later they arrive.
        jitter_ns: How much that varies: the standard deviation.
        hurry: The part that is not delayed, and so overtakes others.
    """

    lose: float = 0.0
    duplicate: float = 0.0
    damage: float = 0.0
    delay_ns: int = 0
    jitter_ns: int = 0
    hurry: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """A probe that arrived.

    Attributes:
        number: Which of the probes of its pair it was, from 0.
        delay_ns: How long it took.
        damaged: Whether its checksum was wrong.
    """

    number: int
    delay_ns: int
    damaged: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """What damage did to a simulated file, read back from it.

    Attributes:
        file: Its absolute path.
        before_bytes: Its size before.
        after_bytes: Its size after.
        places: The places of bytes that differ now.
    """

    file: str
    before_bytes: int
    after_bytes: int
    places: Sequence[int] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """What a power loss took away on one node.

    Attributes:
        files: How many files there were.
        changed: How many of them are shorter, different or gone.
        bytes: By how many bytes the files are shorter in all.
    """

    files: int
    changed: int
    bytes: int


class World(Protocol):
    """What a nemesis can do to a simulated world, and what it can look at. Nodes are named; `key` says whose rule it is."""

    def run(self, main: Coroutine[Any, Any, T]) -> T:
        """Runs `main` to its end in the world's time. A world runs once."""
        ...

    def cut(self, key: int, grudge: Mapping[str, frozenset[str]]) -> None:
        """Lets each node drop the packets of the nodes that it has a grudge against."""
        ...

    def disturb(self, key: int, node: str, disturbance: Disturbance, *, arriving: bool) -> None:
        """Disturbs the packets between a node and the others: those that arrive at it, or those that leave it."""
        ...

    def mend(self, key: int) -> None:
        """Takes away what `cut` and `disturb` have set up under a key. Does nothing if there is nothing."""
        ...

    def dropped(self, key: int) -> Mapping[Pair, int]:
        """Returns how many packets a cut has dropped so far, by pair; also after it was mended."""
        ...

    async def probe(self, pairs: Iterable[Pair], *, count: int, wait_s: float) -> Mapping[Pair, Sequence[Arrival]]:
        """Sends packets through the network, and returns what arrived in `wait_s`, in the order of arrival.

        Nodes answer probes by themselves; whether a process runs there plays no part.
        """
        ...

    def handled(self, node: str) -> int:
        """Returns how many messages and timers the processes of a node have handled since the world's beginning."""
        ...

    def listens(self, node: str) -> bool:
        """Says whether a process of the node would take a request."""
        ...

    def ahead_ns(self, node: str) -> int:
        """Returns how far a node's wall clock is ahead of the true time."""
        ...

    def set_clock(self, node: str, *, ahead_ns: int, period_ns: int | None = None) -> None:
        """Sets a node's wall clock aside; with a period, to and fro, and each for so long."""
        ...

    def fill_disk(self, node: str, *, full: bool) -> None:
        """Fills a node's disk, or makes room again."""
        ...

    def disk_takes(self, node: str) -> bool:
        """Says whether a node's disk takes a small file, by writing and removing one."""
        ...

    def lose_power(self, node: str) -> Lost:
        """Takes away what was written to a node's disk and not synced. Its process must not run."""
        ...

    def truncate_file(self, node: str, *, pattern: str, pick: float, amount: int) -> Changed:
        """Cuts the last written bytes off one file on a node's disk.

        Args:
            node: The node.
            pattern: A pattern of file names, as a shell has them.
            pick: Which of the matching files that hold data, from 0 to 1.
            amount: How many bytes.

        Raises:
            NodeError: No file with data matches.
        """
        ...

    def flip_bits(self, node: str, *, pattern: str, pick: float, amount: int, seed: int) -> Changed:
        """Flips one bit in each of `amount` bytes of one file; otherwise as `truncate_file`."""
        ...

    def heal(self) -> None:
        """Mends the network, sets the clocks right, makes room on the disks, and lets paused processes go on. Idempotent."""
        ...


class SimulatedCluster(Protocol):
    """A cluster whose nodes are simulated: a `harness.cluster.Cluster` with a world."""

    world: World


def world_of(cluster: Cluster) -> World | None:
    """Returns the world of a cluster that is simulated; None for all others."""
    return cast("World | None", getattr(cluster, "world", None))
