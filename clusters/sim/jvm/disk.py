"""The disk of a node whose processes run in the JVM of the simulator. The JVM knows what is durable, and refuses writes."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Final

from clusters.sim.folder import Folder

if TYPE_CHECKING:
    from pathlib import Path

    from clusters.sim.jvm.processes import Java
    from harness.world import Failing, Losing, Lost

DATA: Final = "data"  # in the folder of the node


class JavaDisk(Folder):
    """The disk of a node; see `clusters.sim.disk.SimDisk`."""

    calls = ("write", "fsync", "msync", "rename")
    _full: bool = False

    def __init__(self, node: str, java: Java) -> None:
        """Makes the disk of a node."""
        self._java = java
        self._keys: set[int] = set()
        super().__init__(node, lambda: java.directory / node / DATA)

    @property
    def full(self) -> bool:
        """Whether the disk is full. A full disk takes no further byte."""
        return self._full

    @full.setter
    def full(self, full: bool) -> None:
        if full != self._full:
            self._full = full
            self._java.fill_disk(self._node, full=full)

    def has_room(self) -> bool:
        """Tries to write a small file. Returns whether that works."""
        return self._java.disk_takes(self._node)

    def fail(self, key: int, failing: Failing) -> None:
        """Lets calls fail from now on, until `mend` with the key of the fault."""
        self._keys.add(key)
        self._java.fail_calls(self._node, key, failing)

    def mend(self, key: int | None) -> None:
        """Removes the rules of a fault; None: all rules."""
        for known in self._keys & ({key} if key is not None else self._keys):
            self._java.mend_calls(self._node, known)
            self._keys.remove(known)

    def wipe(self) -> None:
        """Removes the folder of the node."""
        shutil.rmtree(self._java.directory / self._node, ignore_errors=True)
        self._java.emptied(self._node)

    def lose_power(self, losing: Losing | None = None) -> Lost:
        """Removes what processes wrote and did not sync, but for a random part or what is to survive. Returns the loss."""
        return self._java.lose_power(self._node, losing)

    def lose_all(self) -> Lost:
        """Removes all data. Returns the loss."""
        lost = super().lose_all()
        self._java.emptied(self._node)
        return lost

    def damaged(self, path: Path) -> None:
        """Notes that a fault has changed a file."""
        self._java.damaged(self._node, path)
