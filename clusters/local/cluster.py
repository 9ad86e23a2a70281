"""A cluster of nodes on this machine.

Each node has its own network, pid, mount, uts and ipc namespaces, an overlay over `/`, and its own sshd. A bridge in a control
namespace connects the nodes, so the host's network does not change. Labrys enters that namespace itself.

The parts of a node end with the first process of its pid namespace. The state file names all other parts of the cluster. So
`down` removes the whole cluster, even if the process that made it was killed.
"""

from __future__ import annotations

import contextlib
import logging
import os
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

from clusters.capabilities import probe
from clusters.errors import ClusterError
from clusters.local import namespaces
from clusters.local.keys import write_key_pair, write_private
from clusters.local.state import State, check_name, claimed, forget, forget_remains, held, load, load_all, reserve
from clusters.local.switching import BRIDGE, LocalSwitch, lacking, rejoin
from harness.cluster import on_all
from harness.errors import InfrastructureError, NodeUnreachable
from harness.remote.fabric import Endpoint, FabricRemote

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from types import TracebackType
    from typing import Self

    from harness.capabilities import Capabilities
    from harness.node import Node

DEFAULT_NODES = 5
READY_TIMEOUT_S = 10.0
CHECK_TIMEOUT_S = 5.0
RETRY_S = 0.02
NODE_SCRIPT = Path(__file__).with_name("node.sh")
PACKAGES = {"ip": "iproute2", "unshare": "util-linux", "sshd": "openssh-server", "iptables": "iptables"}
LOG_TAIL_CHARACTERS = 2000

logger = logging.getLogger(__name__)


