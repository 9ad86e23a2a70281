"""Makes, enters, empties and removes network namespaces by name.

A process belongs to a cluster if it runs in a network namespace of the cluster. Labrys ends only such processes. It opens a
pidfd of a process before it examines the namespace, so the signal cannot hit a later process with the same id.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from clusters.errors import ClusterError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

NETNS_DIR = Path("/run/netns")
CLONE_NEWNET = 0x40000000
COMMAND_TIMEOUT_S = 20.0
EMPTY_TIMEOUT_S = 10.0
POLL_S = 0.01
SYSTEM_PATH = "/usr/sbin:/sbin:/usr/bin:/bin"


def find_program(name: str) -> str | None:
    """Returns the path of a system program, even if the user's PATH has no sbin."""
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:{SYSTEM_PATH}")


def ip_batch(lines: Sequence[str], *, namespace: str | None = None, lock: int | None = None) -> None:
    """Runs many `ip` commands in one process, in a namespace if one is given.

    Args:
        lines: The commands.
        namespace: The network namespace to run in; None: the current one.
        lock: The descriptor of a lock. The `ip` process inherits it, so the lock is held until that process ends.
            None: there is none.

    Raises:
        ClusterError: A command failed.
    """
    inside = ["-n", namespace] if namespace is not None else []
    _run(["ip", *inside, "-batch", "-"], stdin="\n".join(lines) + "\n", inherited=() if lock is None else (lock,))


def exists(namespace: str) -> bool:
    """Returns whether there is a network namespace of this name."""
    return os.path.lexists(NETNS_DIR / namespace)


def remove(namespace: str) -> None:
    """Ends every process in the namespace, then removes it. Does nothing if there is none.

    Raises:
        ClusterError: A process is still there after `EMPTY_TIMEOUT_S`.
    """
    deadline_s = time.monotonic() + EMPTY_TIMEOUT_S
    while pids := processes(namespace):
        if time.monotonic() > deadline_s:
            raise ClusterError(f"processes {pids} of {namespace} are still there {EMPTY_TIMEOUT_S:g} s after SIGKILL")
        for pid in pids:
            _kill(pid, namespace)
        time.sleep(POLL_S)
    delete(namespace)


def delete(namespace: str) -> None:
    """Removes a namespace's name. The namespace itself ends with the last process in it. Does nothing if there is none."""
    if exists(namespace):
        _run(["ip", "netns", "delete", namespace])


def tidy() -> None:
    """Unmounts the directory in which `ip netns` keeps its names, if it is empty."""
    if NETNS_DIR.is_mount() and not any(NETNS_DIR.iterdir()):
        _run(["umount", str(NETNS_DIR)])


def processes(namespace: str) -> list[int]:
    """Returns the ids of the processes whose network namespace is this one, except our own."""
    try:
        wanted = (NETNS_DIR / namespace).stat()
    except FileNotFoundError:
        return []
    pids = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    return [pid for pid in pids if pid != os.getpid() and _is_in(pid, wanted)]


@contextlib.contextmanager
def entered(namespace: str) -> Iterator[None]:
    """Moves the calling thread into a network namespace, by its name or its path, until the context ends.

    Threads that start inside the context inherit the namespace. Other threads stay where they are.

    Raises:
        ClusterError: There is no such namespace, or this user may not enter it.
    """
    before = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        try:
            target = os.open(NETNS_DIR / namespace, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise ClusterError(f"the network namespace {namespace} cannot be opened: {error.strerror}") from error
        try:
            _set_namespace(target, namespace)
        finally:
            os.close(target)
        try:
            yield
        finally:
            _set_namespace(before, "that the thread came from")
    finally:
        os.close(before)


def _set_namespace(descriptor: int, name: str) -> None:
    try:
        if sys.version_info >= (3, 12):
            os.setns(descriptor, os.CLONE_NEWNET)
        else:
            _libc_setns(descriptor)
    except OSError as error:
        raise ClusterError(f"the network namespace {name} cannot be entered: {error.strerror}") from error


def _libc_setns(descriptor: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(descriptor, CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def _is_in(pid: int, namespace: os.stat_result) -> bool:
    try:
        return os.path.samestat(Path(f"/proc/{pid}/ns/net").stat(), namespace)
    except OSError:
        return False  # it has ended, or is ending and has no namespace any more


def _kill(pid: int, namespace: str) -> None:
    with contextlib.suppress(ProcessLookupError, FileNotFoundError):
        process = os.pidfd_open(pid)
        try:
            if _is_in(pid, (NETNS_DIR / namespace).stat()):
                signal.pidfd_send_signal(process, signal.SIGKILL)
        finally:
            os.close(process)


def _run(command: Sequence[str], *, stdin: str = "", inherited: Sequence[int] = ()) -> None:
    program, *arguments = command
    try:
        done = subprocess.run(
            [find_program(program) or program, *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=COMMAND_TIMEOUT_S,
            check=False,
            pass_fds=inherited,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ClusterError(f"`{' '.join(command)}` could not run: {error}") from error
    if done.returncode != 0:
        raise ClusterError(f"`{' '.join(command)}` failed: {done.stderr.strip()} {f'(of: {stdin})' if stdin else ''}")
