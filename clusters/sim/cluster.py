"""The cluster `sim`: nodes of a simulated world, as a run sees them. They have no shell, so what needs SSH is refused."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, NoReturn

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
        name: Always `sim`: a simulated cluster lives inside its run.
        world: The world of its nodes.
    """

    name = "sim"

    def __init__(self, names: Sequence[str], seed: int) -> None:
        self.world = SimWorld(names, seed)
        self._nodes = tuple(Node(name=name, address=f"10.0.0.{place}") for place, name in enumerate(names, 1))
        self._remotes = {name: SimRemote(machine) for name, machine in self.world.machines.items()}

    @property
    def nodes(self) -> Sequence[Node]:
        """Returns the nodes, in the order of their names."""
        return self._nodes

    def remote(self, node: Node) -> SimRemote:
        """Returns what stands for the shell on `node`: its log can be fetched, and no command runs."""
        return self._remotes[node.name]

    def capabilities(self) -> Mapping[str, Capabilities]:
        """Says that the nodes are simulated: they can have the kinds of faults that have a simulated effect."""
        return {node.name: Capabilities(available=frozenset({SIMULATED})) for node in self._nodes}

    def entered(self) -> AbstractContextManager[None]:
        """Does nothing: the nodes are in this process."""
        return contextlib.nullcontext()

    def close(self) -> None:
        """Does nothing: there is no connection."""


class SimRemote:
    """What stands for the shell on a simulated node.

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
        """Refuses.

        Raises:
            NodeError: Always.
        """
        raise NodeError(
            self.node, f"a simulated node has no shell, so `{command.strip()[:60]}` cannot run; use another --cluster"
        )

    def put(self, local: Path, remote: str, *, mode: int = 0o644) -> NoReturn:  # noqa: ARG002
        """Refuses likewise."""
        self.run(f"copy {local} to {remote}")

    def write(self, remote: str, content: str, *, mode: int = 0o644) -> NoReturn:  # noqa: ARG002
        """Refuses likewise."""
        self.run(f"write {remote}")

    def get(self, remote: str, local: Path) -> None:
        """Copies the node's log to a local path.

        Raises:
            FileNotFoundError: The node has no other file.
        """
        if remote != LOG_FILE or not self._machine.lines:
            raise FileNotFoundError(remote)
        local.write_text("\n".join(self._machine.lines) + "\n", encoding="utf-8")

    def close(self) -> None:
        """Does nothing: there is no connection."""