class LocalCluster:
    """Nodes n1..nN on this machine. As a context manager, it takes the cluster down at the end.

    Attributes:
        name: The cluster's name.
        nodes: Its nodes.
        switch: What carries their packets in place of the bridge, while it is on.
    """

    def __init__(self, state: State) -> None:
        self.name = state.name
        self.nodes = state.members()
        self.switch = LocalSwitch(state)
        self._state = state
        self._first_processes: dict[str, NodeProcess] = {}
        self._capabilities: dict[str, Capabilities] | None = None
        self._reservation: int | None = None
        self._remotes = {
            node.name: FabricRemote(node.name, self.endpoint(node), entering=self.entered) for node in self.nodes
        }

    @classmethod
    def up(cls, name: str, *, nodes: int = DEFAULT_NODES, for_test: bool = False) -> LocalCluster:
        """Makes a cluster and returns when all its nodes answer SSH.

        Args:
            name: Its name.
            nodes: The number of its nodes.
            for_test: Whether to reserve it for this process until `close` or `down`.

        Raises:
            ClusterExists: There is a cluster of this name.
            InfrastructureError: This user or this machine cannot make one, or a node does not come up. Nothing is left then.
        """
        _require_root_and_programs()
        with claimed(name, nodes) as (state, lock):
            cluster = cls(state)
            try:
                if for_test:
                    cluster._reservation = reserve(state)
                _write_files(state)
                _make_network(state, lock)
                for node in cluster.nodes:
                    cluster._first_processes[node.name] = _start_node(state, node)
                on_all(cluster.nodes, cluster._await_ssh)
            except BaseException as error:
                cluster._remove()
                if isinstance(error, OSError):
                    raise ClusterError(f"the cluster {name!r} cannot be made: {error}") from error
                raise
        return cluster

    @classmethod
    def attach(cls, name: str, *, for_test: bool = False) -> LocalCluster:
        """Returns the existing cluster of this name.

        Args:
            name: Its name.
            for_test: Whether to reserve it for this process until `close` or `down`.

        Raises:
            NoSuchCluster: There is no such cluster.
            ClusterInUse: Another test has reserved it.
        """
        cluster = cls(load(name))
        if for_test:
            cluster._reservation = reserve(cluster._state)
            try:
                rejoin(cluster._state)  # a killed switch of an earlier run left the nodes without a network
            except BaseException:
                cluster.close()
                raise
        return cluster

    def endpoint(self, node: Node) -> Endpoint:
        """Returns how SSH reaches `node`, from inside `entered()`."""
        directory = self._state.directory
        return Endpoint(
            host=node.address, port=22, user="root", key=directory / "id", known_hosts=directory / "known_hosts"
        )

    def remote(self, node: Node) -> FabricRemote:
        """Returns the shell on `node`."""
        return self._remotes[node.name]

    def capabilities(self) -> Mapping[str, Capabilities]:
        """Returns the capabilities of each node. The first call probes the nodes."""
        if self._capabilities is None:
            reason = lacking()
            self._capabilities = on_all(
                self.nodes, lambda node: probe(self.remote(node), own_clock=False, no_switch=reason)
            )
        return self._capabilities

    @contextlib.contextmanager
    def entered(self) -> Iterator[None]:
        """Puts the calling thread into the control namespace; see `harness.cluster.Cluster.entered`."""
        with namespaces.entered(self._state.control):
            yield

    def shell(self, node: Node) -> int:
        """Gives the terminal to an interactive shell on `node`; returns its exit status."""
        ssh = namespaces.find_program("ssh")
        if ssh is None:
            raise InfrastructureError("a shell on a node needs ssh; `apt-get install openssh-client` brings it")
        endpoint = self.endpoint(node)
        command = [
            ssh, "-F", "none", "-i", str(endpoint.key), "-o", f"UserKnownHostsFile={endpoint.known_hosts}",
            "-o", "StrictHostKeyChecking=yes", "-o", "IdentitiesOnly=yes", f"{endpoint.user}@{endpoint.host}",
        ]  # fmt: skip
        with self.entered():
            return subprocess.run(command, check=False).returncode

    def close(self) -> None:
        """Stops the switch, closes the shells, and ends the reservation. The nodes stay."""
        try:
            self.switch.stop()
        except InfrastructureError as error:  # a run says this itself; the nodes may be gone
            logger.warning("%s", error)
        for remote in self._remotes.values():
            remote.close()
        if self._reservation is not None:
            os.close(self._reservation)
            self._reservation = None

    def down(self) -> None:
        """Ends the nodes and removes all their parts. Does nothing if the cluster is down already.

        Raises:
            ClusterError: Something cannot be removed; a second call tries again.
        """
        self.close()
        with held(self.name) as state:
            if state is not None and state.token == self._state.token:
                self._remove()
        self._reap()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.down()

    def _await_ssh(self, node: Node) -> None:
        first = self._first_processes[node.name]
        deadline_s = time.monotonic() + READY_TIMEOUT_S
        while True:
            try:
                self.remote(node).run("true", timeout_s=CHECK_TIMEOUT_S)
            except NodeUnreachable as error:
                ended = first.poll() is not None
                if ended or time.monotonic() > deadline_s:
                    how = "ended at its start" if ended else f"does not answer SSH after {READY_TIMEOUT_S:g} s: {error}"
                    raise ClusterError(f"{node.name} {how}; it wrote: {_log_tail(self._state, node)}") from error
                time.sleep(RETRY_S)
            else:
                return

    def _remove(self) -> None:
        self.close()
        for node in self.nodes:
            namespaces.remove(self._state.namespace(node))
        # The control namespace holds only the bridge. Processes in it are Labrys or a person's shell, so they stay.
        namespaces.delete(self._state.control)
        namespaces.tidy()
        self._reap()
        forget(self._state)

    def _reap(self) -> None:
        """Waits for the nodes' first processes that this process started, so that no zombies stay."""
        while self._first_processes:
            self._first_processes.popitem()[1].wait(namespaces.EMPTY_TIMEOUT_S)


