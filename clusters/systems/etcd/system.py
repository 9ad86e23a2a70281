"""etcd as a system under test: Debian's 3.4, or a release built from its Go module, started without a service manager.

Every node serves every request. A linearizable read asks a quorum, and then answers from the node's own state, so the final
reads go through each node as it is.
"""

from __future__ import annotations

import asyncio
import itertools
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar

from clusters.kit.answers import NoAnswer
from clusters.kit.contracts import served
from clusters.kit.exchange import asked_once
from clusters.kit.leading import move_leadership
from clusters.kit.leases import refuse_sessions
from clusters.kit.waiting import wait_until_complete
from clusters.systems.etcd.client import CLIENTS, EtcdLocks, EtcdTransactions
from clusters.systems.etcd.gateway import PORT, Gateway, encoded
from clusters.systems.etcd.options import EtcdOptions
from clusters.systems.etcd.outcomes import ANSWERS
from clusters.systems.etcd.promises import ON_DAMAGE, promises
from clusters.systems.etcd.releases import DEBIAN, PACKAGES, PROGRAM, built, go
from harness.daemon import Daemon
from harness.leaders import LEADER, leader_of
from harness.process_clock import LogClock
from harness.service import NodeStatus, ReplicaState
from harness.system import OneServiceSystem
from harness.traits import LogLine, Tier

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from typing import TypeVar

    from clusters.systems.etcd.client import EtcdClient
    from harness.builds import Artifact
    from harness.cluster import Cluster
    from harness.node import Node
    from harness.promise import Promise

    T = TypeVar("T")

ROLE = "etcd"
PEER_PORT = 2380
DATA_DIR = "/var/lib/labrys/etcd"
LOG = "/var/log/labrys/etcd/etcd.log"
STATUS_TIMEOUT_S = 1.0
TRANSFER_TIMEOUT_S = 5.0
ALL_KEYS = encoded("\0")  # as the start and the end of a range: every key
# A full disk or a lost disk ends etcd on purpose, so its panics about them are no defects.
FATAL = (
    r"tocommit\(\d+\) is out of range",  # a node lost entries that it had acknowledged
    r"fatal error: ",
    r"invalid memory address or nil pointer dereference",
)
LINES: Mapping[str, LogLine] = MappingProxyType(
    {
        name: LogLine(path=LOG, pattern=pattern, meaning=meaning)
        for name, pattern, meaning in (
            ("election", "became candidate at term", "a node begins an election"),
            ("leader", "became leader at term", "a node becomes the leader"),
            ("elected", "elected leader ", "a node learns who leads"),
            ("lost-leader", "lost leader ", "a node knows no leader any more"),
        )
    }
)
TELLING = (
    "became leader",
    "became follower",
    "became candidate",
    "elected leader",
    "lost leader",
    "changed leader",
    "lost the TCP streaming connection",
    "applied snapshot",
    "saved snapshot",
    "overloaded",
)


