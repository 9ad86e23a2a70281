"""Reads and writes inside a folder with foreign content, and never leaves it.

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

LINK = "a symbolic link; labrys follows no link in a run's folder"
SPECIAL = "not a regular file"
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


def open_file(root: Path, path: Path) -> BinaryIO:
    """Opens the regular file at `path`, below `root`, for reading."""
    with _folder_of(root, path) as folder:
        return os.fdopen(_regular(path, folder, os.O_RDONLY), "rb")


def open_new_text(root: Path, path: Path) -> IO[str]:
    """Empties the file at `path`, below `root`, or creates it, and opens it for writing and reading."""
    with _folder_of(root, path) as folder:
        descriptor = _regular(path, folder, os.O_RDWR | os.O_CREAT)
    os.ftruncate(descriptor, 0)
    return os.fdopen(descriptor, "w+", encoding="utf-8")


def replace_file(root: Path, path: Path, data: bytes) -> None:
    """Replaces the file at `path`, below `root`, in one step, and makes its parent folders."""
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
    """Returns whether there is a regular file at `path`, below `root`.

    Raises:
        OSError: Something else is there, e.g. a link.
    """
    try:
        open_file(root, path).close()
    except FileNotFoundError:
        return False
    return True


def is_folder(root: Path, path: Path) -> bool:
    """Returns whether `path`, below `root` or `root` itself, is a folder with no link on the way."""
    try:
        with _folder_of(root, path / "_"):
            return True
    except OSError:
        return False


def walk(root: Path, path: Path, *, deepest: int) -> Iterator[tuple[Path, os.stat_result]]:
    """Yields each entry below a folder with its `lstat` result; links are not followed.

    Args:
        root: The folder that the walk does not leave.
        path: The folder where the walk begins.
        deepest: The number of levels of folders below `path` that the walk enters. Deeper folders are yielded and not entered.
    """
    with _folder_of(root, path / "_") as folder:
        entries = []
        for name in sorted(os.listdir(folder)):  # noqa: PTH208 - an open folder, which no link can replace
            with contextlib.suppress(FileNotFoundError):
                entries.append((path / name, os.stat(name, dir_fd=folder, follow_symlinks=False)))
    for entry, about in entries:
        yield entry, about
        if deepest > 0 and stat.S_ISDIR(about.st_mode):
            yield from walk(root, entry, deepest=deepest - 1)


@contextlib.contextmanager
def _folder_of(root: Path, path: Path, *, make: bool = False) -> Iterator[int]:
    """Opens the parent folder of `path`, component by component from `root`, and yields its descriptor."""
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
                raise _as_link(error, part, folder, path) from error
            os.close(folder)
            folder = inner
        yield folder
    finally:
        os.close(folder)


def _regular(path: Path, folder: int, flags: int) -> int:
    """Opens a regular file; never waits for a pipe or a device."""
    try:
        descriptor = os.open(
            path.name, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC, 0o644, dir_fd=folder
        )
    except OSError as error:
        raise _as_link(error, path.name, folder, path) from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, SPECIAL, str(path))
    return descriptor


def _as_link(error: OSError, name: str, folder: int, path: Path) -> OSError:
    """Returns an error that names the link if `name` is one; else the error itself."""
    with contextlib.suppress(OSError):
        if stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            return OSError(errno.ELOOP, LINK, str(path))
    return error
