"""The disk of a simulated node whose program writes into a folder of this machine."""

from __future__ import annotations

import errno
import os
import shutil
import stat
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final

from clusters.sim.disk import DATA_DIRECTORY, SimDisk, flips
from harness.errors import InfrastructureError, NodeError
from harness.world import Changed, Lost

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from harness.world import Losing

_BLOCK: Final = 1 << 20


class Folder(SimDisk):
    """The disk of a node whose program writes into a folder. A fault changes the files in place."""

    def __init__(self, node: str, place: Callable[[], Path], *, shown: str = DATA_DIRECTORY) -> None:
        """Makes the disk.

        Args:
            node: The name of the node.
            place: Returns the folder with its data.
            shown: The path of this folder in messages.
        """
        super().__init__(node)
        self._node = node
        self._place = place
        self._shown = shown

    def lose_power(self, losing: Losing | None = None) -> Lost:  # noqa: ARG002
        """Refuses: a folder of this machine keeps what programs write.

        Raises:
            InfrastructureError: Always.
        """
        raise InfrastructureError(f"{self._node} runs a program of this machine, whose disk keeps what it wrote")

    def lose_all(self) -> Lost:
        """Removes all that is in the folder. Returns the loss."""
        folder = self._place()
        before = [path.lstat().st_size for path in _entries(folder)]
        for path in folder.iterdir() if folder.is_dir() else ():
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)
        return Lost(files=len(before), changed=len(before) - len(_entries(folder)), bytes=sum(before))

    def cut_end(self, *, pattern: str, pick: float, amount: int) -> Changed:
        """Cuts the last written bytes off a file; see `harness.world.World.truncate_file`."""
        path, written = self._found(pattern, pick)
        before = path.stat().st_size
        os.truncate(path, max(0, written - amount))
        self.damaged(path)
        return Changed(file=self._name(path), before_bytes=before, after_bytes=path.stat().st_size)

    def flip(self, *, pattern: str, pick: float, amount: int, seed: int) -> Changed:
        """Flips bits in a file; see `harness.world.World.flip_bits`."""
        path, written = self._found(pattern, pick)
        flipped = flips(written, amount, seed)
        with path.open("r+b", buffering=0) as file:
            before = {place: _byte(file.fileno(), place) for place in sorted(flipped)}
            for place, bit in flipped.items():
                os.pwrite(file.fileno(), bytes((before[place] ^ bit,)), place)
            size = os.fstat(file.fileno()).st_size
            differ = tuple(place for place, was in before.items() if _byte(file.fileno(), place) != was)
        self.damaged(path)
        return Changed(file=self._name(path), before_bytes=size, after_bytes=size, places=differ)

    def damaged(self, path: Path) -> None:
        """Notes that a fault has changed a file."""

    def _name(self, path: Path) -> str:
        return f"{self._shown}/{path.relative_to(self._place()).as_posix()}"

    def _found(self, pattern: str, pick: float) -> tuple[Path, int]:
        """Returns the file to damage, and its size up to the last byte that is not zero."""
        folder = self._place()
        names = {path.relative_to(folder).as_posix(): path for path in _entries(folder) if _is_file(path)}
        found = [
            (names[name], written)
            for name in sorted(names)
            if (fnmatchcase(name, pattern) or fnmatchcase(name, f"*/{pattern}")) and (written := _written(names[name]))
        ]
        if not found:
            raise NodeError(self._node, f"no file with data matches {pattern} in {self._shown}")
        return found[min(int(pick * len(found)), len(found) - 1)]


def _entries(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_symlink() or not path.is_dir()]


def _is_file(path: Path) -> bool:
    return stat.S_ISREG(path.lstat().st_mode)  # a link could lead out of the folder


def _byte(file: int, place: int) -> int:
    return os.pread(file, 1, place)[0]


def _written(path: Path) -> int:
    """Returns the size of a file up to the last byte that is not zero. It reads no holes, so a large empty file is quick."""
    with path.open("rb", buffering=0) as opened:
        file, parts, place = opened.fileno(), [], 0
        size = os.fstat(file).st_size
        while place < size:
            try:
                begin = os.lseek(file, place, os.SEEK_DATA)
            except OSError as error:
                if error.errno != errno.ENXIO:  # lseek(2): there is only a hole from here on
                    raise
                break
            place = os.lseek(file, begin, os.SEEK_HOLE)
            parts.append((begin, place))
        for begin, end in reversed(parts):
            for last in range(end, begin, -_BLOCK):
                first = max(begin, last - _BLOCK)
                if data := os.pread(file, last - first, first).rstrip(b"\0"):
                    return first + len(data)
    return 0
