"""The folder of Labrys for files that it can make again: an entry is there as a whole, or not at all.

Several processes may want the same entry. One of them holds a lock and makes the entry in a folder beside its place; then it
renames the folder. So an interruption leaves no half entry, and no process makes what another one makes.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from harness.errors import InfrastructureError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

POLL_S = 0.1


def cache() -> Path:
    """Returns the folder: `labrys` in `XDG_CACHE_HOME`, or in `~/.cache`; makes it if it is missing.

    Raises:
        InfrastructureError: It cannot be made.
    """
    top = os.environ.get("XDG_CACHE_HOME", "")
    folder = (Path(top) if Path(top).is_absolute() else Path.home() / ".cache") / "labrys"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InfrastructureError(
            f"{folder} cannot be made ({error.strerror}); set XDG_CACHE_HOME to a folder that this user can write"
        ) from error
    return folder


@contextmanager
def locked(path: Path, *, timeout_s: float, waits: Callable[[], object] = lambda: None) -> Iterator[None]:
    """Holds the lock of an entry. The kernel frees it if the process ends in any way.

    Args:
        path: The file of the lock; it stays.
        timeout_s: The time limit of the wait for another process, in seconds.
        waits: Is called once, if another process holds the lock.

    Raises:
        InfrastructureError: Another process holds it for the whole time.
    """
    deadline_s = time.monotonic() + timeout_s
    with path.open("w") as file:
        told = False
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline_s:
                    raise InfrastructureError(
                        f"another process held {path} for {timeout_s:g} s; `fuser {path}` shows which"
                    ) from None
            if not told:
                waits()
                told = True
            time.sleep(POLL_S)
        yield


@contextmanager
def appearing(path: Path) -> Iterator[Path]:
    """Yields an empty folder, which becomes `path` if the block ends without an error; else it is removed.

    The caller holds the lock of the entry. Folders of processes that were killed are removed first, and so is an old `path`.
    """
    for left in path.parent.glob(f"{path.name}.part-*"):
        shutil.rmtree(left, ignore_errors=True)
    made = Path(tempfile.mkdtemp(prefix=f"{path.name}.part-", dir=path.parent))
    try:
        made.chmod(0o755)
        yield made
        if path.exists():
            shutil.rmtree(path)
        made.rename(path)
    except BaseException:
        shutil.rmtree(made, ignore_errors=True)
        raise
