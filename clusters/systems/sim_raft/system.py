"""The simulated Raft as a system under test."""

from __future__ import annotations

import asyncio
import json
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Final

from clusters.sim import asking
from clusters.sim.cluster import LOG_FILE
from clusters.sim.system import EVERY_NODE_RETURNS, NO_KERNEL, ONE_LEADER, SimSystem
from clusters.systems.sim_raft import messages
from clusters.systems.sim_raft.client import SimRaftClient, outcome_of, request_of
from clusters.systems.sim_raft.node import RaftProcess
from clusters.systems.sim_raft.options import Reads, SimRaftOptions
from clusters.systems.sim_raft.outcomes import ANSWERS, REFUSALS
from clusters.systems.sim_raft.promises import promises
from harness.capabilities import SIMULATED_KERNEL
from harness.console.documents import shown
from harness.errors import InputError
from harness.leaders import leader_of
from harness.promise import Handling, OnDamage
from harness.service import NodeStatus, ReplicaState, first_status
from harness.traits import LogLine, Tier

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clusters.sim.host import Factory, Host
    from clusters.systems.sim_raft.messages import Command, Query
    from harness.node import Node
    from harness.node_states import NodeState
    from harness.op import Invocation, Outcome
    from harness.promise import Promise

TRANSFER_POLL_S: Final = 0.1
STATUS_TIMEOUT_S: Final = 0.5


