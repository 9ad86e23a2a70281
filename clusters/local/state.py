"""The state file of a local cluster, written before the cluster is made.

The state file determines the names of all parts of a cluster. So any process can remove the cluster.

A process that makes or removes a cluster holds the cluster's lock. The programs that it starts for this hold the lock too, even
if they outlive it. So no process removes a cluster that another process still makes. States are under /run, because neither
/run nor a cluster survives a reboot.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import secrets
import shutil
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from clusters.errors import ClusterError, ClusterExists, ClusterInUse, NoSuchCluster
from harness.errors import InfrastructureError, InputError
from harness.node import Node

if TYPE_CHECKING:
    from collections.abc import Iterator

STATE_ROOT = Path("/run/labrys")
STATE_FILE = "state.json"
USE_FILE = "use.lock"
LOCK_FILE = STATE_ROOT / ".lock"
MAX_NODES = 9
SUBNETS = range(1, 255)
NAME = re.compile(r"[a-z][a-z0-9-]{0,30}")
LOCK_TIMEOUT_S = 30.0
POLL_S = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """One local cluster.

    Attributes:
        name: Unique on this machine.
        nodes: The number of its nodes.
        subnet: The third byte of its addresses, 10.55.SUBNET.0/24.
        token: A random text. An earlier or later cluster of the same name has another one.
    """

    name: str
    nodes: int
    subnet: int
    token: str

    @property
    def directory(self) -> Path:
        """Returns the directory that holds the state file, keys and the nodes' logs."""
        return STATE_ROOT / self.name

    @property
    def control(self) -> str:
        """Returns the name of the network namespace that holds the bridge."""
        return f"labrys-{self.name}-control"

    @property
    def control_address(self) -> str:
        """Returns the address of the bridge, which is the clients' address."""
        return f"10.55.{self.subnet}.1"

    def namespace(self, node: Node) -> str:
        """Returns the name of a node's network namespace."""
        return f"labrys-{self.name}-{node.name}"

    def members(self) -> tuple[Node, ...]:
        """Returns the nodes n1..nN at 10.55.SUBNET.11 and up."""
        return tuple(
            Node(name=f"n{number}", address=f"10.55.{self.subnet}.{10 + number}") for number in range(1, self.nodes + 1)
        )


def check_name(name: str) -> None:
    """Raises `InputError` if a local cluster cannot have this name. Names become parts of paths and of namespaces' names."""
    if not NAME.fullmatch(name):
        raise InputError(f"a cluster's name has up to 31 lower-case letters, digits and dashes, not {name!r}")


@contextlib.contextmanager
def claimed(name: str, nodes: int) -> Iterator[tuple[State, int]]:
    """Writes the state of a new cluster with a free subnet, and holds its lock until the context ends.

    Yields:
        The state, and the lock's descriptor. Programs that make parts of the cluster must inherit the descriptor.

    Raises:
        ClusterExists: There is a cluster of this name.
        InputError: The name or the number of nodes cannot be used.
    """
    check_name(name)
    if not 1 <= nodes <= MAX_NODES:
        raise InputError(f"a local cluster has 1 to {MAX_NODES} nodes, not {nodes}")
    with _machine_lock():
        states = load_all()
        if any(state.name == name for state in states):
            raise ClusterExists(f"a cluster {name!r} exists already; `labrys cluster down {name}` removes it")
        taken = {state.subnet for state in states}
        subnet = next((number for number in SUBNETS if number not in taken), None)
        if subnet is None:
            raise ClusterError(f"all {len(SUBNETS)} subnets 10.55.x.0/24 are taken by clusters; take some down")
        state = State(name=name, nodes=nodes, subnet=subnet, token=secrets.token_hex(8))
        _remove_remains(state.directory)
        lock = _write(state)
    try:
        yield state, lock
    finally:
        os.close(lock)


@contextlib.contextmanager
def held(name: str) -> Iterator[State | None]:
    """Waits for the lock of a cluster and holds it until the context ends.

    Yields:
        Its state, or None if there is no such cluster.

    Raises:
        ClusterError: Another process still makes or removes it after `LOCK_TIMEOUT_S`.
    """
    directory = STATE_ROOT / name
    deadline_s = time.monotonic() + LOCK_TIMEOUT_S
    while True:
        try:
            lock = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except FileNotFoundError:
            yield None
            return
        except PermissionError as error:
            raise _not_root(error) from error
        try:
            if _try_lock(lock) and _is_still(directory, lock):
                yield _read_if_there(directory)
                return
        finally:
            os.close(lock)
        if time.monotonic() > deadline_s:
            raise ClusterError(
                f"another process has been making or removing the cluster {name!r} for {LOCK_TIMEOUT_S:g} s; "
                f"`fuser {directory}` shows which"
            )
        time.sleep(POLL_S)


