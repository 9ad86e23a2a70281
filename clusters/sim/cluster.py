"""The cluster `sim`: the nodes of a simulated world. They have no shell, so they refuse everything that needs SSH."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, NoReturn

from clusters.sim.threads import Threads
from clusters.sim.world import SimWorld
from harness.capabilities import SIMULATED, Capabilities
from harness.errors import NodeError
from harness.node import Node

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from clusters.sim.machine import Machine

LOG_DIRECTORY = "/log"
LOG_FILE = f"{LOG_DIRECTORY}/node.log"


class SimCluster:
    """A cluster of simulated nodes; see `harness.cluster.Cluster` and `harness.world.SimulatedCluster`.

    Attributes:
        name: Always `sim`, since a run has at most one simulated cluster.
        world: The simulated world of its nodes.
        threads: Where the threads of programs in Java stop.
    """

    name = "sim"

    def __init__(
        self, names: Sequence[str], seed: int, *, world: SimWorld | None = None, threads: Threads | None = None
    ) -> None:
        """Makes the nodes of a world; of a new one if there is none."""
        self.threads = threads or Threads()
        self.world = SimWorld(names, seed) if world is None else world
        self._nodes = tuple(Node(name=name, address=f"10.0.0.{index}") for index, name in enumerate(names, 1))
        self._remotes = {name: SimRemote(machine) for name, machine in self.world.machines.items()}

    @property
    def nodes(self) -> Sequence[Node]:
        """Returns the nodes, in the order of their names."""
        return self._nodes

    def remote(self, node: Node) -> SimRemote:
        """Returns the remote of `node`. It can copy the node's log, and it runs no command."""
        return self._remotes[node.name]

    def capabilities(self) -> Mapping[str, Capabilities]:
        """Returns the faults with a simulated effect. A system may lack more."""
        can = Capabilities(available=frozenset({SIMULATED}))
        return {node.name: can for node in self._nodes}

    def entered(self) -> AbstractContextManager[None]:
        """Does nothing: the nodes are objects of this process."""
        return contextlib.nullcontext()

    def close(self) -> None:
        """Ends the processes of the nodes that run outside of this one."""
        self.world.close()


class SimRemote:
    """The remote of a simulated node. It copies the node's log, and refuses everything else.

    Attributes:
        node: The node's name.
    """

    def __init__(self, machine: Machine) -> None:
        self.node = machine.name
        self._machine = machine

    def run(
        self,
        command: str,
        *,
        timeout_s: float = 0.0,  # noqa: ARG002 - as in `harness.remote.Remote`
        check: bool = True,  # noqa: ARG002
        stdin: str | None = None,  # noqa: ARG002
    ) -> NoReturn:
        """Refuses the command.

        Raises:
            NodeError: Always.
        """
        raise NodeError(
            self.node, f"a simulated node has no shell, so `{command.strip()[:60]}` cannot run; use another --cluster"
        )

    def put(self, local: Path, remote: str, *, mode: int = 0o644) -> NoReturn:  # noqa: ARG002
        """Raises `NodeError`, as `run` does."""
        self.run(f"copy {local} to {remote}")

    def write(self, remote: str, content: str, *, mode: int = 0o644) -> NoReturn:  # noqa: ARG002
        """Raises `NodeError`, as `run` does."""
        self.run(f"write {remote}")

    def get(self, remote: str, local: Path) -> None:
        """Copies the node's log to a local path.

        Raises:
            FileNotFoundError: `remote` is not the log, or the log is empty.
        """
        if remote != LOG_FILE or not self._machine.lines:
            raise FileNotFoundError(remote)
        local.write_text("\n".join(self._machine.lines) + "\n", encoding="utf-8")

    def dial(self, port: int) -> NoReturn:
        """Raises `NodeError`, as `run` does."""
        self.run(f"connect to port {port}")

    def close(self) -> None:
        """Does nothing: there is no connection."""
