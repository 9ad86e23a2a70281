"""The state of the nodes of a simulated run at some times.

Labrys carries out the run again from its seed, and reads the states of the nodes at these times. This does not change the run,
so both histories are the same. `states_of` checks this. If they differ, e.g. because another version of Labrys made the run, it
returns None.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from commands.run.trial import carried_out
from harness.node_states import ClusterState

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clusters.sim.system import SimSystem
    from clusters.sim.world import SimWorld
    from commands.options.compose import Settled
    from harness.clock import Clock
    from harness.op import Operation
    from harness.test import Test
    from harness.watch import Watch


class StateReader:
    """Reads the states of the nodes at some times of a run's workload; see `harness.run.Observer`.

    Attributes:
        states: The states so far.
    """

    def __init__(self, test: Test, times_ns: Sequence[int], key: str | None) -> None:
        self.states: list[ClusterState] = []
        self._system = cast("SimSystem", test.system)
        self._nodes = test.cluster.nodes
        self._times_ns = times_ns
        self._key = key

    def phase(self, text: str) -> None:
        """Shows nothing."""

    def problem(self, text: str) -> None:
        """Shows nothing, because the result has the problem."""

    def workload_began(self, watch: Watch, clock: Clock) -> None:  # noqa: ARG002 - as `Observer` has it
        """Schedules the reading at each time."""
        world: SimWorld = self._system.world
        for time_ns in self._times_ns:
            world.later(max(0, time_ns - clock.now_ns()), self._read, (time_ns,))

    def _read(self, time_ns: int) -> None:
        nodes = tuple(self._system.node_state(node, self._key) for node in self._nodes)
        self.states.append(ClusterState(time_ns=time_ns, nodes=nodes))


def states_of(
    settled: Settled, operations: Sequence[Operation], times_ns: Sequence[int], *, key: str | None
) -> list[ClusterState] | None:
    """Carries out a simulated run again, and reads the states of its nodes.

    Args:
        settled: The options of the run.
        operations: The operations of the run.
        times_ns: The times to read at, on the run's clock.
        key: The key whose values and entries are wanted; None if the workload has one object.

    Returns:
        The states; None if the second history differs.

    Raises:
        LabrysError: The system could not be set up.
    """
    readers: list[StateReader] = []

    def reader(test: Test) -> StateReader:
        readers.append(StateReader(test, times_ns, key))
        return readers[0]

    with carried_out(settled, reader) as (_, _, again):
        return readers[0].states if [*again] == [*operations] else None
