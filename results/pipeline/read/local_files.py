"""Files of this machine, with the same paths and answers as Hadoop's.

The rule: one path of the job may write an output folder, and the other may read it, so both name each file alike. Hadoop writes
a file of checksums beside each file. If this module replaces the file, it deletes the checksums.
"""

from __future__ import annotations

import os
import shutil
from contextlib import contextmanager
from glob import glob as matches_of
from pathlib import Path
from typing import TYPE_CHECKING, Final

from results.pipeline.errors import BadInput
from results.pipeline.read.files import Entry

if TYPE_CHECKING:
    from collections.abc import Iterator

SCHEME: Final = "file:"
_HADOOPS_OWN: Final = frozenset("{}\\^")  # characters of Hadoop's patterns that Python's patterns do not have
_NS_PER_MS: Final = 1_000_000


def is_local(path: str) -> bool:
    """Returns whether `LocalFiles` reads a path or pattern as Hadoop does."""
    scheme, colon, rest = path.partition(":")
    if colon and "/" not in scheme:
        return scheme == "file" and rest.startswith("/") and not rest.startswith("//") and is_local(rest)
    return _HADOOPS_OWN.isdisjoint(path)


class LocalFiles:
    """The files of this machine; see `results.pipeline.read.files.Files`."""

    def glob(self, pattern: str) -> list[Entry]:
        """See `Files.glob`."""
        with _bad_input(pattern):
            path = _path(pattern)
            paths = [str(path)] if path.exists() else matches_of(str(path), include_hidden=True)  # noqa: PTH207 - an absolute pattern
            return sorted((_entry(Path(match)) for match in paths), key=_by_path)

    def folder(self, path: str) -> list[Entry]:
        """See `Files.folder`."""
        with _bad_input(path):
            inside = (member for member in _path(path).iterdir() if not _is_checksum(member) and member.exists())
            return sorted((_entry(member) for member in inside), key=_by_path)

    def exists(self, path: str) -> bool:
        """See `Files.exists`."""
        with _bad_input(path):
            return _path(path).exists()

    def qualified(self, path: str) -> str:
        """See `Files.qualified`."""
        return _uri(_path(path))

    def read(self, path: str, limit: int) -> bytes:
        """See `Files.read`."""
        with _bad_input(path), _path(path).open("rb") as file:
            return file.read(limit)

    def tail(self, path: str, size: int, limit: int) -> bytes:
        """See `Files.tail`."""
        with _bad_input(path), _path(path).open("rb") as file:
            file.seek(max(size - limit, 0))
            return file.read(limit)

    def create(self, path: str, content: bytes) -> bool:
        """See `Files.create`."""
        with _bad_input(path):
            target = _path(path)
            target.parent.mkdir(parents=True, exist_ok=True)
            try:
                file = target.open("xb")
            except FileExistsError:
                return False
            with file:
                file.write(content)
            _without_checksums(target)
        return True

    def replace(self, path: str, content: bytes) -> None:
        """See `Files.replace`."""
        with _bad_input(path):
            target = _path(path)
            target.parent.mkdir(parents=True, exist_ok=True)
            partial = target.with_name(f"{target.name}.partial")
            with partial.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            _without_checksums(target)
            partial.replace(target)

    def delete(self, path: str) -> None:
        """See `Files.delete`."""
        with _bad_input(path):
            target = _path(path)
            if target.is_dir() and not target.is_symlink():
                shutil.rmtree(target)
            else:
                target.unlink(missing_ok=True)
                _without_checksums(target)


def local(path: str) -> Path:
    """Returns the path of a file, given its URI."""
    return Path(path.removeprefix(SCHEME))


def _path(text: str) -> Path:
    return Path(os.path.abspath(text.removeprefix(SCHEME)))  # noqa: PTH100 - `resolve` would follow links


def _uri(path: Path) -> str:
    return f"{SCHEME}{path}"


def _by_path(entry: Entry) -> str:
    return entry.path


def _entry(path: Path) -> Entry:
    status = path.stat()
    return Entry(
        path=_uri(path),
        name=path.name,
        is_folder=path.is_dir(),
        size=0 if path.is_dir() else status.st_size,
        modified_ms=status.st_mtime_ns // _NS_PER_MS,
    )


def _checksums_of(path: Path) -> Path:
    return path.with_name(f".{path.name}.crc")


def _is_checksum(path: Path) -> bool:
    return path.name.startswith(".") and path.name.endswith(".crc")


def _without_checksums(path: Path) -> None:
    _checksums_of(path).unlink(missing_ok=True)


@contextmanager
def _bad_input(path: str) -> Iterator[None]:
    """Raises an error of the operating system as `BadInput` with the path."""
    try:
        yield
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror or error}") from error