class EtcdSystem(OneServiceSystem):
    """etcd on a cluster."""

    name = "etcd"
    summary = "etcd 3.4 to 3.7, a key-value store on Raft."
    tier = Tier.PROMISE
    Options = EtcdOptions
    role = ROLE
    faketime = False  # Go reads the clock without libc
    serves = served(CLIENTS)
    programs = (go("3.7.3"),)
    log_lines: ClassVar[Mapping[str, LogLine]] = LINES
    answers = ANSWERS
    libraries: ClassVar[Mapping[str, str]] = MappingProxyType({"aiohttp": "etcd"})
    telling_log_texts = TELLING
    on_damage = ON_DAMAGE
    raft_invariants = "In Raft, what a process has committed or applied stays so while it runs."
    dumps_replicas = True
    moves_leadership = True

    def __init__(self, cluster: Cluster, options: EtcdOptions, workload: str) -> None:
        super().__init__(cluster, options, workload)
        self._options = options
        self._is_debian = options.etcd_version == DEBIAN
        self._names: dict[int, str] = {}  # the names of the nodes by etcd's ids of the members
        self._followed: dict[str, int] = {}  # for each node, the highest term that it reported while it did not lead
        self._clients = itertools.count(1)

    @classmethod
    def build(cls, options: EtcdOptions, say: Callable[[str], object]) -> Artifact | None:
        """Builds the release from its Go module, if the cache does not have it; Debian's package needs no build."""
        if options.etcd_version == DEBIAN:
            say(
                "etcd 3.4 comes from Debian's package; --etcd-version names the releases that are built from Go modules"
            )
            return None
        return built(options.etcd_version, say)

    @classmethod
    def promises(cls, options: EtcdOptions) -> Mapping[str, Promise]:
        """Returns what etcd promises to each workload."""
        return promises(options)

    def refuse_options(self) -> None:
        """Refuses locks that end with the connection of their client: etcd frees them by their lease only.

        Raises:
            InputError: The workload has such locks.
        """
        refuse_sessions(self, "etcd")

    def versions(self) -> Mapping[str, str]:
        """Returns the version of the release, or of Debian's package."""
        return {"etcd": PACKAGES.versions()["etcd-server"] if self._is_debian else self._options.etcd_version}

    def install(self, node: Node) -> None:
        """Copies the program or the unpacked package to the node."""
        remote = self.cluster.remote(node)
        if self._is_debian:
            PACKAGES.install(remote)
        else:
            self.artifact.install(remote)

    def fatal_log_patterns(self) -> Sequence[str]:
        """Returns the panics that no fault of a disk explains."""
        return FATAL

    def daemon(self, node: Node) -> Daemon:
        """Returns the one process of a node."""
        members = ",".join(f"{other.name}=http://{other.address}:{PEER_PORT}" for other in self.nodes)
        client, peer = f"http://{node.address}:{PORT}", f"http://{node.address}:{PEER_PORT}"
        program = PACKAGES.path("/usr/bin/etcd") if self._is_debian else f"{self.artifact.there}/{PROGRAM}"
        arguments = [
            program, "--name", node.name, "--data-dir", DATA_DIR,
            "--listen-client-urls", client, "--advertise-client-urls", client,
            "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
            "--initial-cluster", members, "--initial-cluster-state", "new", "--initial-cluster-token", "labrys",
            "--heartbeat-interval", str(self._options.heartbeat_ms), "--election-timeout", str(self._options.election_ms),
            "--logger", "zap", "--log-level", "info",
        ]  # fmt: skip
        return Daemon(
            role=ROLE,
            argv=arguments,
            pattern=rf"^{program} --name",
            ports=(PORT, PEER_PORT),
            data_dir=DATA_DIR,
            log_files=(LOG,),
            environment=PACKAGES.environment if self._is_debian else {},
            log_clock=LogClock(
                path=LOG, pattern=r'\{"level":"\w+","ts":"([^"]+)"', form="%Y-%m-%dT%H:%M:%S.%f%z", resolution_s=0.001
            ),
        )

    def client(self, process: int, node: Node, *, pinned: bool = False) -> EtcdClient:  # noqa: ARG002 - all stay at their node
        """Returns the client of a process."""
        reads = self._options.etcd_reads
        match self.workload:
            case "lock":
                owner = f"{process}/{next(self._clients)}"
                return EtcdLocks(
                    node, owner=owner, lease_s=self.workload_options.lease_s, fencing=self._options.fencing
                )
            case "list-append" | "rw-register":
                return EtcdTransactions(node, reads, self._options.etcd_compares)
        return CLIENTS[self.workload](node, reads)

    async def until_ready(self, nodes: Sequence[Node], timeout_s: float) -> None:
        """Waits until all nodes name one leader in one term, and one of them leads."""
        await wait_until_complete(self, nodes, timeout_s, self._examine, system_name="etcd")

    async def statuses(self, node: Node, timeout_s: float) -> Sequence[NodeStatus]:
        """Returns what a node says in `maintenance/status`, which it answers alone.

        etcd's term is that of the last applied entry. So a new leader says an old term until it has applied its first entry. A
        term in which the node once followed is not the one that it leads in: such a status has no term.
        """
        answer = await self._ask(node, timeout_s, lambda gateway: gateway.call("maintenance/status", {}))
        if answer is None:
            return ()
        member, leader, term = answer.header().number("member_id"), answer.number("leader"), answer.number("raftTerm")
        self._names[member] = node.name
        leads = leader == member
        if not leads:
            self._followed[node.name] = max(term, self._followed.get(node.name, 0))
        known = term > self._followed.get(node.name, 0) if leads else term > 0
        return (
            NodeStatus(
                node=node.name,
                role=LEADER if leads else "follower" if leader else "candidate",
                term=term if known else None,
                leader=self._names.get(leader),
                applied_index=answer.number("raftAppliedIndex"),
                committed_index=answer.number("raftIndex"),
            ),
        )

    async def lead(self, node: Node, timeout_s: float) -> bool:
        """Asks the leader to transfer its leadership to the node, until the node leads."""
        member = next((member for member, name in self._names.items() if name == node.name), None)
        if member is None:
            return False

        async def serving() -> NodeStatus | None:
            return leader_of(await self._statuses(self.nodes))

        async def transfer(leader: NodeStatus, limit_s: float) -> object:
            at = next(candidate for candidate in self.nodes if candidate.name == leader.node)
            request = {"targetID": str(member)}
            return await self._ask(
                at, limit_s, lambda gateway: gateway.call("maintenance/transfer-leadership", request)
            )

        return await move_leadership(node.name, timeout_s, serving=serving, transfer=transfer)

    async def replica(self, node: Node, timeout_s: float) -> ReplicaState | None:
        """Returns all keys of a node, from its own state, with the revision that they belong to."""
        request = {"key": ALL_KEYS, "range_end": ALL_KEYS, "serializable": True}
        answer = await self._ask(node, timeout_s, lambda gateway: gateway.call("kv/range", request))
        if answer is None:
            return None
        try:
            state = {entry.key: [entry.value, entry.modified] for entry in answer.entries()}
        except NoAnswer:
            return None
        return ReplicaState(node=node.name, applied_index=answer.header().number("revision"), state=state)

    async def _statuses(self, nodes: Sequence[Node]) -> list[NodeStatus]:
        by_node = await asyncio.gather(*(self.statuses(node, STATUS_TIMEOUT_S) for node in nodes))
        return [status for some in by_node for status in some]

    async def _examine(self, nodes: Sequence[Node]) -> tuple[Mapping[str, str], Sequence[Node]]:
        statuses = {status.node: status for status in await self._statuses(nodes)}
        silent = [node for node in nodes if node.name not in statuses]
        lacking = {node.name: "does not answer" for node in silent}
        leader = leader_of(statuses.values())
        for status in statuses.values():
            if status.leader is None:
                lacking[status.node] = "knows no leader"
            elif leader is not None and status.leader != leader.node:
                lacking[status.node] = f"follows {status.leader}, and {leader.node} leads"
            elif leader is None or leader.term is None or status.term != leader.term:
                lacking[status.node] = "has not applied an entry of the leader's term"
        return lacking, silent

    async def _ask(self, node: Node, timeout_s: float, question: Callable[[Gateway], Awaitable[T]]) -> T | None:
        """Asks a node over a new connection; returns None if it does not answer in time."""
        return await asked_once(Gateway(node.address), question, timeout_s)
