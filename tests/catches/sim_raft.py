"""Short runs of the simulated Raft under many kinds of faults, with the parts of the verdict: for tests and for benchmarks.

A run is one of `harness.run`, in virtual time: the workload with faults, healing, recovery, final reads, a comparison of the
replicas. Everything comes from the seed.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from clusters.sim.cluster import SimCluster
from clusters.systems.sim_raft.options import SimRaftOptions
from clusters.systems.sim_raft.system import SimRaft
from harness import parts
from harness.history import HistoryWriter, pair
from harness.load import ClosedLoop, OpenLoop
from harness.randomness import stream
from harness.run import Test, run
from nemesis.conductor import Conductor
from nemesis.kinds import choose_all
from nemesis.plan import draw_plan
from nemesis.rhythm import Rhythm
from workloads.counter.workload import CounterWorkload
from workloads.lock.options import LockOptions
from workloads.lock.workload import LockWorkload
from workloads.log.workload import LogWorkload
from workloads.register.options import RegisterOptions
from workloads.register.workload import RegisterWorkload
from workloads.set.options import SetOptions
from workloads.set.workload import SetWorkload

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.faults import PlannedFault
    from harness.op import Operation
    from harness.run import RunResult
    from harness.verdict import Part
    from harness.workload import Workload

SECONDS: Final = 8.0
RHYTHM: Final = Rhythm(on_s=(0.3, 2.0), off_s=(0.1, 1.0), quiet_s=0.2, tail_s=0.5)
KINDS: Final = (
    "partition-random-node", "partition-random-halves", "partition-majorities-ring", "bridge", "partition-leader",
    "partition-one-way", "kill", "leader-kill", "minor-kill", "major-kill", "leaders-kill", "crash", "pause", "leader-pause",
    "packet-loss", "packet-delay", "packet-duplicate", "packet-reorder", "clock-skew", "clock-strobe", "power-loss",
    "disk-full", "file-truncate", "file-bitflip", "leadership-transfer",
)  # fmt: skip
AT_ONCE: Final = 4  # kinds in one run


def workload_named(name: str) -> Workload:
    """Returns a workload that is busy enough for short runs."""
    match name:
        case "register":
            return RegisterWorkload(RegisterOptions(hot_keys=2, ops_per_key=60))
        case "set":
            return SetWorkload(SetOptions(reads_every=5))
        case "log":
            return LogWorkload()
        case "lock":
            return LockWorkload(LockOptions(ops_per_lock=20))
        case "counter":
            return CounterWorkload()
    raise ValueError(name)


class _Silent:
    def phase(self, text: str) -> None:
        """Says nothing."""

    def workload_began(self, watch: object, clock: object) -> None:
        """Says nothing."""

    def problem(self, text: str) -> None:
        """Says nothing."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """A run.

    Attributes:
        kinds: The kinds of faults.
        operations: What clients did.
        parts: The parts of the verdict, by name.
        result: What the run left.
        logs: Node to its log.
    """

    kinds: Sequence[str]
    operations: Sequence[Operation]
    parts: dict[str, Part]
    result: RunResult
    logs: dict[str, list[str]]


def kinds_of(seed: int, kinds: Sequence[str] = KINDS, most: int = AT_ONCE) -> list[str]:
    """Draws the kinds of faults of a run: one to `most`, which can be had together."""
    draws = stream(seed, "suite")
    return sorted(draws.sample(list(kinds), draws.randint(1, min(most, len(kinds)))))


def plan_of(seed: int, kinds: Sequence[str], nodes: Sequence[str], seconds: float = SECONDS) -> Sequence[PlannedFault]:
    """Draws the faults of a run."""
    choices = choose_all(kinds, nodes=nodes, capabilities={})
    return draw_plan(
        choices, nodes, seed=seed, time_limit_s=seconds, rhythms=dict.fromkeys(kinds, RHYTHM), each_at_least_once=False
    )


def once(
    seed: int,
    options: SimRaftOptions | None = None,
    *,
    workload: str = "register",
    nodes: int = 5,
    kinds: Sequence[str] | None = None,
    seconds: float = SECONDS,
    rate: float = 5.0,
    closed: bool = False,
) -> Outcome:
    """Runs once.

    Args:
        seed: The root seed.
        options: Of the nodes; the correct version by default.
        workload: Its name.
        nodes: How many there are.
        kinds: The kinds of faults; drawn from the seed by default.
        seconds: How long the workload runs.
        rate: Operations a second and node.
        closed: Whether ten clients go on as fast as they are answered instead.
    """
    names = [f"n{number}" for number in range(1, nodes + 1)]
    chosen = kinds_of(seed) if kinds is None else list(kinds)
    cluster = SimCluster(names, seed)
    system = SimRaft(cluster, options or SimRaftOptions(), workload)
    test = Test(
        seed=seed,
        cluster=cluster,
        system=system,
        workload=workload_named(workload),
        nemesis=Conductor(cluster=cluster, system=system),
        plan=plan_of(seed, chosen, names, seconds),
        load=ClosedLoop(concurrency=10) if closed else OpenLoop(rate_per_node=rate),
        time_limit_s=seconds,
        operation_timeout_s=3.0,
    )
    with tempfile.TemporaryDirectory() as directory:
        history = HistoryWriter(Path(directory) / "history.jsonl", {"seed": seed})
        result = run(test, history=history, logs_dir=Path(directory) / "logs", observer=_Silent())
        history.close()
        operations = pair(history.ops)
        found = parts.of_run(test, result, operations)
    return Outcome(
        kinds=chosen,
        operations=operations,
        parts={part.name: part for part in found},
        result=result,
        logs={name: machine.lines for name, machine in cluster.world.machines.items()},
    )
