"""The options of programs that speak Maelstrom's protocol."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING

from clusters.pipes.links import LatencyDist
from harness.console.parameters import ProgramText
from harness.console.program import command_of
from harness.declare import hold_bounds, option

if TYPE_CHECKING:
    from collections.abc import Sequence


class Topology(enum.StrEnum):
    """The neighbours that the workload broadcast tells each node."""

    GRID = "grid"
    LINE = "line"
    TREE = "tree"
    TREE3 = "tree3"
    TREE4 = "tree4"
    TOTAL = "total"


@dataclass(frozen=True, slots=True, kw_only=True)
class MaelstromOptions:
    """Which program a node runs, and the network between the nodes."""

    bin: str = option(
        "",
        "The program of a node, with arguments as in a shell, e.g. './node.py --eager'. Each node runs it in a folder of its "
        "own.",
        kind=ProgramText(),
        metavar="COMMAND",
    )
    topology: Topology = option(
        Topology.GRID,
        "The neighbours that the workload broadcast tells each node. Of a node of a tree, 2, 3 or 4 are farther from the root.",
    )
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
    service_timeouts: float = option(
        0.0,
        "The share of the requests to lin-kv, seq-kv, lww-kv and lin-tso that get error 0, a time-out. Half of these take "
        "effect.",
        low=0,
        high=1,
    )
    strict: bool = option(
        default=False,
        help="Messages that Maelstrom accepts and its protocol does not have make the part protocol invalid. Without it, they "
        "are warnings.",
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
        return command_of(self.bin)
