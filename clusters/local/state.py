"""What is written down about a local cluster, before anything of it is made.

Everything a cluster is made of can be derived from its state file, so a cluster can be taken down whatever became of the
process that made it. States live under /run, which does not survive a reboot, as the clusters don't.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from clusters.errors import ClusterError, ClusterExists, NoSuchCluster
from harness.errors import InputError
from harness.node import Node

if TYPE_CHECKING:
    from collections.abc import Iterator

STATE_ROOT = Path("/run/labrys")
MAX_NODES = 9
SUBNETS = range(1, 255)
NAME = re.compile(r"[a-z][a-z0-9-]{0,30}")


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """One local cluster.

    Attributes:
        name: Unique on this machine.
        nodes: How many nodes it has.
        subnet: The third byte of its addresses, 10.55.SUBNET.0/24.
    """

    name: str
    nodes: int
    subnet: int

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
        """Returns the address of the bridge, where clients come from."""
        return f"10.55.{self.subnet}.1"

    def namespace(self, node: Node) -> str:
        """Returns the name of a node's network namespace."""
        return f"labrys-{self.name}-{node.name}"

    def members(self) -> tuple[Node, ...]:
        """Returns the nodes n1..nN at 10.55.SUBNET.11 and up."""
        return tuple(
            Node(name=f"n{number}", address=f"10.55.{self.subnet}.{10 + number}") for number in range(1, self.nodes + 1)
        )


@contextlib.contextmanager
def locked() -> Iterator[None]:
    """Holds the machine-wide lock under which names and subnets are given and taken."""
    STATE_ROOT.mkdir(mode=0o700, parents=True, exist_ok=True)
    with (STATE_ROOT / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def claim(name: str, nodes: int) -> State:
    """Writes down a new cluster, with a subnet that no other one has.

    Raises:
        ClusterExists: There is one of this name.
        InputError: The name or the number of nodes cannot be used.
    """
    if not NAME.fullmatch(name):
        raise InputError(f"a cluster's name has up to 31 lower-case letters, digits and dashes, not {name!r}")
    if not 1 <= nodes <= MAX_NODES:
        raise InputError(f"a local cluster has 1 to {MAX_NODES} nodes, not {nodes}")
    with locked():
        states = load_all()
        if any(state.name == name for state in states):
            raise ClusterExists(f"there is a cluster {name!r} already; `labrys cluster down {name}` takes it down")
        taken = {state.subnet for state in states}
        subnet = next((number for number in SUBNETS if number not in taken), None)
        if subnet is None:
            raise ClusterError(f"all {len(SUBNETS)} subnets 10.55.x.0/24 are taken by clusters; take some down")
        state = State(name=name, nodes=nodes, subnet=subnet)
        state.directory.mkdir(mode=0o700, exist_ok=True)
        temporary = state.directory / "state.tmp"
        with temporary.open("w") as file:
            json.dump(asdict(state), file)
            file.flush()
            os.fsync(file.fileno())
        temporary.rename(state.directory / "state.json")
    return state


def load(name: str) -> State:
    """Reads the state of a cluster.

    Raises:
        NoSuchCluster: There is none of this name.
    """
    for state in load_all():
        if state.name == name:
            return state
    known = ", ".join(state.name for state in load_all()) or "none"
    raise NoSuchCluster(f"there is no cluster {name!r} on this machine; there are: {known}")


def load_all() -> list[State]:
    """Reads the states of all clusters of this machine, by name.

    A directory without a readable state is what is left of a claim that was cut short: nothing was made for it yet.
    """
    states = []
    for directory in sorted(STATE_ROOT.iterdir()) if STATE_ROOT.is_dir() else []:
        with contextlib.suppress(OSError, ValueError, TypeError):
            states.append(State(**json.loads((directory / "state.json").read_text())))
    return states
