"""Network namespaces: made, entered, emptied and removed by name.

A process belongs to a cluster if it runs in one of the cluster's network namespaces, and only such processes are ever ended.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

from clusters.errors import ClusterError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

NETNS_DIR = "/run/netns"
CLONE_NEWNET = 0x40000000
COMMAND_TIMEOUT_S = 20.0
EMPTY_TIMEOUT_S = 10.0
SYSTEM_PATH = "/usr/sbin:/sbin:/usr/bin:/bin"


def find_program(name: str) -> str | None:
    """Returns the path of a system program, also where the user's PATH has no sbin."""
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:{SYSTEM_PATH}")


def ip(*arguments: str) -> None:
    """Runs `ip`.

    Raises:
        ClusterError: It failed.
    """
    _run([find_program("ip") or "ip", *arguments])


def ip_batch(lines: Sequence[str], namespace: str | None = None) -> None:
    """Runs many `ip` commands in one process, in a namespace if one is given."""
    inside = ["-n", namespace] if namespace is not None else []
    _run([find_program("ip") or "ip", *inside, "-batch", "-"], stdin="\n".join(lines) + "\n")


def exists(namespace: str) -> bool:
    """Returns whether there is a network namespace of this name."""
    return os.path.lexists(f"{NETNS_DIR}/{namespace}")


def remove(namespace: str) -> None:
    """Ends every process in the namespace, then removes it. Does nothing if there is none.

    Raises:
        ClusterError: A process is still there after the time allowed.
    """
    if not exists(namespace):
        return
    deadline_s = time.monotonic() + EMPTY_TIMEOUT_S
    while pids := processes(namespace):
        if time.monotonic() > deadline_s:
            raise ClusterError(f"processes {pids} of {namespace} are still there {EMPTY_TIMEOUT_S:g} s after SIGKILL")
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)
    ip("netns", "delete", namespace)


def processes(namespace: str) -> list[int]:
    """Returns the ids of the processes whose network namespace is this one, except our own."""
    try:
        inode = Path(NETNS_DIR, namespace).stat().st_ino
    except FileNotFoundError:
        return []
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                if (entry / "ns/net").stat().st_ino == inode:
                    found.append(int(entry.name))
    return [pid for pid in found if pid != os.getpid()]


@contextlib.contextmanager
def entered(namespace: str) -> Iterator[None]:
    """Moves the calling thread into a network namespace until the context ends.

    Threads that are started inside inherit it; other threads are not touched.

    Raises:
        ClusterError: There is no such namespace, or it may not be entered.
    """
    before = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        try:
            target = os.open(f"{NETNS_DIR}/{namespace}", os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise ClusterError(f"the network namespace {namespace} cannot be opened: {error.strerror}") from error
        try:
            _set_namespace(target, namespace)
        finally:
            os.close(target)
        try:
            yield
        finally:
            _set_namespace(before, "where the thread came from")
    finally:
        os.close(before)


def _set_namespace(descriptor: int, name: str) -> None:
    # os.setns came with Python 3.12.
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(descriptor, CLONE_NEWNET) != 0:
        raise ClusterError(f"the network namespace {name} cannot be entered: {os.strerror(ctypes.get_errno())}")


def _run(command: Sequence[str], stdin: str | None = None) -> None:
    try:
        done = subprocess.run(
            command, input=stdin, capture_output=True, text=True, timeout=COMMAND_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ClusterError(f"`{' '.join(command)}` could not run: {error}") from error
    if done.returncode != 0:
        raise ClusterError(f"`{' '.join(command)}` failed: {done.stderr.strip()} {f'(of: {stdin})' if stdin else ''}")
