"""The options of programs that speak Maelstrom's protocol."""

from __future__ import annotations

import enum
import os
import shlex
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from clusters.pipes.links import LatencyDist
from harness.console.documents import shown
from harness.declare import hold_bounds, option
from harness.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence


class Topology(enum.StrEnum):
    """The neighbours that the workload broadcast tells each node."""

    GRID = "grid"
    LINE = "line"
    TREE = "tree"
    TOTAL = "total"


@dataclass(frozen=True, slots=True, kw_only=True)
class MaelstromOptions:
    """Which program a node runs, and the network between the nodes."""

    bin: str = option(
        "",
        "The program of a node, with arguments as in a shell, e.g. './node.py --eager'. Each node runs it in a folder of its "
        "own.",
        metavar="COMMAND",
    )
    topology: Topology = option(Topology.GRID, "The neighbours that the workload broadcast tells each node.")
    latency: float = option(
        -1.0,
        "The mean latency of a message between nodes in milliseconds; -1: drawn from the seed, as in the simulator.",
        low=-1,
        high=60_000,
    )
    latency_dist: LatencyDist = option(
        LatencyDist.CONSTANT,
        "With --latency: constant; uniform, from 0 to twice the mean; exponential.",
    )
    quiet: float = option(
        10.0,
        "Seconds without operations and faults before the final reads of broadcast, g-set, g-counter and pn-counter, whose "
        "nodes exchange what they know in their own time.",
        low=0,
        high=3600,
    )

    def __post_init__(self) -> None:
        hold_bounds(self)

    def command(self) -> Sequence[str]:
        """Returns the program with its absolute path, and its arguments.

        Raises:
            InputError: The option does not name a program.
        """
        try:
            words = shlex.split(self.bin)
        except ValueError as error:
            raise InputError(f"--bin {shown(self.bin)} is not a command of a shell: {error}") from error
        if not words:
            raise InputError(
                "the system maelstrom needs --bin COMMAND, the program of a node; docs/node-programs.md has one"
            )
        program, *arguments = words
        if os.sep not in program:
            found = shutil.which(program)
            if found is None:
                near = f"; for a program in this folder, give ./{program}" if Path(program).is_file() else ""
                raise InputError(f"--bin names {shown(program)}, and PATH has no such program{near}")
            return [found, *arguments]
        path = Path(program).expanduser()
        if not path.is_file():
            raise InputError(f"--bin names the program {shown(program)}, and there is no such file")
        if not os.access(path, os.X_OK):
            raise InputError(f"{path} is not executable; `chmod +x {path}` makes it so")
        return [str(path.resolve()), *arguments]
