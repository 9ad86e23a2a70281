"""RocketMQ's controllers on each consensus: throughput without faults, and the time without a leader after a kill.

Each consensus gets a fresh local cluster. The first table has closed-loop clients at the leader. Each has one connection with
one request in flight, and every answer must have the code 0. The second table has the time from kill -9 of the leader until a
controller reports that it leads, and until one completes a write. Then the killed one restarts, and all agree before the next
kill. There is no peer to compare with. The benchmark needs root, Java and Maven.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import os
import statistics
import sys
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from clusters.kit.answers import NoAnswer, NotSent
from clusters.local import LocalCluster
from clusters.systems.rocketmq.controller import RocketMQController
from clusters.systems.rocketmq.options import Consensus, ControllerOptions
from clusters.systems.rocketmq.outcomes import SUCCESS
from clusters.systems.rocketmq.requests import REQUESTS
from harness.cluster import on_all
from harness.console.process import end_with
from harness.errors import InfrastructureError, LabrysError
from harness.leaders import LEADER
from harness.service import first_status

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from harness.node import Node
    from harness.op import Value

READY_S = 120.0
SETTLE_S = 1.0
MEASURE_S = 5.0
WARM_UP_S = 2.0
PROBE_S = 0.01  # the pause between two probes of a node
ANSWER_S = 1.0
MISSED_S = 60.0  # the limit for a new leader
CLIENTS = (1, 8)
SETTINGS = {
    "dledger": ControllerOptions(consensus=Consensus.DLEDGER),
    "dledger, process-read-event": ControllerOptions(consensus=Consensus.DLEDGER, process_read_event=True),
    "jraft": ControllerOptions(consensus=Consensus.JRAFT),
}
APPLY = {"id": 1, "check": "broker-1:10911;1"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Failover:
    """The time without a leader, in seconds from the kill.

    Attributes:
        claimed_s: Until a controller reported that it leads.
        written_s: Until a controller completed a write.
        restarted_s: From the restart of the killed one until all agreed again.
    """

    claimed_s: float
    written_s: float
    restarted_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """Closed-loop clients at the leader.

    Attributes:
        system: The controllers.
        leader: The leader.
        names: Unused names of broker groups.
    """

    system: RocketMQController
    leader: Node
    names: Iterator[str]

    async def run(self, f: str, argument: Value, clients: int, seconds: float) -> list[float]:
        """Returns the duration of each request in seconds. A write has a new group; all reads are of one group."""
        taken: list[float] = []
        read = next(self.names)
        end_s = time.monotonic() + seconds

        async def one() -> None:
            connection = await self.system.controllers.connect(self.leader)
            try:
                await REQUESTS["apply"].ask(connection, read, APPLY)
                while time.monotonic() < end_s:
                    name = next(self.names) if f == "apply" else read
                    start_s = time.monotonic()
                    answer = await REQUESTS[f].ask(connection, name, argument)
                    taken.append(time.monotonic() - start_s)
                    if answer.status != SUCCESS:
                        raise InfrastructureError(
                            f"{self.leader.name} answered {f} with code {answer.status}: {answer.remark[:200]}"
                        )
            finally:
                await connection.close()

        await asyncio.gather(*(one() for _ in range(clients)))
        return taken


def main() -> int:
    """Prints both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=5)
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--release", default="5.3.3")
    parser.add_argument("--settings", nargs="+", choices=list(SETTINGS), default=list(SETTINGS))
    asked = parser.parse_args()
    if os.geteuid() != 0:
        print("this benchmark makes local clusters, which needs root", file=sys.stderr)
        return 1
    for setting in asked.settings:
        try:
            with LocalCluster.up(f"bench-{os.getpid()}", nodes=asked.nodes) as cluster, cluster.entered():
                options = replace(SETTINGS[setting], rocketmq_version=asked.release)
                _measure(cluster, setting, options, 0 if options.process_read_event else asked.kills)
        except LabrysError as error:
            print(f"{setting}: {error}", file=sys.stderr)
            return 1
    return 0


