"""The state of the nodes of a simulated run at some times.

Labrys carries out the run again from its seed, and looks at the nodes at these times. A look does not change the run, so both
histories are the same. `looks_of` checks this. If they differ, e.g. because another version of Labrys made the run, it returns
None.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import clusters.options
from commands.compose import compose
from harness.history import MemoryHistory, pair
from harness.looks import Look
from harness.run import run

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clusters.sim.system import SimSystem
    from clusters.sim.world import SimWorld
    from commands.compose import Settled
    from harness.clock import Clock
    from harness.op import Operation
    from harness.run import Test
    from harness.watch import Watch


class Looking:
    """Looks at the nodes at some times of a run's workload; see `harness.run.Observer`.

    Attributes:
        looks: The looks so far.
    """

    def __init__(self, test: Test, times_ns: Sequence[int], key: str | None) -> None:
        self.looks: list[Look] = []
        self._system = cast("SimSystem", test.system)
        self._nodes = test.cluster.nodes
        self._times_ns = times_ns
        self._key = key

    def phase(self, text: str) -> None:
        """Shows nothing."""

    def problem(self, text: str) -> None:
        """Shows nothing, because the result has the problem."""

    def workload_began(self, watch: Watch, clock: Clock) -> None:  # noqa: ARG002 - as `Observer` has it
        """Schedules a look at each time."""
        world: SimWorld = self._system.world
        for time_ns in self._times_ns:
            world.later(max(0, time_ns - clock.now_ns()), self._look, (time_ns,))

    def _look(self, time_ns: int) -> None:
        nodes = tuple(self._system.look(node, self._key) for node in self._nodes)
        self.looks.append(Look(time_ns=time_ns, nodes=nodes))


def looks_of(
    options: Mapping[str, Any],
    settled: Settled,
    operations: Sequence[Operation],
    times_ns: Sequence[int],
    *,
    key: str | None,
) -> list[Look] | None:
    """Carries out a simulated run again, and looks at its nodes.

    Args:
        options: The settled options of the run.
        settled: The values that follow from them.
        operations: The operations of the run.
        times_ns: The times of the looks, on the run's clock.
        key: The key whose values and entries are wanted; None if the workload has one object.

    Returns:
        The looks; None if the second history differs.

    Raises:
        LabrysError: The system could not be set up.
    """
    history = MemoryHistory()
    with (
        clusters.options.open_cluster(options) as cluster,
        tempfile.TemporaryDirectory(prefix="labrys-") as logs,
    ):
        test, _, _ = compose(options, cluster, settled, "", defaults=None)
        looking = Looking(test, times_ns, key)
        run(test, history=history, logs_dir=Path(logs), observer=looking)
    return looking.looks if [*pair(history.ops)] == [*operations] else None
