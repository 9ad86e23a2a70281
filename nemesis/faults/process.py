"""Faults of the system's processes: kill, kill with a cold page cache, and pause.

A fault with a role as its target acts only on the processes of that role. Other faults act on all processes of a node.
"""

from __future__ import annotations

from typing import ClassVar

from harness.capabilities import DROP_CACHES, LOOP_DEVICES, ROOT
from nemesis.fault import PROCESS, Fault


class ProcessFault(Fault):
    """The base class of faults of processes."""

    GROUPS: ClassVar[frozenset[str]] = frozenset({PROCESS})
    DISABLES: ClassVar[bool] = True

    WHOLE_NODE: ClassVar[str | None] = None


class Kill(ProcessFault):
    """`kill`, and its variants by target."""

    EFFECT: ClassVar[str] = "{nodes} {were} killed"
    SUMMARY: ClassVar[str] = "Kills the process (SIGKILL), and starts it again at the end."
    PROOF: ClassVar[str] = (
        "at the begin and at the end, no process of the system runs, and none listens on its ports; after the end, another pid "
        "listens on the same ports"
    )


class Crash(Kill):
    """`crash`."""

    EFFECT: ClassVar[str] = "{nodes} {were} killed, with an empty page cache"
    SUMMARY: ClassVar[str] = (
        "Kills the process and drops its data from the node's page cache, so that the restart reads from disk."
    )
    PROOF: ClassVar[str] = (
        "as for kill; the pages of the process' files that the kernel has in memory, before and after"
    )
    NEEDS: ClassVar[frozenset[str]] = frozenset({ROOT, DROP_CACHES, LOOP_DEVICES})
    PREPARES: ClassVar[bool] = True  # a local node has its files in memory, and a volume of Labrys can leave it


class Pause(ProcessFault):
    """`pause`, and its variants by target."""

    EFFECT: ClassVar[str] = "{nodes} {were} paused"
    SUMMARY: ClassVar[str] = "Stops the process (SIGSTOP), and continues it at the end (SIGCONT)."
    PROOF: ClassVar[str] = (
        "at the begin and at the end, the process with the pid and the ports of the system is in state T; between, it uses no "
        "processor time; after the end, it has left state T"
    )

    def blurs(self) -> frozenset[str]:
        """Returns the targets: a stopped process accepts no connection, and with a full backlog probes stay silent."""
        return frozenset(self.targets)
