"""A cluster of existing machines, virtual or real. Labrys reaches each over SSH."""

from __future__ import annotations

import contextlib
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING

from clusters.capabilities import probe
from harness.cluster import on_all
from harness.remote.fabric import Endpoint, FabricRemote

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from harness.capabilities import Capabilities
    from harness.node import Node


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """One machine.

    Attributes:
        node: Its name, and its address in the cluster's own network.
        endpoint: How SSH reaches it, which may be by another address.
    """

    node: Node
    endpoint: Endpoint


class MachineCluster:
    """Machines as nodes.

    Attributes:
        name: The cluster's name.
        nodes: In the order they were given.
        endpoints: How SSH reaches each of them, by node name.
    """

    def __init__(self, name: str, machines: Sequence[Machine]) -> None:
        self.name = name
        self.nodes = tuple(machine.node for machine in machines)
        self.endpoints = {machine.node.name: machine.endpoint for machine in machines}
        self._remotes = {machine.node.name: FabricRemote(machine.node.name, machine.endpoint) for machine in machines}
        self._capabilities: dict[str, Capabilities] | None = None

    def remote(self, node: Node) -> FabricRemote:
        """Returns the shell on `node`."""
        return self._remotes[node.name]

    def capabilities(self) -> Mapping[str, Capabilities]:
        """Returns the capabilities of each node. The first call probes the nodes."""
        if self._capabilities is None:
            self._capabilities = self.probed(self.nodes)
        return self._capabilities

    def probed(self, nodes: Sequence[Node]) -> dict[str, Capabilities]:
        """Probes the capabilities of some nodes. Every call probes."""
        return on_all(nodes, lambda node: probe(self.remote(node), own_clock=True))

    def entered(self) -> AbstractContextManager[None]:
        """Does nothing: this machine reaches the machines over its own network."""
        return contextlib.nullcontext()

    def close(self) -> None:
        """Closes the shells. The machines stay."""
        for remote in self._remotes.values():
            remote.close()


def why_unusable(key: Path) -> str | None:
    """Returns why the file of a private key is unusable: it cannot be read, or others can read it. None if it is usable."""
    try:
        mode = stat.S_IMODE(key.stat().st_mode)
        with key.open("rb"):
            pass
    except OSError as error:
        return f"it cannot be read: {error.strerror}"
    return f"others can read it, mode {mode:03o}; `chmod 600` helps" if mode & 0o077 else None