def reserve(state: State) -> int:
    """Reserves a cluster for one test, which may inject faults and remove the cluster.

    Returns:
        The lock's descriptor. The reservation ends when the process closes it, and when the process ends.

    Raises:
        ClusterInUse: Another test has reserved the cluster.
        NoSuchCluster: The cluster is gone.
        ClusterError: The lock cannot be made.
    """
    try:
        lock = os.open(state.directory / USE_FILE, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except FileNotFoundError as error:
        raise NoSuchCluster(f"the cluster {state.name!r} is gone; another process has removed it") from error
    except OSError as error:
        raise ClusterError(f"{state.directory / USE_FILE} cannot be made: {error.strerror}") from error
    if _try_lock(lock):
        return lock
    os.close(lock)
    raise ClusterInUse(
        f"another test uses the cluster {state.name!r}; wait for its end, or give this test another --cluster-name"
    )


def forget(state: State) -> None:
    """Removes the directory of a cluster, as the last step of its removal. Does nothing if it is gone."""
    with _machine_lock():
        stored = _read_if_there(state.directory)
        if stored is not None and stored.token == state.token:
            _remove_remains(state.directory)


def forget_remains(name: str) -> bool:
    """Removes the directory that an interrupted claim or removal left. Returns whether there was one."""
    with _machine_lock():
        directory = STATE_ROOT / name
        if not directory.is_dir() or _read_if_there(directory) is not None:
            return False
        _remove_remains(directory)
        return True


def load(name: str) -> State:
    """Reads the state of a cluster.

    Raises:
        NoSuchCluster: There is no cluster of this name.
    """
    states = load_all()
    for state in states:
        if state.name == name:
            return state
    known = ", ".join(state.name for state in states) or "none"
    raise NoSuchCluster(f"there is no cluster {name!r} on this machine; there are: {known}")


def load_all() -> list[State]:
    """Reads the states of all clusters of this machine, sorted by name.

    It skips a directory without a state file: an interrupted claim or removal left it, and the cluster has no other part.

    Raises:
        ClusterError: A state file has bad content.
    """
    try:
        directories = sorted(STATE_ROOT.iterdir()) if STATE_ROOT.is_dir() else []
        states = [_read_if_there(directory) for directory in directories]
    except PermissionError as error:
        raise _not_root(error) from error
    return [state for state in states if state is not None]


def _read_if_there(directory: Path) -> State | None:
    path = directory / STATE_FILE
    try:
        content = path.read_text()
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        return State(**json.loads(content))
    except (ValueError, TypeError) as error:
        raise ClusterError(
            f"{path} is not the state of a local cluster: {error}; if no namespace labrys-{path.parent.name}-* "
            "is left (`ip netns`), remove it"
        ) from error


def _write(state: State) -> int:
    """Makes the cluster's directory and state file; returns the lock on the directory."""
    directory = state.directory
    try:
        directory.mkdir(mode=0o700)
        lock = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            temporary = directory / "state.tmp"
            with temporary.open("w") as file:
                json.dump(asdict(state), file)
                file.flush()
                os.fsync(file.fileno())
            temporary.rename(directory / STATE_FILE)
        except BaseException:
            os.close(lock)
            _remove_remains(directory)
            raise
    except OSError as error:
        raise ClusterError(f"{directory} cannot be written: {error.strerror}") from error
    return lock


def _remove_remains(directory: Path) -> None:
    """Removes a cluster's directory. The state file goes first, so that the rest does not count as a cluster."""
    try:
        (directory / STATE_FILE).unlink(missing_ok=True)
        if directory.is_dir():
            shutil.rmtree(directory)
    except OSError as error:
        raise ClusterError(f"{directory} cannot be removed: {error.strerror}") from error


@contextlib.contextmanager
def _machine_lock() -> Iterator[None]:
    """Holds the machine-wide lock of names and subnets. Its holders release it soon."""
    deadline_s = time.monotonic() + LOCK_TIMEOUT_S
    try:
        STATE_ROOT.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(LOCK_FILE, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except PermissionError as error:
        raise _not_root(error) from error
    except OSError as error:
        raise ClusterError(f"{STATE_ROOT} cannot be used: {error.strerror}") from error
    try:
        while not _try_lock(lock):
            if time.monotonic() > deadline_s:
                raise ClusterError(f"{STATE_ROOT / 'lock'} has been held by another process for {LOCK_TIMEOUT_S:g} s")
            time.sleep(POLL_S)
        yield
    finally:
        os.close(lock)


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_still(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _not_root(error: PermissionError) -> InfrastructureError:
    return InfrastructureError(f"local clusters belong to root: {error}; use sudo")
