"""The interface between a simulated process and its machine: clocks, timers, network, disk and random numbers.

A process is a plain object without threads. The simulator calls it, and it returns at once. Its attributes are its memory, and
a kill loses them. Only data that it has synced to its disk is certain to survive a power loss. A simulated system uses the
protocols of this module, and nothing else of the simulator.
"""

from __future__ import annotations

import errno
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random


@dataclass(frozen=True, slots=True)
class Request:
    """A request of a client to a process.

    Attributes:
        id: The request's number, which its reply must repeat. The sender and the number together identify a request.
        body: The content, in a form that the system defines. The process must not change it.
    """

    id: int
    body: Any


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer of a process to a client's request.

    Attributes:
        id: The number of the request.
        body: The content, in a form that the system defines.
    """

    id: int
    body: Any


class DiskFull(OSError):  # noqa: N818 - a state of the disk, and named so everywhere
    """A simulated disk is full. It wrote nothing."""

    def __init__(self, name: str) -> None:
        super().__init__(errno.ENOSPC, "no space left on the simulated disk", name)


class DiskError(OSError):
    """A call on a simulated disk failed by a fault. If a process does not catch it, the process ends."""


class Timer(Protocol):
    """A timer that was set."""

    def cancel(self) -> None:
        """Stops the timer, so that it never fires. Does nothing if it has fired or was cancelled before."""
        ...


class Disk(Protocol):
    """Files by name, in one flat directory.

    Attributes:
        errors: How many calls have failed by an error of the disk so far, like `/sys/fs/ext4/DEVICE/errors_count`.

    A write is readable at once, and survives a kill of the process. A power loss resets each file to its last `sync`; a file
    that was never synced is gone. If a fault damages a file, a read returns the damaged content.
    """

    errors: int

    def names(self) -> list[str]:
        """Returns the names of all files, sorted."""
        ...

    def read(self, name: str) -> bytes:
        """Returns the whole file.

        Raises:
            FileNotFoundError: There is no file of this name.
            DiskError: The disk has an error.
        """
        ...

    def append(self, name: str, content: bytes) -> None:
        """Adds bytes to the end of a file. Makes the file if there is none.

        Raises:
            DiskFull: The disk is full; nothing was written.
        """
        ...

    def write(self, name: str, content: bytes) -> None:
        """Replaces a whole file. After a power loss the file has the old content or the new one, never a mixture.

        Raises:
            DiskFull: The disk is full; the file is as it was.
        """
        ...

    def truncate(self, name: str, size: int) -> None:
        """Cuts a file to `size` bytes; does nothing to a shorter one.

        Raises:
            FileNotFoundError: There is no file of this name.
        """
        ...

    def delete(self, name: str) -> None:
        """Removes a file; does nothing if there is none. `sync` of the same name makes the removal durable."""
        ...

    def sync(self, name: str) -> None:
        """Makes the file's content, or its absence, durable: it survives a power loss.

        Raises:
            OSError: The disk has an error. What was written is still there to read, and no later sync makes it durable, as on
                Linux; only a new write of it can be. See Rebello et al., "Can Applications Recover from fsync Failures?"
                (ATC 2020).
        """
        ...


class Host(Protocol):
    """The simulated machine of a process.

    Attributes:
        name: The node's name.
        peers: The names of all nodes of the cluster, in order, this one included.
        random: The process' own random numbers, from the run's seed.
        disk: The node's disk.
    """

    name: str
    peers: tuple[str, ...]
    random: Random
    disk: Disk

    def wall_ns(self) -> int:
        """Returns the node's wall clock in nanoseconds. Faults can change it."""
        ...

    def monotonic_ns(self) -> int:
        """Returns a clock in nanoseconds that never jumps. Faults can change its speed. Its zero is arbitrary."""
        ...

    def after(self, delay_ns: int, action: Callable[[], None]) -> Timer:
        """Calls `action` once, `delay_ns` of monotonic time from now; never if the process is killed before.

        The timers of a paused process fire when it resumes, in their order.
        """
        ...

    def send(self, to: str, message: Any) -> None:
        """Sends a message to a node, or a `Reply` to the client that sent a `Request`.

        It returns at once. The network can delay, lose, double or reorder messages. The sender must not change the message
        afterwards: the receiver gets the same object.
        """
        ...

    def log(self, text: str) -> None:
        """Writes one line into the node's log, after the virtual time."""
        ...


class Process(Protocol):
    """A process of a simulated system. A `Factory` makes it from its host."""

    def start(self) -> None:
        """Starts the process. It can read the disk. The simulator calls this once, right after it made the process."""
        ...

    def receive(self, sender: str, message: Any) -> None:
        """Handles a message of a node, or a `Request` of a client.

        Args:
            sender: The name of the node, or of the client.
            message: The message. The process must not change it.
        """
        ...


@runtime_checkable
class Outside(Protocol):
    """A process whose code runs outside of this one, e.g. in a JVM. Its machine tells it what happens to it."""

    def killed(self) -> None:
        """The process is killed."""
        ...

    def paused(self) -> None:
        """The process is stopped."""
        ...

    def resumed(self) -> None:
        """The process goes on."""
        ...

    def clock_set(self, clock: tuple[int, int, int]) -> None:
        """The wall clock of the node is set; see `clusters.sim.machine.Machine.wall_clock`."""
        ...


Factory: TypeAlias = "Callable[[Host], Process]"