def take_down(name: str) -> bool:
    """Takes down the cluster of this name. The cluster can be in any state.

    Returns:
        Whether any part of it existed.

    Raises:
        InputError: No cluster can have this name.
        ClusterError: Something cannot be removed; a second call tries again.
    """
    check_name(name)
    with held(name) as state:
        if state is not None:
            LocalCluster(state)._remove()  # noqa: SLF001 - its own class' module
            return True
    return forget_remains(name)


def list_clusters() -> list[LocalCluster]:
    """Returns all local clusters of this machine, by name."""
    return [LocalCluster(state) for state in load_all()]


def _require_root_and_programs() -> None:
    if os.geteuid() != 0:
        raise InfrastructureError(
            "a local cluster needs root, to make network namespaces; use sudo, or --cluster ssh with machines of your own"
        )
    missing = {program: package for program, package in PACKAGES.items() if not namespaces.find_program(program)}
    if missing:
        raise InfrastructureError(
            f"this machine lacks {', '.join(missing)}, which a local cluster needs; "
            f"`apt-get install {' '.join(sorted(set(missing.values())))}` brings them"
        )


def _log_of(state: State, node: Node) -> Path:
    return state.directory / node.name / "log"


def _log_tail(state: State, node: Node) -> str:
    return _log_of(state, node).read_text(errors="replace")[-LOG_TAIL_CHARACTERS:].strip() or "(nothing)"


def _write_files(state: State) -> None:
    directory = state.directory
    login = write_key_pair(directory / "id")
    host = write_key_pair(directory / "host_key")
    members = state.members()
    (directory / "known_hosts").write_text("".join(f"{node.address} {host}\n" for node in members))
    names = [f"{state.control_address} control", *(f"{node.address} {node.name}" for node in members)]
    (directory / "hosts").write_text("\n".join(["127.0.0.1 localhost", "::1 localhost", *names]) + "\n")
    for node in members:
        own = directory / node.name
        (own / "cell").mkdir(parents=True)
        write_private(own / "host_key", (directory / "host_key").read_bytes())
        write_private(own / "authorized_keys", f"{login} labrys\n".encode())


def _make_network(state: State, lock: int) -> None:
    members = state.members()
    outside = [f"netns add {state.control}", *(f"netns add {state.namespace(node)}" for node in members)]
    namespaces.ip_batch(outside, lock=lock)
    # The address is fixed, or it would change when the switch takes the nodes' devices out of the bridge.
    address = f"02:00:0a:37:{state.subnet:02x}:01"
    control = ["link set lo up", f"link add name {BRIDGE} address {address} type bridge", f"link set {BRIDGE} up"]
    control.append(f"address add {state.control_address}/24 dev {BRIDGE}")
    for node in members:
        control.append(f"link add {node.name} type veth peer name eth0 netns {state.namespace(node)}")
        control.append(f"link set {node.name} master {BRIDGE} up")
    namespaces.ip_batch(control, namespace=state.control, lock=lock)
    for node in members:
        inside = ["link set lo up", f"address add {node.address}/24 dev eth0", "link set eth0 up"]
        namespaces.ip_batch(inside, namespace=state.namespace(node), lock=lock)


class NodeProcess(subprocess.Popen[bytes]):
    """The first process of a node. It outlives this process on purpose: `down` finds it by its namespace."""

    def __del__(self) -> None:
        """Forgets the process without a warning that it still runs."""
        super().__del__(_warn=_silent)  # type: ignore[call-arg]  # the types of the library lack it


def _silent(*_: object, **__: object) -> None:
    """Takes a warning."""


def _start_node(state: State, node: Node) -> NodeProcess:
    own = state.directory / node.name
    unshare = namespaces.find_program("unshare") or "unshare"
    command = [
        unshare, "--pid", "--mount", "--uts", "--ipc", "--fork", "--kill-child",
        "sh", str(NODE_SCRIPT), node.name, node.address, str(own), str(state.directory / "hosts"),
    ]  # fmt: skip
    with _log_of(state, node).open("wb") as log, namespaces.entered(state.namespace(node)):
        return NodeProcess(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, cwd="/")
