"""What a simulated process sees of its machine: clocks, timers, a network card, a disk, and random numbers of its own.

A process is a plain object without threads. The simulator calls it, and it returns at once. Whatever it keeps in its
attributes is memory, and is lost when it is killed. Only what it has synced to its disk is certain to outlive a power loss.
A simulated system is written against the protocols here, and against nothing else of the simulator.
"""

from __future__ import annotations

import errno
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random


@dataclass(frozen=True, slots=True)
class Request:
    """What a client sends to a process.

    Attributes:
        id: The request's number, which its reply must carry. The sender and the number together name a request.
        body: What is asked, in the system's own terms. The process must not change it.
    """

    id: int
    body: Any


@dataclass(frozen=True, slots=True)
class Reply:
    """What a process sends back to the client that asked.

    Attributes:
        id: The number of the request that it answers.
        body: The answer, in the system's own terms.
    """

    id: int
    body: Any


class DiskFull(OSError):  # noqa: N818 - a state of the disk, and named so everywhere
    """A simulated disk has no room for what was to be written; nothing of it was written."""

    def __init__(self, name: str) -> None:
        super().__init__(errno.ENOSPC, "no space left on the simulated disk", name)


class Timer(Protocol):
    """A timer that was set."""

    def cancel(self) -> None:
        """Lets it never fire. Does nothing if it has fired or was cancelled before."""
        ...


class Disk(Protocol):
    """Files by name, in one flat directory.

    What was written is readable at once, also after the process was killed. A power loss takes everything away that was not
    synced: a file is then as it was at its last `sync`, and a file that was never synced is gone. A file that is damaged by a
    fault reads differently from what was written.
    """

    def names(self) -> list[str]:
        """Returns the names of all files, sorted."""
        ...

    def read(self, name: str) -> bytes:
        """Returns the whole file.

        Raises:
            FileNotFoundError: There is none of this name.
        """
        ...

    def append(self, name: str, content: bytes) -> None:
        """Adds bytes to the end of a file, which is made if there is none.

        Raises:
            DiskFull: The disk is full; nothing was written.
        """
        ...

    def write(self, name: str, content: bytes) -> None:
        """Replaces a whole file. Once synced, the old content or the new one is found after a power loss, never a mixture.

        Raises:
            DiskFull: The disk is full; the file is as it was.
        """
        ...

    def truncate(self, name: str, size: int) -> None:
        """Cuts a file to `size` bytes; does nothing to a shorter one.

        Raises:
            FileNotFoundError: There is none of this name.
        """
        ...

    def delete(self, name: str) -> None:
        """Removes a file; does nothing if there is none. `sync` of the same name makes the removal last."""
        ...

    def sync(self, name: str) -> None:
        """Makes what the file now holds, or its absence, outlive a power loss."""
        ...


class Host(Protocol):
    """A simulated machine, as the process on it sees it.

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
        """Returns the node's wall clock in nanoseconds. Faults make it jump and drift."""
        ...

    def monotonic_ns(self) -> int:
        """Returns nanoseconds that never run backwards and that no fault changes. Their zero means nothing."""
        ...

    def after(self, delay_ns: int, action: Callable[[], None]) -> Timer:
        """Calls `action` once, `delay_ns` of monotonic time from now; never if the process is killed before.

        A paused process hears its due timers when it is continued, in their order.
        """
        ...

    def send(self, to: str, message: Any) -> None:
        """Sends a message to a node, or a `Reply` to the client that sent a `Request`.

        It returns at once. The message may be delayed, lost, doubled, or overtaken by a later one. It must not be changed
        after it was sent: the receiver gets the same object.
        """
        ...

    def log(self, text: str) -> None:
        """Writes one line into the node's log, behind the virtual time."""
        ...


class Process(Protocol):
    """A process of a simulated system. It is made with its host; see `Factory`."""

    def start(self) -> None:
        """Is called once, right after the process was made; reads what the disk holds."""
        ...

    def receive(self, sender: str, message: Any) -> None:
        """Takes a message from a node, or a `Request` from a client.

        Args:
            sender: The name of the node, or of the client.
            message: What was sent. The process must not change it.
        """
        ...


Factory: TypeAlias = "Callable[[Host], Process]"
