"""The disk of a simulated node whose program writes into a folder of this machine."""

from __future__ import annotations

import errno
import os
import shutil
import stat
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final

from clusters.sim.damage import Edit, changed, edits, picked, unable
from clusters.sim.disk import DATA_DIRECTORY, SimDisk
from harness.damage import How
from harness.errors import InfrastructureError, NodeError
from harness.world import Lost

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from harness.damage import Changed, Damaging
    from harness.world import Losing

MOST_KEPT_BYTES: Final = 1 << 28  # of the files of one process
_BLOCK: Final = 1 << 20


class Folder(SimDisk):
    """The disk of a node whose program writes into a folder. A fault changes the files in place."""

    def __init__(self, node: str, folder: Callable[[], Path], *, shown: str = DATA_DIRECTORY) -> None:
        """Makes the disk.

        Args:
            node: The name of the node.
            folder: Returns the folder with its data.
            shown: The path of this folder in messages.
        """
        super().__init__(node)
        self._node = node
        self._place = folder
        self._shown = shown
        self._earlier: dict[str, Extents] = {}

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

    def keep(self) -> int:
        """Remembers the files as they are now, without their holes. Returns the number of files.

        Raises:
            NodeError: They are larger than what Labrys remembers.
        """
        self._earlier = {}
        room = MOST_KEPT_BYTES
        for name, path in self._regular().items():
            kept = self._earlier[name] = Extents.of(path)
            room -= kept.held
            if room < 0:
                raise NodeError(
                    self._node, f"the files in {self._shown} have more than {MOST_KEPT_BYTES} bytes of data"
                )
        return len(self._earlier)

    def damage(self, damaging: Damaging) -> Changed:
        """Damages one file in place, and reads it back; see `harness.world.World.damage_file`."""
        files = self._regular()
        matching = [
            name
            for name in sorted(files)
            if fnmatchcase(name, damaging.pattern) or fnmatchcase(name, f"*/{damaging.pattern}")
        ]
        able = [
            (files[name], planned)
            for name in matching
            if (planned := self._edits(name, files[name], damaging)) is not None
        ]
        if not able:
            raise unable(self._node, damaging, self._shown, matching=len(matching))
        path, (size, made) = able[picked(damaging.pick, len(able))]
        with path.open("r+b", buffering=0) as opened:
            file = opened.fileno()
            sizes, written_bytes = os.fstat(file).st_size, _written(path)
            before = {edit.at: os.pread(file, len(edit.content), edit.at) for edit in made}
            os.truncate(file, size)
            for edit in made:
                _write(file, edit)
            now = {edit.at: os.pread(file, len(edit.content), edit.at) for edit in made}
            after_bytes = os.fstat(file).st_size
        self.damaged(path)
        return changed(
            damaging,
            f"{self._shown}/{path.relative_to(self._place()).as_posix()}",
            made,
            written_bytes=written_bytes,
            before=lambda at, _: before[at],
            now=lambda at, _: now[at],
            sizes=(sizes, after_bytes),
        )

    def _edits(self, name: str, path: Path, damaging: Damaging) -> tuple[int, list[Edit]] | None:
        """Returns the size of a file after a damage, and what to write there; None if it cannot have it."""
        size, written = path.stat().st_size, _written(path)
        earlier = self._earlier.get(name)
        if not written or (damaging.how is How.ROLL_BACK and earlier is None):
            return None
        if damaging.how is How.CUT:
            return max(0, written - damaging.amount), []
        if damaging.how is How.ROLL_BACK and not damaging.chunk_bytes and earlier is not None:
            return _back(path, earlier)
        with path.open("rb", buffering=0) as opened:
            made = edits(
                damaging,
                written,
                lambda at, length: os.pread(opened.fileno(), length, at),
                None if earlier is None else earlier.read,
            )
        return (size, made) if made else None

    def damaged(self, path: Path) -> None:
        """Notes that a fault has changed a file."""

    def _regular(self) -> dict[str, Path]:
        """Returns the regular files by their paths in the folder; a link could lead out of it."""
        folder = self._place()
        return {path.relative_to(folder).as_posix(): path for path in _entries(folder) if _is_file(path)}


@dataclass(frozen=True, slots=True)
class Extents:
    """The content of a file, without its holes.

    Attributes:
        size: The size of the file.
        parts: Bytes with their offsets, in order. Between them, the file has zeros.
    """

    size: int
    parts: Sequence[tuple[int, bytes]]

    @classmethod
    def of(cls, path: Path) -> Extents:
        """Reads a file, at most a little more than Labrys remembers."""
        parts, kept_bytes = [], 0
        with path.open("rb", buffering=0) as opened:
            file = opened.fileno()
            for begin, end in _extents(file):
                for at in range(begin, end, _BLOCK):
                    content = os.pread(file, min(_BLOCK, end - at), at).rstrip(b"\0")
                    kept_bytes += len(content)
                    if content and kept_bytes <= MOST_KEPT_BYTES + _BLOCK:
                        parts.append((at, content))
            return cls(os.fstat(file).st_size, parts)

    @property
    def held(self) -> int:
        """Returns the number of bytes in memory."""
        return sum(len(content) for _, content in self.parts)

    def read(self, at: int, length: int) -> bytes:
        """Returns bytes of the file, fewer at its end."""
        content = bytearray(max(0, min(length, self.size - at)))
        for begin, part in self.parts:
            first, last = max(begin, at), min(begin + len(part), at + len(content))
            if first < last:
                content[first - at : last - at] = part[first - begin : last - begin]
        return bytes(content)


def _back(path: Path, earlier: Extents) -> tuple[int, list[Edit]] | None:
    """Returns the earlier size of a file, and each block of it that differs now; None if nothing differs."""
    now = Extents.of(path)
    blocks = sorted(
        {at // _BLOCK for kept in (now, earlier) for begin, part in kept.parts for at in (begin, begin + len(part) - 1)}
    )
    made = [
        Edit(block * _BLOCK, content)
        for block in blocks
        if (content := earlier.read(block * _BLOCK, _BLOCK)) != now.read(block * _BLOCK, len(content))
    ]
    return (earlier.size, made) if made or now.size != earlier.size else None


def _write(file: int, edit: Edit) -> None:
    """Writes all bytes of an edit."""
    done = 0
    while done < len(edit.content):
        done += os.pwrite(file, edit.content[done:], edit.at + done)


def _entries(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_symlink() or not path.is_dir()]


def _is_file(path: Path) -> bool:
    return stat.S_ISREG(path.lstat().st_mode)  # a link could lead out of the folder


def _extents(file: int) -> list[tuple[int, int]]:
    """Returns the begin and the end of each part of an open file that is no hole, so that a large empty file is quick."""
    parts, position = [], 0
    size = os.fstat(file).st_size
    while position < size:
        try:
            begin = os.lseek(file, position, os.SEEK_DATA)
        except OSError as error:
            if error.errno != errno.ENXIO:  # lseek(2): there is only a hole from here on
                raise
            break
        position = os.lseek(file, begin, os.SEEK_HOLE)
        parts.append((begin, position))
    return parts


def _written(path: Path) -> int:
    """Returns the size of a file up to the last byte that is not zero."""
    with path.open("rb", buffering=0) as opened:
        for begin, end in reversed(_extents(opened.fileno())):
            for last in range(end, begin, -_BLOCK):
                first = max(begin, last - _BLOCK)
                if data := os.pread(opened.fileno(), last - first, first).rstrip(b"\0"):
                    return first + len(data)
    return 0
