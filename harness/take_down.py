"""The end of a run: it asks which processes ended by themselves, collects the logs, and stops the system."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness import phases as ph
from harness.cluster import on_nodes
from harness.daemon import processes_of
from harness.ends import ends_since
from harness.errors import LabrysError, described
from harness.world import world_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from harness.clock import Clock
    from harness.ends import Ended
    from harness.node import Node
    from harness.phases import Phases
    from harness.run import Observer, RunResult
    from harness.test import Test


@dataclass(frozen=True, slots=True, kw_only=True)
class TakeDown:
    """Takes a run down.

    Attributes:
        test: The test.
        result: Gets the ends of processes, the logs and the execution of a world.
        logs_dir: The folder for the logs; each node has a folder in it.
        observer: Shows the progress.
        phases: Measures the phases.
        clock: The clock of the run.
        problem: Is called for each error that does not end the run.
    """

    test: Test
    result: RunResult
    logs_dir: Path
    observer: Observer
    phases: Phases
    clock: Clock
    problem: Callable[[str], None]

    async def carry_out(self) -> None:
        """Never raises an error of a node or of the system; it is told as a problem."""
        system, cluster = self.test.system, self.test.cluster
        await self._note_ends()
        self.observer.phase("collecting logs")

        def collect(node: Node) -> list[Path]:
            directory = self.logs_dir / node.name
            directory.mkdir(parents=True, exist_ok=True)
            collected = []
            for remote_path in system.log_files(node):
                local = directory / remote_path.rsplit("/", 1)[-1]
                try:
                    cluster.remote(node).get(remote_path, local)
                except FileNotFoundError:
                    continue  # a log that the node never wrote
                collected.append(local)
            return collected

        with self.phases.during(ph.LOGS):
            collected = await asyncio.to_thread(on_nodes, cluster.nodes, collect)
        for name, logs in collected.items():
            if isinstance(logs, Exception):
                self.problem(f"the logs of {name} could not be collected: {described(self.test.blamed(logs))}")
            else:
                self.result.logs[name] = logs
        for problem in getattr(cluster, "left_out", tuple)():
            self.problem(problem)
        world = world_of(cluster)
        self.result.execution = None if world is None else world.execution()
        self.observer.phase("stopping")
        with self.phases.during(ph.STOP):
            for name, ended in (await asyncio.to_thread(on_nodes, cluster.nodes, system.stop)).items():
                if isinstance(ended, Exception):
                    self.problem(f"{system.name} could not be stopped on {name}: {described(self.test.blamed(ended))}")
            try:
                await self.test.nemesis.release()
            except LabrysError as error:
                self.problem(f"the preparations for the faults could not be removed: {error}")

    async def _note_ends(self) -> None:
        """Asks which processes ended by themselves. Nodes without processes of this machine's kernel have none."""
        system, cluster = self.test.system, self.test.cluster
        if world_of(cluster) is not None and not hasattr(cluster, "processes"):
            return

        def ask(node: Node) -> list[Ended]:
            ends = processes_of(cluster, node).ends(system.daemons(node))
            return list(ends_since(0.0, self.clock.now_s(), node.name, ends))

        for name, ends in (await asyncio.to_thread(on_nodes, cluster.nodes, ask)).items():
            if isinstance(ends, Exception):
                what = described(self.test.blamed(ends))
                self.problem(f"{name} did not tell which of its processes ended: {what}")
            else:
                self.result.ended += ends
