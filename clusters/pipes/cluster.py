"""The cluster `pipes`: the nodes are programs on this machine, and the harness carries every message between them."""

from __future__ import annotations

import functools
import shutil
import stat
import tempfile
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from clusters.pipes.carried import Carrier
from clusters.pipes.child import Child
from clusters.pipes.keeper import Keeper
from clusters.pipes.live import LiveWorld
from clusters.pipes.pump import LivePump
from clusters.pipes.transcript import MAX_BYTES, Transcript
from clusters.pipes.virtual import VirtualPump
from clusters.sim.cluster import LOG_DIRECTORY, SimCluster, SimRemote
from clusters.sim.folder import Folder
from harness.capabilities import (
    SIMULATED,
    SIMULATED_CALLS,
    SIMULATED_CLOCK,
    SIMULATED_DISK,
    SIMULATED_KERNEL,
    SIMULATED_POWER,
    SIMULATED_SPEED,
    SIMULATED_STEPS,
    Capabilities,
)
from harness.errors import NodeError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clusters.pipes.pump import Pump
    from clusters.sim.machine import Machine
    from clusters.sim.threads import Threads

TURN_EVENTS: Final = 4  # the loop looks for signals in each 64th turn, and an event with a program takes about 1 ms
MESSAGES_FILE: Final = f"{LOG_DIRECTORY}/messages.log"
LACKS: Final[Mapping[str, str]] = MappingProxyType(
    {
        SIMULATED_DISK: "the programs of the nodes use the disk of this machine, where no fault fills or damages files",
        SIMULATED_POWER: "the programs of the nodes use the disk of this machine, which keeps what they wrote",
        SIMULATED_CLOCK: "the programs of the nodes read the clock of this machine",
        SIMULATED_CALLS: "the programs of the nodes make their system calls on this machine",
        SIMULATED_KERNEL: "the programs of the nodes run on the kernel of this machine",
        SIMULATED_SPEED: "the programs of the nodes read the clock of this machine",
        SIMULATED_STEPS: "the programs of the nodes use the disk of this machine, whose steps Labrys does not note",
    }
)


class PipesCluster(SimCluster):
    """A cluster of programs.

    Attributes:
        name: Always `pipes`.
        pump: Moves the bytes of the programs.
    """

    name = "pipes"
    pump: Pump

    def __init__(
        self, names: Sequence[str], seed: int, *, virtual: bool = False, carried: Threads | None = None
    ) -> None:
        """Makes the nodes.

        Args:
            names: Their names, in order.
            seed: The run's root seed.
            virtual: Whether they run in virtual time.
            carried: In virtual time: where the threads of programs stop that a controller carries; None: none carries them.
        """
        self._carrier: Carrier | None = None
        if carried is not None:
            super().__init__(names, seed)
            self.world.turn_events = TURN_EVENTS
            self._carrier = self.world.companion = self.pump = Carrier(self.world, carried)
        elif virtual:
            super().__init__(names, seed)
            self.world.turn_events = TURN_EVENTS
            pump = self.world.companion = VirtualPump(self.world)
            self.pump = pump
        else:
            live = LiveWorld(names, seed)
            super().__init__(names, seed, world=live)
            self.pump = LivePump(live)
        for name, machine in self.world.machines.items():
            machine.disk = Folder(name, functools.partial(self.directory, name))
        self._remotes = {name: PipesRemote(machine, self) for name, machine in self.world.machines.items()}
        self._keeper: Keeper | None = None
        self._transcripts: dict[str, Transcript] = {}
        self._directory: Path | None = None

    def transcript(self, node: str) -> Transcript:
        """Returns the transcript of a node; begins it if there is none."""
        transcript = self._transcripts.get(node)
        if transcript is None:
            transcript = self._transcripts[node] = Transcript()
        return transcript

    def left_out(self) -> list[str]:
        """Returns a sentence for each node whose transcript has reached its limit."""
        return [
            f"messages.log of {node} leaves out {transcript.left_out}: Labrys keeps {MAX_BYTES >> 20} MB of what a program "
            "reads and writes. The run used all lines; pictures, `labrys explain` and `labrys replay` lack these"
            for node, transcript in sorted(self._transcripts.items())
            if transcript.left_out
        ]

    def begin(self, node: str, command: Sequence[str], environment: Mapping[str, str]) -> Child:
        """Starts a program in the folder of a node; see `Child` and `Carrier.begin`."""
        if self._carrier is not None:
            return self._carrier.begin(node, command, environment)
        return Child(self.keeper, command, self.directory(node), environment)

    @property
    def keeper(self) -> Keeper:
        """Returns what starts the programs, and ends them with this process."""
        if self._keeper is None:
            self._keeper = Keeper(self._folder())
        return self._keeper

    def directory(self, node: str) -> Path:
        """Returns the working directory of a node's program; makes it if there is none.

        Raises:
            NodeError: The program has put something else in its place. A link could lead to files of others.
        """
        directory = self._folder() / node
        try:
            directory.mkdir(exist_ok=True)
            is_folder = stat.S_ISDIR(directory.lstat().st_mode)
        except OSError as error:
            raise NodeError(node, f"its program has damaged its folder {directory}: {error.strerror}") from error
        if not is_folder:
            raise NodeError(node, f"its program has put something else in the place of its folder {directory}")
        return directory

    def _folder(self) -> Path:
        """Returns the folder of all nodes; makes it if there is none."""
        if self._directory is None:
            self._directory = Path(tempfile.mkdtemp(prefix="labrys-pipes-"))
        return self._directory

    def wipe(self, node: str) -> None:
        """Removes the files of a node."""
        transcript = self._transcripts.pop(node, None)
        if transcript is not None:
            transcript.close()
        if self._carrier is not None:
            self._carrier.wipe(node)
        elif self._directory is not None:
            shutil.rmtree(self._directory / node, ignore_errors=True)

    def capabilities(self) -> Mapping[str, Capabilities]:
        """Returns the faults with a simulated effect, but not those of disks and clocks."""
        can = Capabilities(available=frozenset({SIMULATED}), missing=LACKS)
        return {node.name: can for node in self.nodes}

    def close(self) -> None:
        """Ends the programs, and removes their files."""
        for machine in self.world.machines.values():
            machine.end()
        if self._keeper is not None:
            self._keeper.close()
        super().close()
        for node in self.nodes:
            self.wipe(node.name)
        if self._directory is not None:
            shutil.rmtree(self._directory, ignore_errors=True)


class PipesRemote(SimRemote):
    """The remote of a node: it also copies the transcript."""

    def __init__(self, machine: Machine, cluster: PipesCluster) -> None:
        super().__init__(machine)
        self._cluster = cluster

    def get(self, remote: str, local: Path) -> None:
        """Copies the node's log or its transcript to a local path.

        Raises:
            FileNotFoundError: `remote` is neither, or it is empty.
        """
        if remote == MESSAGES_FILE:
            self._cluster.transcript(self.node).copy(local)
        else:
            super().get(remote, local)
