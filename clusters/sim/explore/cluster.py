"""The cluster of a search, and what must hold between two of its nodes.

The system's own code (`SimSystem.node_state`) reads the states of the nodes through it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harness.leaders import LEADER
from harness.node import Node

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clusters.sim.explore.nodes import Live
    from clusters.sim.host import Process
    from clusters.sim.system import SimSystem
    from harness.node_states import NodeState


@dataclass(slots=True)
class SearchMachine:
    """A node as `SimSystem.node_state` reads it; see `clusters.sim.machine.Machine`."""

    process: Process | None = None
    runs: bool = True
    paused: bool = False


class SearchWorld:
    """The world of a search: its machines by name."""

    def __init__(self, names: Sequence[str]) -> None:
        self.machines = {name: SearchMachine() for name in names}


class SearchCluster:
    """The cluster of a search: its nodes and its world; see `clusters.sim.cluster.SimCluster`."""

    name = "explore"

    def __init__(self, names: Sequence[str]) -> None:
        self.world = SearchWorld(names)
        self.nodes = tuple(Node(name=name, address=f"10.0.0.{index}") for index, name in enumerate(names, 1))


class Invariants:
    """What must hold between two nodes at any time: one leader in a term, and equal committed entries.

    A system has these invariants if it says so (`one_leader_per_term`), or if its node states have committed entries.
    """

    def __init__(self, system: SimSystem, cluster: SearchCluster) -> None:
        self._system = system
        self._cluster = cluster
        self._states: dict[int, NodeState] = {}

    def look(self, number: int, live: Live) -> None:
        """Keeps the state of a node, under the number that it has in the search."""
        machine = self._cluster.world.machines[live.host.name]
        machine.process = live.process
        node = next(node for node in self._cluster.nodes if node.name == live.host.name)
        self._states[number] = self._system.node_state(node, None)
        machine.process = None

    def state(self, number: int) -> NodeState:
        """Returns the state of a node by the number that it has in the search."""
        return self._states[number]

    def matters(self, number: int) -> bool:
        """Returns whether anything can be wrong between a node in this state and another node: it leads, or has committed."""
        state = self._states[number]
        return (self._system.one_leader_per_term and state.role == LEADER) or bool(_committed(state))

    def conflict(self, first: int, second: int) -> str | None:
        """Returns what is wrong if two nodes are in two states at the same time; None if nothing is."""
        one, other = self._states[first], self._states[second]
        if self._system.one_leader_per_term and one.role == other.role == LEADER and one.term == other.term:
            return f"{one.node} and {other.node} both lead term {one.term}"
        own, others = _committed(one), _committed(other)
        for index in sorted(own.keys() & others.keys()):
            if own[index] != others[index]:
                return (
                    f"{one.node} and {other.node} have committed different entries at {index}: {_entry(own[index])} and "
                    f"{_entry(others[index])}"
                )
        return None


def _committed(state: NodeState) -> dict[int, tuple[int, str]]:
    if state.committed is None:
        return {}
    return {entry.index: (entry.term, entry.text) for entry in state.entries if entry.index <= state.committed}


def _entry(entry: tuple[int, Any]) -> str:
    return f"{entry[1]} of term {entry[0]}"
