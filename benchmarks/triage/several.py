"""The simulated Raft with several planted bugs in one build, as a release has them. Each of them has a repair."""

from __future__ import annotations

from dataclasses import dataclass

from clusters.systems.sim_raft.bugs import Bug
from clusters.systems.sim_raft.options import SimRaftOptions
from clusters.systems.sim_raft.system import SimRaft
from harness.declare import option


def without_one(text: str) -> dict[str, str]:
    """Returns each bug of a list with commas between them, with the list of the others."""
    names = list(filter(None, text.split(",")))
    return {name: ",".join(other for other in names if other != name) for name in names}


@dataclass(frozen=True, slots=True, kw_only=True)
class SeveralBugsOptions(SimRaftOptions):
    """How the nodes and their clients are configured."""

    several: str = option("", "The planted bugs.", repairs=without_one, metavar="BUG,...", shown=False)

    @property
    def bugs(self) -> frozenset[Bug]:
        """Returns the planted bugs."""
        return frozenset(map(Bug, without_one(self.several)))


class SeveralBugs(SimRaft):
    """Nodes with several planted bugs."""

    name = "sim-raft-several"
    summary = "The Raft of Labrys for the simulator with several planted bugs."
    Options = SeveralBugsOptions