def _measure(cluster: LocalCluster, setting: str, options: ControllerOptions, kills: int) -> None:
    system = RocketMQController(cluster, options, "broker-id")
    system.artifact = RocketMQController.build(options, lambda text: print(text, file=sys.stderr))
    on_all(cluster.nodes, system.install)
    start_s = time.monotonic()
    on_all(cluster.nodes, system.start)
    asyncio.run(system.until_ready(cluster.nodes, READY_S))
    ready_s = time.monotonic() - start_s
    print(f"### {setting}, {len(cluster.nodes)} nodes, {options.rocketmq_version}\n\nready after {ready_s:.1f} s\n")
    try:
        names = (f"bench-{number}" for number in itertools.count())
        load = Load(system=system, leader=_leader(system), names=names)
        print("| request | clients | a second | p50 ms | p99 ms |\n|---|---|---|---|---|")
        for f, argument in (("next", None), ("replica", None), ("apply", APPLY)):
            for clients in CLIENTS:
                asyncio.run(load.run(f, argument, clients, WARM_UP_S))
                taken = asyncio.run(load.run(f, argument, clients, MEASURE_S))
                p50, p99 = (1000 * _quantile(taken, part) for part in (0.5, 0.99))
                print(f"| {f} | {clients} | {len(taken) / MEASURE_S:,.0f} | {p50:.1f} | {p99:.1f} |", flush=True)
        if kills:
            _print_failovers([_fail_over(system, names) for _ in range(kills)])
    finally:
        on_all(cluster.nodes, system.stop)


def _print_failovers(failovers: list[Failover]) -> None:
    print(f"\n{len(failovers)} kills of the leader, in seconds:\n")
    print("| from the kill until | least | p50 | p90 | most |\n|---|---|---|---|---|")
    rows: dict[str, Callable[[Failover], float]] = {
        "a controller says that it leads": lambda failover: failover.claimed_s,
        "a write is carried out": lambda failover: failover.written_s,
        "(from the restart) all agree": lambda failover: failover.restarted_s,
    }
    for name, of in rows.items():
        times = [of(failover) for failover in failovers]
        parts = (min(times), _quantile(times, 0.5), _quantile(times, 0.9), max(times))
        print(f"| {name} | {' | '.join(f'{part:.2f}' for part in parts)} |")
    print(
        "\nwrites, sorted: "
        + ", ".join(f"{failover.written_s:.2f}" for failover in sorted(failovers, key=rows["a write is carried out"]))
    )
    print(f"mean {statistics.mean(failover.written_s for failover in failovers):.2f} s\n", flush=True)


def _fail_over(system: RocketMQController, names: Iterator[str]) -> Failover:
    """Kills the leader, waits for the next one, and restarts the killed one."""
    time.sleep(SETTLE_S)
    leader = _leader(system)
    start_s = time.monotonic()
    system.kill(leader)
    claimed_s, written_s = asyncio.run(_next_leader(system, leader, names))
    restart_s = time.monotonic()
    system.start(leader)
    asyncio.run(system.until_ready(system.controllers.nodes, READY_S))
    return Failover(
        claimed_s=claimed_s - start_s, written_s=written_s - start_s, restarted_s=time.monotonic() - restart_s
    )


async def _next_leader(system: RocketMQController, dead: Node, names: Iterator[str]) -> tuple[float, float]:
    """Returns when a controller first reported that it leads, and when one first completed a write."""
    claimed, written = asyncio.Event(), asyncio.Event()
    times: dict[asyncio.Event, float] = {}

    def now(event: asyncio.Event) -> None:
        times.setdefault(event, time.monotonic())
        event.set()

    async def probe(node: Node) -> None:
        while not (claimed.is_set() and written.is_set()):
            status = await first_status(system, node, ANSWER_S)
            if status is not None and status.role == LEADER:
                now(claimed)
            try:
                async with asyncio.timeout(ANSWER_S):
                    connection = await system.controllers.connect(node, ANSWER_S)
                    try:
                        if (await REQUESTS["apply"].ask(connection, next(names), APPLY)).status == SUCCESS:
                            now(written)
                    finally:
                        await connection.close()
            except (NotSent, NoAnswer, TimeoutError):
                pass
            await asyncio.sleep(PROBE_S)

    others = [node for node in system.controllers.nodes if node != dead]
    async with asyncio.timeout(MISSED_S):
        await asyncio.gather(*map(probe, others))
    return times[claimed], times[written]


def _leader(system: RocketMQController) -> Node:
    """Returns the leader when all controllers agree."""

    async def leader() -> Node:
        for node in system.controllers.nodes:
            status = await first_status(system, node, ANSWER_S)
            if status is not None and status.role == LEADER:
                return node
        raise InfrastructureError("no controller says that it leads")

    return asyncio.run(leader())


def _quantile(values: list[float], part: float) -> float:
    return sorted(values)[min(len(values) - 1, int(part * len(values)))]


if __name__ == "__main__":
    end_with(main)
