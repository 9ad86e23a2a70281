"""Reads and writes within a folder with foreign content, and never leaves it.

The folder of a run can come from anyone. A symbolic link in it could make a report show a private file of its reader, or make a
picture overwrite a file. So these functions never follow a link within the folder. They open each component inside the one
before with O_NOFOLLOW, and open only regular files. They replace a file by a rename within its folder, which replaces a link
and not its target. The folder itself is the choice of the caller, and its path may contain links.

All functions raise OSError with a reason in `strerror`, as other file operations do.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from typing import IO, TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LINK = "a symbolic link, and no link is followed below a run's folder"
SPECIAL = "no regular file"
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


def open_file(root: Path, path: Path) -> BinaryIO:
    """Opens the regular file at `path`, below `root`, for reading."""
    with _folder_of(root, path) as folder:
        return os.fdopen(_regular(path, folder, os.O_RDONLY), "rb")


def open_new_text(root: Path, path: Path) -> IO[str]:
    """Opens the file at `path`, below `root`, empty, for writing and reading again."""
    with _folder_of(root, path) as folder:
        descriptor = _regular(path, folder, os.O_RDWR | os.O_CREAT)
    os.ftruncate(descriptor, 0)
    return os.fdopen(descriptor, "w+", encoding="utf-8")


def replace_file(root: Path, path: Path, data: bytes) -> None:
    """Replaces what is at `path`, below `root`, in one step, and makes the folders on the way to it."""
    temporary = f".{path.name}.{secrets.token_hex(4)}.tmp"
    with _folder_of(root, path, make=True) as folder:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            with os.fdopen(os.open(temporary, flags, 0o644, dir_fd=folder), "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.rename(temporary, path.name, src_dir_fd=folder, dst_dir_fd=folder)
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(temporary, dir_fd=folder)
            raise


def is_file(root: Path, path: Path) -> bool:
    """Says whether there is a file at `path`, below `root`.

    Raises:
        OSError: There is something else, e.g. a link.
    """
    try:
        open_file(root, path).close()
    except FileNotFoundError:
        return False
    return True


def is_folder(root: Path, path: Path) -> bool:
    """Says whether there is a folder at `path`, below `root` or `root` itself, on a way without links."""
    try:
        with _folder_of(root, path / "_"):
            return True
    except OSError:
        return False


def walk(root: Path, path: Path, *, deepest: int) -> Iterator[tuple[Path, os.stat_result]]:
    """Yields everything below a folder with what `lstat` says of it; what a link leads to is not below.

    Args:
        root: The folder that is not left.
        path: The folder where to begin.
        deepest: How many folders below `path` are entered; one that is deeper is yielded without what it holds.
    """
    with _folder_of(root, path / "_") as folder:
        found = []
        for name in sorted(os.listdir(folder)):  # noqa: PTH208 - of an open folder, which no link can replace
            with contextlib.suppress(FileNotFoundError):
                found.append((path / name, os.stat(name, dir_fd=folder, follow_symlinks=False)))
    for entry, about in found:
        yield entry, about
        if deepest > 0 and stat.S_ISDIR(about.st_mode):
            yield from walk(root, entry, deepest=deepest - 1)


@contextlib.contextmanager
def _folder_of(root: Path, path: Path, *, make: bool = False) -> Iterator[int]:
    """Gives the folder that holds `path`, opened component by component from `root` on."""
    parts = path.relative_to(root).parts
    if not parts or ".." in parts:
        raise OSError(errno.EINVAL, f"expected a path below {root}", str(path))
    if make:
        root.mkdir(parents=True, exist_ok=True)
    folder = os.open(root, _FOLDER)
    try:
        for part in parts[:-1]:
            if make:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(part, dir_fd=folder)
            try:
                inner = os.open(part, _FOLDER | os.O_NOFOLLOW, dir_fd=folder)
            except OSError as error:
                raise _told(error, part, folder, path) from error
            os.close(folder)
            folder = inner
        yield folder
    finally:
        os.close(folder)


def _regular(path: Path, folder: int, flags: int) -> int:
    """Opens a regular file; a pipe or a device is never waited for."""
    try:
        descriptor = os.open(
            path.name, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC, 0o644, dir_fd=folder
        )
    except OSError as error:
        raise _told(error, path.name, folder, path) from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, SPECIAL, str(path))
    return descriptor


def _told(error: OSError, name: str, folder: int, path: Path) -> OSError:
    """Returns the error, with a link called a link."""
    with contextlib.suppress(OSError):
        if stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            return OSError(errno.ELOOP, LINK, str(path))
    return error
