"""The interface of a simulated world for the harness and the faults: nodes that exist in virtual time only.

A simulated cluster has an attribute `world` (`SimulatedCluster`). Its run uses the time of the world, and faults have their
effect in the world and not over SSH. All changes of the world follow from the run's seed, so that the same seed and options
give the same history.
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias, TypeVar, cast

from harness.console.members import Trace, Whole  # noqa: TC001 - members are read by their annotations

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterable, Mapping, Sequence
    from collections.abc import Set as AbstractSet
    from typing import Any

    from harness.cluster import Cluster
    from harness.damage import Changed, Damaging

T = TypeVar("T")

ANY_STEP: Final = "any"
SYNCING: Final = "syncing"
Pair: TypeAlias = "tuple[str, str]"  # from a node to a node


@dataclass(frozen=True, slots=True, kw_only=True)
class Disturbance:
    """A disturbance of packets, independent for each packet.

    Attributes:
        lose: The share that is lost.
        duplicate: The share that arrives twice.
        damage: The share with a wrong checksum, which the receiver drops.
        delay_ns: The mean delay.
        jitter_ns: The standard deviation of the delay.
        hurry: The share without delay, which overtakes others.
        rate: How many bits leave the node in a second, over all of its links; 0: no limit. Only in a `ProgramWorld`.
        queue_ns: The longest time that a datagram waits for the rate, before it is dropped.
    """

    lose: float = 0.0
    duplicate: float = 0.0
    damage: float = 0.0
    delay_ns: int = 0
    jitter_ns: int = 0
    hurry: float = 0.0
    rate: float = 0.0
    queue_ns: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """A probe that arrived.

    Attributes:
        number: The number of the probe of its pair, from 0.
        delay_ns: Its delay.
        damaged: Whether its checksum was wrong.
    """

    number: int
    delay_ns: int
    damaged: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RareMessage:
    """A message of a shape that nodes have seldom sent before in the run: its type, its flags, and its empty sequences.

    Attributes:
        kind: The name of its type.
        source: The node that sends it.
        target: The node that it goes to.
        held: Whether the network holds it until the faults that begin with it are on. It holds all later messages in any case.
    """

    kind: str
    source: str
    target: str
    held: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PassedMessage:
    """A message between nodes that somebody waited for.

    Attributes:
        source: The node that sends it.
        target: The node that it goes to.
        content: Its bytes, or the form of an object as text.
    """

    source: str
    target: str
    content: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """The data that a power loss, or a new disk, took on one node.

    Attributes:
        files: The number of files.
        changed: The number of files that are shorter, different or gone.
        bytes: The number of lost bytes in all files.
    """

    files: int
    changed: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsynced:
    """A change of a disk that no sync has made durable.

    Attributes:
        number: The number of its step on the node.
        names: Whether it changes names of files, and not a content.
        file: The path of the file in the data directory.
    """

    number: int
    names: bool
    file: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskStep:
    """A change of the disk of a node, or a sync.

    Attributes:
        node: The node.
        number: Its number among the steps of the node in the run, from 1.
        time_ns: The time of the world.
        call: `write`, `truncate`, `create`, `rename`, `remove`, `sync`, or `syncing` right before a sync that takes time.
        file: The path of the file in the data directory.
        unsynced: The changes of the node that are not durable after it, the oldest first.
        others: How much has happened outside of the node so far. It grows with each message that a node or a client sends, and
            with each step of another node. So two steps of a node with the same number have nothing between them elsewhere.
    """

    node: str
    number: int
    time_ns: int
    call: str
    file: str
    unsynced: Sequence[Unsynced]
    others: int

    def fits(self, call: str, pattern: str) -> bool:
        """Returns whether it is of a kind, or `any`, and its file or the end of its path fits a glob pattern."""
        return call in {ANY_STEP, self.call} and any(fnmatchcase(self.file, glob) for glob in (pattern, f"*/{pattern}"))


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskSteps:
    """The steps of all disks of a run.

    Attributes:
        noted: The steps, in their order.
        before: How many of them there were when somebody first waited for a step.
        waited_ns: The time of the world then.
        starts: Each start of a node since then: the node, and the time of the world.
    """

    noted: Sequence[DiskStep] = ()
    before: int = 0
    waited_ns: int = 0
    starts: Sequence[tuple[str, int]] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Stall:
    """A thread of each of some nodes, which stands still from one of the calls of the node on.

    Attributes:
        nodes: The nodes.
        after_ns: From when on calls of the node count: so long after the begin of the wait for a step.
        wall: Whether only reads of the wall clock count. The own code of a program makes those, and its runtime others too.
        nth: The number of the call, from 1. A read of a clock is a call too.
        length_ns: For how long the thread stands still, unless the process ends before.
    """

    nodes: AbstractSet[str]
    after_ns: int
    wall: bool
    nth: int
    length_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Losing:
    """What a loss of power takes of the changes that are not durable.

    Attributes:
        changes: The lost changes by their places from the newest one, which has place 1. None: all.
        torn: Whether the newest write that survives is there in part. If all are lost, there is none.

    Raises:
        ValueError: All changes are lost, and one is torn.
    """

    changes: frozenset[int] | None = None
    torn: bool = False

    def __post_init__(self) -> None:
        if self.changes is None and self.torn:
            raise ValueError("expected changes that survive, because one is torn; all are lost")


LOAD: Final = "load"


@dataclass(frozen=True, slots=True, kw_only=True)
class Failing:
    """System calls that fail, on files in the data directory of a process.

    Attributes:
        call: `open`, `read`, `write`, `fsync` (`fdatasync` too), `msync`, `sync` (`syncfs` too) or `rename`. Or `LOAD`: a use
            of a page of a mapped file.
        pattern: A pattern of names of files, or of paths in the directory, as in a shell.
        nth: The number of the first such call that fails, from 1; of `LOAD`, that of the page in the file.
        times: How many fail from there on.
        error: The error number.
    """

    call: str
    pattern: str
    nth: int
    times: int
    error: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """A system call that failed.

    Attributes:
        node: The node.
        time_ns: The time of the world.
        call: The name of the call.
        number: Its number among the calls that count.
        program: The path of the program.
        file: The path of the file in the data directory.
    """

    node: str
    time_ns: int
    call: str
    number: int
    program: str
    file: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowSyncs:
    """The syncs of a node that have begun under a rule.

    Attributes:
        count: Their number.
        longest_ns: The longest time that one of them has taken so far.
        before_ns: The longest time that one took before, without a rule; 0: there was none.
    """

    count: int
    longest_ns: int
    before_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """What a run of programs in virtual time did; `results.json` has it.

    The same seed, programs, kernel and processor give the same digest.

    Attributes:
        digest: The digest of all calls, results, messages and decisions, in hexadecimal digits.
        trace: The digest of what came before, at the end of each virtual second: eight hexadecimal digits each.
        controller: The SHA-256 of the controller.
        kernel: The release of the kernel.
        processor: The model of the processor.
        figures: E.g. the virtual nanoseconds, the calls and the messages.
    """

    digest: str
    controller: str
    kernel: str
    processor: str
    figures: dict[str, Whole]
    trace: Trace = ""


class World(Protocol):
    """The actions and measurements of a nemesis in a simulated world. `key` is the number of the fault that owns a rule."""

    @property
    def real_time(self) -> bool:
        """Returns whether its time is real, because its processes are, so the control node can be late."""
        ...

    @property
    def stalls(self) -> bool:
        """Returns whether a thread can stall at one of its calls, because its processes are programs in virtual time."""
        ...

    @property
    def now_ns(self) -> int:
        """Returns the time since its beginning, which its nodes write into their logs."""
        ...

    @property
    def wall_ns(self) -> int | None:
        """Returns the true wall-clock time, in nanoseconds since 1970, if the nodes write that into their logs; else None."""
        ...

    def execution(self) -> Execution | None:
        """Returns what the run did so far; None if the world does not measure it, because its history says all."""
        ...

    def run(self, main: Coroutine[Any, Any, T]) -> T:
        """Runs `main` to its end in the world's time. A world runs once."""
        ...

    def cut(self, key: int, grudge: Mapping[str, frozenset[str]]) -> None:
        """Lets each node drop the packets of the nodes that it has a grudge against."""
        ...

    def disturb(
        self, key: int, node: str, disturbance: Disturbance, *, arriving: bool, others: AbstractSet[str] | None = None
    ) -> None:
        """Disturbs the packets between a node and the others: those that arrive at it, or those that leave it.

        Args:
            key: The number of the fault.
            node: The node.
            disturbance: What happens to them.
            arriving: Whether they are those that arrive.
            others: The other nodes; None: all.
        """
        ...

    def mend(self, key: int) -> None:
        """Removes the rules of `cut` and `disturb` with a key. Does nothing if there are none."""
        ...

    def dropped(self, key: int) -> Mapping[Pair, int]:
        """Returns the number of packets that a cut has dropped so far, by pair; also after `mend`."""
        ...

    async def probe(self, pairs: Iterable[Pair], *, count: int, wait_s: float) -> Mapping[Pair, Sequence[Arrival]]:
        """Sends packets through the network, and returns those that arrived in `wait_s`, in the order of arrival.

        A node answers probes even if no process runs there.
        """
        ...

    def count_messages(self) -> None:
        """Counts the messages between nodes from now on. Without it, `rare_message` finds none."""
        ...

    async def rare_message(self, nodes: AbstractSet[str], wait_s: float) -> RareMessage | None:
        """Waits until a node sends a rare message to another one, and one of the two is in `nodes`.

        Returns:
            The message; None if there was none within `wait_s`.
        """
        ...

    async def message(self, links: AbstractSet[Pair], *, nth: int, has: bytes) -> PassedMessage:
        """Waits for the n-th message from now on these links whose content has these bytes.

        Right after it, the network holds the messages between nodes for a moment. A message counts when a process sends it.
        """
        ...

    async def log_line(self, nodes: AbstractSet[str], pattern: str) -> tuple[str, str]:
        """Waits until the process of one of these nodes logs a line in which a regular expression matches.

        Returns:
            The name of the node, and the line.
        """
        ...

    def handled(self, node: str, role: str | None = None) -> int:
        """Returns how many messages, timers or calls the processes of a node have handled so far; those of a role, or all."""
        ...

    def listens(self, node: str, role: str | None = None) -> bool:
        """Returns whether a process of the node accepts requests; of a role, or any."""
        ...

    def ahead_ns(self, node: str) -> int:
        """Returns the lead of a node's wall clock over the true time."""
        ...

    def set_clock(self, node: str, *, ahead_ns: int, period_ns: int | None = None) -> None:
        """Moves a node's wall clock; with a period, forward and back again, each for this time."""
        ...

    def fill_disk(self, node: str, *, full: bool) -> None:
        """Fills a node's disk, or frees it again."""
        ...

    def disk_takes(self, node: str) -> bool:
        """Writes and removes a small file on a node's disk; returns whether that worked."""
        ...

    def prepare_loss(self) -> None:
        """Lets the disks remember what is synced, from now on. Without it, `lose_power` is not possible. No process may run."""
        ...

    def note_steps(self) -> None:
        """Lets the disks note their steps from now on. Without it, there are no steps to wait for. No process may run."""
        ...

    def disk_steps(self) -> DiskSteps:
        """Returns the steps of all disks so far."""
        ...

    async def disk_step(
        self,
        nodes: AbstractSet[str],
        *,
        call: str,
        pattern: str,
        nth: int,
        starts: int,
        stall: Stall | None = None,
    ) -> DiskStep:
        """Waits until a node has made its n-th step from now on, of a kind, on a file. The node stands still for a moment then.

        Whatever happens to the process of the node in this moment happens to it right after the step.

        Args:
            nodes: The nodes.
            call: A call of `DiskStep`, or `any`.
            pattern: A pattern of names of files, or of paths in the directory, as in a shell.
            nth: The number of the step of a node, from 1.
            starts: How often the node starts before its steps count.
            stall: A stall before the step. Only programs in virtual time have such threads.
        """
        ...

    def power_off(self, node: str, role: str | None = None) -> None:
        """Ends the processes of a role, or all, as a power loss does: the other ends of their connections hear nothing.

        A world where a killed process is not heard of either has nothing to do.
        """
        ...

    def lose_power(self, node: str, losing: Losing | None = None) -> Lost:
        """Removes unsynced data from a node's disk. Its process must not run.

        Args:
            node: The node.
            losing: What it removes; None: what the seed draws.
        """
        ...

    def wipe_files(self, node: str) -> Lost:
        """Removes all files from a node's disk. Its process must not run."""
        ...

    def keep_files(self, node: str) -> int:
        """Remembers the files on a node's disk as they are durable now, so that `damage_file` can roll one back to that.

        Programs of this machine write into real files; then it remembers them as they are, which a disk may have too.

        Returns:
            The number of files.
        """
        ...

    def damage_file(self, node: str, damaging: Damaging) -> Changed:
        """Damages one file on a node's disk. Its process must not run. A later loss of power does not take the damage back.

        Raises:
            NodeError: No file that matches can have this damage.
        """
        ...

    def heal(self) -> None:
        """Heals the network, the clocks and the disks, and continues paused processes. Idempotent."""
        ...


