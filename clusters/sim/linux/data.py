"""The files of programs in virtual time, for faults of disks: each folder of data is a volume of its own."""

from __future__ import annotations

import subprocess
from functools import partial
from typing import TYPE_CHECKING, Final

from clusters.sim.folder import Folder
from harness.world import Lost

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from clusters.sim.linux.driving import Controller

COPY_S: Final = 300.0  # the longest time for the files of a node


class Data(Folder):
    """The folder of data of a process that does not run; see `clusters.sim.folder.Folder`."""

    def __init__(self, node: str, folder: str, path: Path, settle: Callable[..., None]) -> None:
        """Describes the folder.

        Args:
            node: The name of the node.
            folder: The path of the folder, as programs see it.
            path: Where this process sees its files.
            settle: Makes a file durable as it is, by its path within the folder; without one, all of the folder.
        """
        super().__init__(node, lambda: path, shown=folder)
        self._settle = settle

    def damaged(self, path: Path) -> None:
        """Notes that a fault has changed a file: a later loss of power does not take that back."""
        self._settle(path.relative_to(self._place()).as_posix())

    def wiped(self) -> None:
        """Notes that a fault has removed all files."""
        self._settle()


class Volumes:
    """The volumes of the nodes of a run, by the node and the folder that programs see."""

    def __init__(self, inside: Callable[[str], Sequence[str]]) -> None:
        """Makes none yet.

        Args:
            inside: Returns the words that carry out a command among the files of a node.
        """
        self._inside = inside
        self._data: dict[tuple[str, str], Data] = {}

    def add(self, controller: Controller, node: str, folder: str, *, remembers: bool) -> None:
        """Gives a folder a volume, if it has none, before a process with its data there starts."""
        path = controller.add_volume(node, folder, remembers=remembers)
        self._data[node, folder] = Data(node, folder, path, partial(controller.settle, node, folder))

    def data(self, node: str, folder: str) -> Data:
        """Returns the files of a volume."""
        return self._data[node, folder]

    def wipe(self, node: str, folder: str) -> Lost:
        """Removes all files of a volume, but no folders. A later loss of power does not bring them back."""
        words = ["/usr/bin/find", folder, "-mindepth", "1", "!", "-type", "d", "-printf", "%s\\n", "-delete"]
        done = subprocess.run([*self._inside(node), *words], capture_output=True, check=True, timeout=COPY_S)
        sizes = [int(line) for line in done.stdout.split()]
        self._data[node, folder].wiped()
        return Lost(files=len(sizes), changed=len(sizes), bytes=sum(sizes))


def total(losses: Iterable[Lost]) -> Lost:
    """Returns the sum of what several volumes lost."""
    of_volumes = list(losses)
    return Lost(
        files=sum(lost.files for lost in of_volumes),
        changed=sum(lost.changed for lost in of_volumes),
        bytes=sum(lost.bytes for lost in of_volumes),
    )
