"""The files of a program in virtual time, for the faults that damage them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clusters.sim.folder import Folder

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


class Data(Folder):
    """The folder of data of a process that does not run; see `clusters.sim.folder.Folder`."""

    def __init__(self, node: str, folder: str, place: Path, settle: Callable[[str], None]) -> None:
        """Describes the folder.

        Args:
            node: The name of the node.
            folder: The path of the folder, as programs see it.
            place: Where this process sees its files.
            settle: Makes a file durable as it is, by its path within the folder.
        """
        super().__init__(node, lambda: place, shown=folder)
        self._settle = settle

    def damaged(self, path: Path) -> None:
        """Notes that a fault has changed a file: a later loss of power does not take that back."""
        self._settle(path.relative_to(self._place()).as_posix())