class CallWorld(World, Protocol):
    """A world where calls on files can fail. Its nodes do not lack `SIMULATED_CALLS`.

    A disk of Labrys has the calls `read`, `write` and `fsync` only. After a failed sync, what was written can be read, and no
    later sync makes it durable.
    """

    def fail_calls(self, key: int, node: str, role: str | None, failing: Failing) -> int:
        """Lets calls of the processes of a role, or of all, fail until `mend`. Calls count from now on.

        Returns:
            The number of processes that it concerns.
        """
        ...

    def failed_calls(self, key: int) -> Sequence[Failed]:
        """Returns the calls that have failed by this rule so far, in their order; also after `mend`."""
        ...


class DriftWorld(World, Protocol):
    """A world where the clocks of a node can have another speed. Its nodes do not lack `SIMULATED_SPEED`."""

    def set_speed(self, node: str, speed: float) -> None:
        """Lets all clocks of a node, and its waits, run at a multiple of the true speed from now on."""
        ...

    def monotonic_ns(self, node: str) -> int:
        """Returns the monotonic clock of a node, as its processes read it."""
        ...


class ProgramWorld(CallWorld, DriftWorld, Protocol):
    """A world of programs, whose kernel Labrys simulates. Its nodes do not lack `SIMULATED_KERNEL`."""

    def slow_syncs(self, key: int, node: str, mean_ns: int) -> None:
        """Lets each sync that begins on a node take a time with this mean, until `mend`."""
        ...

    def slowed_syncs(self, key: int) -> Mapping[str, SlowSyncs]:
        """Returns the syncs under this rule so far, by node; none after `mend`."""
        ...

    def become(self, seed: int) -> None:
        """Goes on as the run of another seed, whose nodes have started as those of this one."""
        ...

    async def probe_with(
        self, pairs: Iterable[Pair], *, size: int, count: int, wait_s: float
    ) -> Mapping[Pair, Sequence[Arrival]]:
        """Sends packets of so many bytes, all at once; see `probe`."""
        ...


class SimulatedCluster(Protocol):
    """A cluster whose nodes are simulated: a `harness.cluster.Cluster` with a world."""

    world: World


def world_of(cluster: Cluster) -> World | None:
    """Returns the world of a simulated cluster; None for other clusters."""
    return cast("World | None", getattr(cluster, "world", None))