class SimRaft(SimSystem):
    """Nodes of Labrys' own Raft in the simulator."""

    name = "sim-raft"
    summary = "The Raft of Labrys for the simulator, correct or with one planted bug."
    tier = Tier.BENCH
    # It distrusts what it wrote before an error of its disk, so calls on its files can fail.
    lacks: ClassVar[Mapping[str, str]] = MappingProxyType({SIMULATED_KERNEL: NO_KERNEL})
    Options = SimRaftOptions
    options: SimRaftOptions
    serves: ClassVar[Mapping[str, str]] = MappingProxyType(
        {
            "register": "write and cas are log entries; the leader answers read",
            "set": "add is a log entry; the leader answers read",
            "log": "append is a log entry, and returns its offset in the log of the key; the leader answers read",
            "lock": "acquire and release are log entries; the token is the index of the acquire's entry",
            "counter": "add is a log entry; the leader answers read",
        }
    )
    log_lines: ClassVar[Mapping[str, LogLine]] = MappingProxyType(
        {
            "elected": LogLine(path=LOG_FILE, pattern=r" leads term [0-9]+ ", meaning="a node becomes the leader"),
            "snapshot": LogLine(path=LOG_FILE, pattern=r" takes a snapshot ", meaning="a node takes a snapshot"),
            "install": LogLine(
                path=LOG_FILE, pattern=r" installs a snapshot ", meaning="a follower installs a snapshot"
            ),
            "start": LogLine(path=LOG_FILE, pattern=r" start [0-9]+$", meaning="a process starts"),
        }
    )
    dumps_replicas = True
    answers = ANSWERS
    refusals = REFUSALS
    reads_need_leader = True
    moves_leadership = True
    raft_invariants = (
        "In Raft, what a process has committed or applied stays so while it runs, and stays in its log. "
        "A node stores its term."
    )
    stores_term = True
    every_node_returns = EVERY_NODE_RETURNS
    on_damage = OnDamage(
        handling=Handling.REFUSES,
        sentence="A node verifies the checksums of its files. It repairs its log from the leader, and takes no part until "
        "then, nor if both copies of its promises are damaged.",
        source="Labrys, sim-raft, clusters/systems/sim_raft/README.md",
    )
    one_leader_per_term = ONE_LEADER

    @classmethod
    def promises(cls, options: SimRaftOptions) -> Mapping[str, Promise]:  # noqa: ARG003 - they change no promise
        """Returns what it promises to each workload."""
        return promises()

    def factory(self, node: Node) -> Factory:  # noqa: ARG002 - the same on all nodes
        """Returns the function that makes the process of a node."""

        def make(host: Host) -> RaftProcess:
            return RaftProcess(host, self.options, self.workload)

        return make

    def client(self, process: int, node: Node, *, pinned: bool = False) -> SimRaftClient:
        """Returns the client of a process."""
        nodes = [other.name for other in self.cluster.nodes]
        return SimRaftClient(
            connection=self.connect(process),
            node=node,
            nodes=nodes,
            options=self.options,
            follows=not pinned and self.options.routing.follows(process, len(nodes)),
            closes=self.workload == "lock",
        )

    def why_not_explored(self, *, one_clock: bool) -> str | None:
        """Refuses leases without one clock: they are safe only if clocks have about the same speed."""
        if self.options.reads is Reads.LEASE and not one_clock:
            return (
                "with --reads lease, the nodes rely on clocks of about the same speed; in a search, clocks have any speed. "
                "--one-clock gives all nodes the same clock"
            )
        return None

    def request_of(self, client: str, invocation: Invocation) -> Command | Query:
        """Returns the request of a client's only operation."""
        request = request_of(client, 1, invocation)
        if request is None:
            raise InputError(f"sim-raft has no {invocation.f} of {shown(json.dumps(invocation.value), quoted=False)}")
        return request

    def outcome_of(self, invocation: Invocation, answer: Any) -> Outcome:
        """Returns the outcome of an operation from an answer, by the table of the client."""
        return outcome_of(answer, is_read=invocation.f == "read")

    async def statuses(self, node: Node, timeout_s: float) -> Sequence[NodeStatus]:
        """Returns a node's status; none if it does not answer in time."""
        status = await self.ask_for(node, asking.AskStatus(), messages.Status, timeout_s)
        if status is None:
            return ()
        details = {name: getattr(status, name) for name in ("snapshot", "serving", "repairing")}
        own_status = NodeStatus(
            node=node.name,
            role=status.role,
            term=status.term,
            leader=status.leader,
            applied_index=status.applied,
            committed_index=status.committed,
            last_index=status.last,
            details=details,
        )
        return (own_status,)

    async def replica(self, node: Node, timeout_s: float) -> ReplicaState | None:
        """Returns the state of a node; None if it does not answer in time."""
        dump = await self.ask_for(node, messages.AskDump(), messages.Dump, timeout_s)
        if dump is None:
            return None
        return ReplicaState(node=node.name, applied_index=dump.applied, state=dump.state)

    def node_state(self, node: Node, key: str | None) -> NodeState:
        """Returns the state of a node. For a node that does not take part, it has only the state of the process."""
        basic = super().node_state(node, key)
        process = self.world.machines[node.name].process
        raft = process.raft if isinstance(process, RaftProcess) else None
        return basic if raft is None else raft.node_state(basic, key)

    async def lacking(self, nodes: Sequence[Node]) -> Mapping[str, str]:
        """Returns what each node lacks to serve with the others. Each must also have applied all committed entries."""
        missing = await super().lacking(nodes)
        if missing:
            return missing
        statuses = [await first_status(self, node, STATUS_TIMEOUT_S) for node in nodes]
        applied = {status.node: status.applied_index or 0 for status in statuses if status is not None}
        most = max(applied.values())
        return {name: f"has applied {index} of {most} entries" for name, index in applied.items() if index < most}

    async def lead(self, node: Node, timeout_s: float) -> bool:
        """Requests a transfer to `node` from the leader, until `node` leads and serves. Returns whether it does."""
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + timeout_s
        while loop.time() < deadline_s:
            statuses = await asyncio.gather(
                *(first_status(self, other, STATUS_TIMEOUT_S) for other in self.cluster.nodes)
            )
            leader = leader_of([status for status in statuses if status is not None])
            if leader is not None and leader.node == node.name and (leader.details or {}).get("serving"):
                return True
            if leader is not None and leader.node != node.name:
                old = next(other for other in self.cluster.nodes if other.name == leader.node)
                await self.ask(old, messages.AskTransfer(node.name), STATUS_TIMEOUT_S)
            await asyncio.sleep(TRANSFER_POLL_S)
        return False
