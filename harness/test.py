"""A test: all that one run of it needs."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from harness.blame import Blamable, blamed, blaming

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from harness.cluster import Cluster
    from harness.faults import PlannedFault, RunNemesis
    from harness.load import Load
    from harness.system import System
    from harness.workload import Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class Test:
    """All that a run needs.

    Attributes:
        seed: The root seed.
        cluster: The cluster with the nodes.
        system: The system under test.
        workload: The workload of the clients.
        nemesis: The nemesis that carries out the plan.
        plan: The faults, in the order of their start.
        load: The closed or open loop, with its size.
        time_limit_s: The duration of the workload.
        operation_timeout_s: The time after which an operation is `info`, and its client is abandoned.
        recovery_timeout_s: The time limit for clients to be served after healing, for nodes to come back after that, and again
            after a restart.
        in_turn: Whether a fault waits for the end of the one before it, if that one ends late.
        final_reads: Whether to read every key after recovery, through each node that the system allows.
        final_reads_timeout_s: The time limit for the final reads through one node.
        lead_timeout_s: The time limit for a node to become the leader, if its final reads need that.
        damaging: The kinds of faults that damage data for good. A node that they hit need not come back.
        start_seed: The seed by which nodes in virtual time start. They go on by that of the run when the system serves. None:
            they start by that of the run.
        versions: The versions of the tested software. The system is asked before the run, as it may download packages for that.
    """

    __test__ = False  # not a test class of pytest

    seed: int
    cluster: Cluster
    system: System
    workload: Workload
    nemesis: RunNemesis
    plan: Sequence[PlannedFault]
    load: Load
    time_limit_s: float
    operation_timeout_s: float
    recovery_timeout_s: float = 30.0
    in_turn: bool = False
    final_reads: bool = True
    final_reads_timeout_s: float = 60.0
    lead_timeout_s: float = 15.0
    damaging: Collection[str] = frozenset()
    start_seed: int | None = None
    versions: Mapping[str, str] = field(default_factory=dict)

    @property
    def plugins(self) -> tuple[Blamable, Blamable]:
        """The system and the workload, whose code may be foreign."""
        system = Blamable(type(self.system), f"system {self.system.name}")
        return system, Blamable(type(self.workload), f"workload {self.workload.name}")

    def blamed(self, error: BaseException) -> BaseException:
        """Returns the sentence about an exception if it is from the code of the system or of the workload, and else itself."""
        return blamed(error, *self.plugins)

    @contextlib.contextmanager
    def blaming(self) -> Iterator[None]:
        """Raises an exception from the code of the system or of the workload as `PluginError`; see `harness.blame`."""
        with blaming(*self.plugins):
            yield
