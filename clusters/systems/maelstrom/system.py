"""Programs that speak Maelstrom's protocol, as a system under test."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Final, cast

from clusters.pipes.cluster import MESSAGES_FILE
from clusters.pipes.command import environment_of
from clusters.pipes.links import GivenLinks
from clusters.pipes.program import Launch
from clusters.sim.cluster import LOG_FILE
from clusters.sim.system import ROLE, Connection, SimNodes
from clusters.systems.maelstrom import topologies
from clusters.systems.maelstrom.client import MaelstromClient
from clusters.systems.maelstrom.clients import Clients
from clusters.systems.maelstrom.node import MaelstromNode
from clusters.systems.maelstrom.options import MaelstromOptions
from clusters.systems.maelstrom.outcomes import ANSWERS
from clusters.systems.maelstrom.promises import promises
from clusters.systems.maelstrom.services import Services
from clusters.systems.maelstrom.violations import Ledger
from harness.errors import CommandFailed, InfrastructureError, NotServing
from harness.traits import LogLine, Tier
from harness.units import NS_PER_MS
from harness.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clusters.pipes.cluster import PipesCluster
    from clusters.sim.host import Factory, Host
    from harness.cluster import Cluster
    from harness.daemon import Daemon
    from harness.node import Node
    from harness.promise import Promise
    from harness.verdict import Part

POLL_S: Final = 0.01
EVENTUAL: Final = frozenset({"broadcast", "g-set", "g-counter", "pn-counter"})


class MaelstromSystem(SimNodes):
    """Nodes of a program that speaks Maelstrom's protocol."""

    name = "maelstrom"
    summary = "A program of yours that speaks Maelstrom's protocol on stdin and stdout."
    tier = Tier.BENCH
    only_on = "pipes"
    Options = MaelstromOptions
    ready_timeout_s = 10.0  # as long as Maelstrom waits for init_ok
    serves: ClassVar[Mapping[str, str]] = MappingProxyType(
        {
            "echo": "echo is the request echo",
            "unique-ids": "generate is the request generate",
            "broadcast": "add is the request broadcast; read is the request read",
            "g-set": "add and read are the requests add and read",
            "g-counter": "add and read are the requests add and read",
            "pn-counter": "add and read are the requests add and read",
            "lin-kv": "read, write and cas are the requests of these names",
            "kafka": "append is the request send; read is the request poll, as often as needed",
            "txn-list-append": "txn is the request txn",
            "txn-rw-register": "txn is the request txn",
        }
    )
    log_lines: ClassVar[Mapping[str, LogLine]] = MappingProxyType(
        {"start": LogLine(path=LOG_FILE, pattern=r" start [0-9]+$", meaning="a program starts")}
    )
    answers = ANSWERS

    def __init__(self, cluster: Cluster, options: MaelstromOptions, workload: str) -> None:
        super().__init__(cluster, options, workload)
        self.quiet_s = options.quiet if workload in EVENTUAL else 0.0
        self._options = options
        self._command: Sequence[str] = options.command()
        self._clients = Clients()
        self._programs: dict[str, MaelstromNode] = {}  # the last one that each node started
        self._ledger = Ledger(strict=options.strict)
        self._services = Services.of(self.world, options.service_timeouts)
        if options.latency >= 0:
            names, mean_ns = [node.name for node in cluster.nodes], int(options.latency * NS_PER_MS)
            self.world.use_links(GivenLinks(self.world.seed, names, mean_ns=mean_ns, dist=options.latency_dist))

    @classmethod
    def promises(cls, options: MaelstromOptions) -> Mapping[str, Promise]:  # noqa: ARG003 - they change no promise
        """Returns what it promises to each workload."""
        return promises()

    @property
    def _pipes(self) -> PipesCluster:
        return cast("PipesCluster", self.cluster)

    def factory(self, node: Node) -> Factory:
        """Returns the function that starts the program of a node."""
        pipes, names = self._pipes, [other.name for other in self.nodes]
        topology = topologies.of(self._options.topology, names) if self.workload == "broadcast" else None

        def make(host: Host) -> MaelstromNode:
            launch = Launch(
                node=node.name,
                command=self._command,
                environment=environment_of(host.random),
                transcript=pipes.transcript(node.name),
                begin=pipes.begin,
            )
            program = self._programs[node.name] = MaelstromNode(
                host,
                self.world.machines[node.name],
                pipes.pump,
                launch,
                topology=topology,
                services=self._services,
                clients=self._clients,
                ledger=self._ledger,
            )
            return program

        return make

    def daemon(self, node: Node) -> Daemon:
        """Returns the program of a node, with its log and its transcript."""
        return replace(super().daemon(node), log_files=(LOG_FILE, MESSAGES_FILE))

    def client(self, process: int, node: Node, *, pinned: bool = False) -> MaelstromClient:  # noqa: ARG002 - all are pinned
        """Returns the client of a process. It asks its own node only."""
        return MaelstromClient(
            connection=Connection(self.world, self._clients.begin()), node=node, workload=self.workload
        )

    def own_parts(self) -> Sequence[Part]:
        """Returns the part about the protocol, and the one about time-outs of services if there can be some."""
        return tuple(part for part in (self._ledger.part(), self._services.timeouts.part()) if part is not None)

    async def until_ready(self, nodes: Sequence[Node], timeout_s: float) -> None:
        """Waits until the programs have answered `init` and, if there is one, `topology`.

        Raises:
            NotServing: They have not at the deadline.
        """
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + timeout_s
        while lacks := {node.name: lack for node in nodes if (lack := self._lacks(node))}:
            if loop.time() >= deadline_s:
                same: dict[str, list[str]] = {}
                for name, lack in lacks.items():
                    same.setdefault(lack, []).append(name)
                states = "; ".join(f"{', '.join(names)} {lack}" for lack, names in same.items())
                part = self._ledger.part()
                broke = part.reason if part.verdict is Verdict.INVALID else "They broke no rule of the protocol."
                raise NotServing(f"not all programs were ready within {timeout_s:g} s: {states}. {broke}", lacks)
            await asyncio.sleep(POLL_S)

    def _lacks(self, node: Node) -> str:
        """Returns what the program of a node has not done to be ready, as a clause; empty if it is ready."""
        program = self._programs.get(node.name)
        return "was not started" if program is None else program.lacks

    def start(self, node: Node, role: str | None = None) -> None:
        """Starts the program; does nothing if it runs."""
        self.world.inside(lambda: SimNodes.start(self, node, role))

    def kill(self, node: Node, role: str | None = None) -> None:
        """Ends the program with SIGKILL; does nothing if there is none."""
        self.world.inside(lambda: SimNodes.kill(self, node, role))

    def pause(self, node: Node, role: str | None = None) -> None:
        """Stops the program with SIGSTOP.

        Raises:
            CommandFailed: No program runs, or it does not stop.
        """
        try:
            self.world.inside(lambda: SimNodes.pause(self, node, role))
        except InfrastructureError as error:
            raise CommandFailed(node.name, "pause", 1, str(error)) from error

    def resume(self, node: Node, role: str | None = None) -> None:
        """Continues a stopped program; does nothing otherwise."""
        self.world.inside(lambda: SimNodes.resume(self, node, role))

    def process_states(self, node: Node, role: str | None = None) -> Mapping[str, tuple[int, str] | None]:
        """Returns the pid and the state letter of the program, read from the kernel.

        In virtual time, the number of its start takes the place of the pid, which no seed repeats.
        """
        if role not in {None, ROLE}:
            return {}
        process = self._machine(node).process
        child = process.child if isinstance(process, MaelstromNode) else None
        letter = None if child is None else child.letter()
        if child is None or letter is None:
            return {ROLE: None}
        state = self._machine(node).state()
        return {ROLE: (child.pid if self.world.real_time or state is None else state[0], letter)}

    def wipe(self, node: Node, role: str | None = None) -> None:
        """Removes the folder of the program, and the node's log."""
        super().wipe(node, role)
        self._pipes.wipe(node.name)

    @classmethod
    def roles(
        cls,
        nodes: Sequence[str],
        options: Any,  # noqa: ARG003 - as `System` has it
        workload: str,  # noqa: ARG003
        workload_options: Any = None,  # noqa: ARG003
    ) -> Mapping[str, Sequence[str]]:
        """Returns the one role, with all nodes. A plan needs no program."""
        return {ROLE: tuple(nodes)}
