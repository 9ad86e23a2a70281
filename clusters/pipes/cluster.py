"""The cluster `pipes`: the nodes are programs on this machine, and the harness carries every message between them."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from clusters.pipes.live import LiveWorld
from clusters.pipes.pump import LivePump
from clusters.sim.cluster import SimCluster
from harness.capabilities import SIMULATED, SIMULATED_CLOCK, SIMULATED_DISK, SIMULATED_POWER, Capabilities

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clusters.pipes.pump import Pump

LACKS: Final[Mapping[str, str]] = MappingProxyType(
    {
        SIMULATED_DISK: "the programs of the nodes use the disk of this machine, where no fault fills or damages files",
        SIMULATED_POWER: "the programs of the nodes use the disk of this machine, which keeps what they wrote",
        SIMULATED_CLOCK: "the programs of the nodes read the clock of this machine",
    }
)


class PipesCluster(SimCluster):
    """A cluster of programs.

    Attributes:
        name: Always `pipes`.
        pump: Moves the bytes of the programs.
    """

    name = "pipes"

    def __init__(self, names: Sequence[str], seed: int) -> None:
        world = LiveWorld(names, seed)
        super().__init__(names, seed, world=world)
        self.pump: Pump = LivePump(world)
        self._directory: Path | None = None

    def directory(self, node: str) -> Path:
        """Returns the working directory of a node's program; makes it if there is none."""
        if self._directory is None:
            self._directory = Path(tempfile.mkdtemp(prefix="labrys-pipes-"))
        directory = self._directory / node
        directory.mkdir(exist_ok=True)
        return directory

    def wipe(self, node: str) -> None:
        """Removes the files of a node."""
        if self._directory is not None:
            shutil.rmtree(self._directory / node, ignore_errors=True)

    def capabilities(self) -> Mapping[str, Capabilities]:
        """Returns the faults with a simulated effect, but not those of disks and clocks."""
        can = Capabilities(available=frozenset({SIMULATED}), missing=LACKS)
        return {node.name: can for node in self.nodes}

    def close(self) -> None:
        """Ends the programs, and removes their files."""
        for machine in self.world.machines.values():
            machine.end()
        super().close()
        if self._directory is not None:
            shutil.rmtree(self._directory, ignore_errors=True)
