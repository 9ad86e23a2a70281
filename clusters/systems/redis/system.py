"""Redis with sentinels as a system under test: Debian's packages, unpacked and started without a service manager.

Every node runs a server, the first one as the master at the start. The first three nodes run a sentinel each. The sentinels
name another master if the master does not answer them. Servers and sentinels rewrite their own configuration, so Labrys writes
it once in a run.
"""

from __future__ import annotations

import asyncio
import itertools
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

from clusters.kit.answers import NoAnswer, NotSent, Refused
from clusters.kit.contracts import served
from clusters.kit.exchange import asked_once
from clusters.kit.leases import refuse_sessions
from clusters.kit.transactions import LIST_APPEND
from clusters.kit.waiting import wait_until_complete
from clusters.systems.redis.client import (
    CLIENTS,
    LISTS,
    MASTER,
    VALUES,
    Place,
    RedisLocks,
    RedisStreams,
    RedisTransactions,
)
from clusters.systems.redis.connection import PORT, SENTINEL_PORT, Connection
from clusters.systems.redis.options import Asks, QueueBy, RedisOptions
from clusters.systems.redis.outcomes import ANSWERS, REFUSALS
from clusters.systems.redis.promises import ON_DAMAGE, promises
from harness.daemon import Daemon
from harness.packages import DebianPackages
from harness.process_clock import asked
from harness.service import NodeStatus, ReplicaState, Service
from harness.system import System
from harness.traits import Tier

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from clusters.systems.redis.client import RedisClient
    from harness.cluster import Cluster
    from harness.node import Node
    from harness.process_clock import ClockReading
    from harness.promise import Promise

PACKAGES = DebianPackages(
    name="redis", packages=["redis-server", "redis-sentinel", "redis-tools", "libjemalloc2", "liblzf1", "libatomic1"]
)
SERVER = PACKAGES.path("/usr/bin/redis-server")
SENTINEL = PACKAGES.path("/usr/bin/redis-sentinel")
DATA_DIR = "/var/lib/labrys/redis"
LOG_DIR = "/var/log/labrys/redis"
SENTINELS = 3
TIMEOUT_S = 1.0
FATAL = (r"REDIS BUG REPORT START", r"Guru Meditation", r"# === ASSERTION FAILED ===")
TELLING = (
    "MASTER MODE enabled",
    "Before turning into a replica",
    "+switch-master",
    "+sdown master",
    "+odown master",
    "+failover-state",
    "+elected-leader",
    "+convert-to-slave",
    "-failover-abort",
    "Full resync",
    "Discarding previously cached master state",
)


class RedisSystem(System):
    """Servers and sentinels on a cluster."""

    name = "redis"
    summary = "Redis 7.0 with asynchronous replication and three sentinels."
    tier = Tier.CONTROL
    Options = RedisOptions
    serves = served(CLIENTS)
    answers = ANSWERS
    refusals = REFUSALS
    on_damage = ON_DAMAGE
    libraries: ClassVar[Mapping[str, str]] = MappingProxyType({"redis": "redis"})
    telling_log_texts = TELLING
    faketime = False  # with libfaketime 0.9.10, Redis of Debian 12 never gets ready

    def __init__(self, cluster: Cluster, options: RedisOptions, workload: str) -> None:
        super().__init__(cluster, options, workload)
        nodes = list(cluster.nodes)
        self._redis = Servers(self, options)
        self._services = (self._redis, Sentinels(self, options, nodes[:SENTINELS]))
        self._options = options
        self._clients = itertools.count(1)

    def services(self) -> Sequence[Service]:
        """Returns the servers on all nodes, and the sentinels on the first three."""
        return self._services

    @classmethod
    def promises(cls, options: RedisOptions) -> Mapping[str, Promise]:
        """Returns what Redis promises to each workload."""
        return promises(options)

    def refuse_options(self) -> None:
        """Refuses locks that end with the connection of their client: Redis frees them by their lease only.

        Raises:
            InputError: The workload has such locks.
        """
        refuse_sessions(self, "Redis")

    def versions(self) -> Mapping[str, str]:
        """Returns the version of Debian's package."""
        return {"redis": PACKAGES.versions()["redis-server"]}

    def install(self, node: Node) -> None:
        """Copies the unpacked packages to the node."""
        PACKAGES.install(self.cluster.remote(node))

    def fatal_log_patterns(self) -> Sequence[str]:
        """Returns the beginnings of Redis' reports about its own crashes."""
        return FATAL

    def client(self, process: int, node: Node, *, pinned: bool = False) -> RedisClient:
        """Returns the client of a process."""
        follows = not pinned and self._options.asks is Asks.MASTER
        where = Place(
            node=node,
            nodes=self._redis.nodes,
            sentinels=self._services[1].nodes if follows else (),
            acknowledge=self._options.replicas_acknowledge,
        )
        owner = f"{process}/{next(self._clients)}"
        match self.workload:
            case "lock":
                return RedisLocks(
                    where, owner=owner, lease_s=self.workload_options.lease_s, fencing=self._options.fencing
                )
            case "list-append" | "rw-register":
                commands = LISTS if self.workload == LIST_APPEND else VALUES
                return RedisTransactions(where, by=self._options.transactions_by, commands=commands)
            case "queue" if self._options.queue_by is QueueBy.STREAM:
                return RedisStreams(where, owner=owner)
        return CLIENTS[self.workload](where)

    async def named_masters(self) -> Collection[str | None]:
        """Returns the nodes that sentinels name as the master, with None for a foreign address; empty if none answers."""
        sentinels = self._services[1]
        views = await asyncio.gather(*(sentinels.master(node, TIMEOUT_S) for node in sentinels.nodes))
        return {self.name_at(view.get("ip")) for view in views if view is not None}

    def name_at(self, address: Any) -> str | None:
        """Returns the name of the node with an address; None if no node has it."""
        return next((node.name for node in self.cluster.nodes if node.address == address), None)


class Servers(Service):
    """The servers. A master has the role `leader`, and a replica the role `follower`. Redis has no terms."""

    role = "redis"
    dumps_replicas = True
    reads_own_state = True

    def __init__(self, system: RedisSystem, options: RedisOptions) -> None:
        super().__init__(system)
        self._redis = system
        self._options = options

    def daemon(self, node: Node) -> Daemon:  # noqa: ARG002 - the same on every node
        """Returns the server of a node."""
        return Daemon(
            role=self.role,
            argv=[SERVER, f"{DATA_DIR}/redis.conf"],
            pattern=rf"^{SERVER} ",
            ports=(PORT,),
            data_dir=DATA_DIR,
            log_files=(f"{LOG_DIR}/redis.log",),
            environment=PACKAGES.environment,
        )

    def initialise(self, node: Node) -> None:
        """Writes the configuration, which the server rewrites when it gets another master."""
        first = self.nodes[0]
        lines = [
            f"port {PORT}", f"bind {node.address} 127.0.0.1", "protected-mode no", f"dir {DATA_DIR}",
            "appendonly yes", f"appendfsync {self._options.fsync}", 'save ""', f"replica-announce-ip {node.address}",
            f"min-replicas-to-write {self._options.min_replicas}", "min-replicas-max-lag 2",
            "repl-diskless-sync-delay 0", "repl-timeout 5", "repl-ping-replica-period 1",
        ]  # fmt: skip
        if node != first:
            lines.append(f"replicaof {first.address} {PORT}")
        remote = self.system.cluster.remote(node)
        remote.run(f"mkdir -p {DATA_DIR}")
        remote.write(f"{DATA_DIR}/redis.conf", "\n".join(lines) + "\n")

    async def until_ready(self, nodes: Sequence[Node], timeout_s: float) -> None:
        """Waits until each server answers and, if sentinels run, has the changes of the master that they name."""

        async def examine(asked: Sequence[Node]) -> tuple[Mapping[str, str], Sequence[Node]]:
            return await self._examine(asked, await self._redis.named_masters())

        await wait_until_complete(self, nodes, timeout_s, examine, system_name="Redis")

    async def complete(self, timeout_s: float) -> None:
        """Waits until each replica has the changes of its master, before the sentinels start.

        A sentinel asks the master for its replicas at its start, and then only every 10 s.
        """
        examine = partial(self._examine, named={self.nodes[0].name})
        await wait_until_complete(self, self.nodes, timeout_s, examine, system_name="Redis")

    async def _examine(
        self, asked: Sequence[Node], named: Collection[str | None]
    ) -> tuple[Mapping[str, str], Sequence[Node]]:
        """Returns what each server lacks, and those that do not answer; see `wait_until_complete`.

        Args:
            asked: The nodes that have to be ready.
            named: The masters that sentinels name. If empty, a server only has to answer.
        """
        statuses = [
            status
            for of_node in await asyncio.gather(*(self.statuses(node, TIMEOUT_S) for node in self.nodes))
            for status in of_node
        ]
        answering = {status.node for status in statuses}
        silent = [node for node in asked if node.name not in answering]
        lacking = {node.name: "does not answer" for node in silent}
        if named:
            behind = lag(statuses, named)
            lacking |= {node.name: behind[node.name] for node in asked if node.name in behind}
        return lacking, silent

    async def statuses(self, node: Node, timeout_s: float) -> Sequence[NodeStatus]:
        """Returns what a server says in ROLE: its role, its master or its replicas, and its offset in their stream."""
        match await answer_of(node, PORT, timeout_s, "ROLE"):
            case ["master", int(offset), [*replicas]]:
                names = [self._redis.name_at(address) for address, *_ in replicas]
                return (
                    NodeStatus(
                        node=node.name,
                        role="leader",
                        leader=node.name,
                        applied_index=offset,
                        details={"replicas": [name for name in names if name is not None]},
                    ),
                )
            case ["slave", str(address), _, str(state), int(offset)]:
                master = self._redis.name_at(address)
                return (
                    NodeStatus(
                        node=node.name,
                        role="follower",
                        leader=master,
                        applied_index=offset if offset >= 0 else None,
                        details={"link": state},
                    ),
                )
        return ()

    async def clock(self, node: Node, timeout_s: float) -> ClockReading | None:
        """Asks a server for its time."""

        async def ask() -> float | None:
            match await answer_of(node, PORT, timeout_s, "TIME"):
                case [str(seconds), str(micros)] if seconds.isdecimal() and micros.isdecimal():
                    return int(seconds) + int(micros) / 1e6
            return None

        return await asked(ask, source="its answer to TIME", resolution_s=1e-6)

    async def replica(self, node: Node, timeout_s: float) -> ReplicaState | None:
        """Returns all keys of a server with their values. Servers share no position, so their states are compared at rest."""
        connection = Connection(node.address)
        try:
            async with asyncio.timeout(timeout_s):
                state: dict[str, Any] = {}
                for key in sorted(await connection.call("KEYS", "*")):
                    kind = await connection.call("TYPE", key)
                    if kind not in DUMPS:
                        continue  # it vanished meanwhile; at rest none does
                    command, *rest = DUMPS[kind]
                    value = await connection.call(command, key, *rest)
                    state[key] = sorted(value) if kind == "set" else value
        except (NotSent, NoAnswer, Refused, TimeoutError):
            return None
        finally:
            await connection.close()
        return ReplicaState(node=node.name, applied_index=None, state=state)


def listed(master: NodeStatus) -> Collection[str]:
    """Returns the nodes of the replicas to which a master sends its changes, as it says."""
    names = (master.details or {}).get("replicas")
    return [str(name) for name in names] if isinstance(names, list) else ()


def lag(statuses: Sequence[NodeStatus], named: Collection[str | None]) -> Mapping[str, str]:
    """Returns why servers may lack changes of the one master that the sentinels name, as a clause for each node.

    A master and a replica can each take their connection for alive after the other one has dropped it, if resets are lost. So
    both are asked: a master lists the replicas to which it sends its changes.

    Args:
        statuses: What the servers that answer say of themselves.
        named: The masters that sentinels name.
    """
    masters = [status for status in statuses if status.role == "leader"]
    newest = max((status.applied_index or 0 for status in masters), default=0)
    lacking = {}
    for status in statuses:
        details = status.details or {}
        offset = status.applied_index or 0
        if {status.node} == set(named):
            if status.role != "leader":
                lacking[status.node] = "is no master, though the sentinels name it"
        elif status.role == "leader":
            lacking[status.node] = f"is a master, and the sentinels name {', '.join(sorted(map(str, named)))}"
        elif details.get("link") != "connected":
            lacking[status.node] = "is a replica that is not connected to its master"
        elif not any(master.node == status.leader and status.node in listed(master) for master in masters):
            lacking[status.node] = f"is a replica that {status.leader} does not list"
        elif offset < newest:
            lacking[status.node] = f"is a replica with {offset:,} of {newest:,} bytes of changes"
    return lacking


# The command that reads a whole value of a type.
DUMPS: Mapping[str, Sequence[str]] = {
    "string": ["GET"],
    "set": ["SMEMBERS"],
    "list": ["LRANGE", "0", "-1"],
    "stream": ["XRANGE", "-", "+"],
}


class Sentinels(Service):
    """The sentinels. None of them leads: they elect a leader for one failover."""

    role = "sentinel"
    serves_clients = False

    def __init__(self, system: RedisSystem, options: RedisOptions, nodes: Sequence[Node]) -> None:
        super().__init__(system, nodes)
        self._redis = system
        self._options = options

    def daemon(self, node: Node) -> Daemon:  # noqa: ARG002 - the same on every node
        """Returns the sentinel of a node."""
        return Daemon(
            role=self.role,
            argv=[SENTINEL, f"{DATA_DIR}-sentinel/sentinel.conf"],
            pattern=rf"^{SENTINEL} ",
            ports=(SENTINEL_PORT,),
            data_dir=f"{DATA_DIR}-sentinel",
            log_files=(f"{LOG_DIR}/sentinel.log",),
            environment=PACKAGES.environment,
        )

    def initialise(self, node: Node) -> None:
        """Writes the configuration, in which the sentinel keeps its votes and the master."""
        master = self.system.front().nodes[0]
        quorum = len(self.nodes) // 2 + 1
        lines = [
            f"port {SENTINEL_PORT}", f"bind {node.address} 127.0.0.1", "protected-mode no", f"dir {DATA_DIR}-sentinel",
            f"sentinel announce-ip {node.address}",
            f"sentinel monitor {MASTER} {master.address} {PORT} {quorum}",
            f"sentinel down-after-milliseconds {MASTER} {self._options.down_after_ms}",
            f"sentinel failover-timeout {MASTER} {self._options.failover_ms}",
            f"sentinel parallel-syncs {MASTER} 1",
        ]  # fmt: skip
        remote = self.system.cluster.remote(node)
        remote.run(f"mkdir -p {DATA_DIR}-sentinel")
        remote.write(f"{DATA_DIR}-sentinel/sentinel.conf", "\n".join(lines) + "\n")

    async def until_ready(self, nodes: Sequence[Node], timeout_s: float) -> None:
        """Waits until the sentinels know each other, all replicas, and a master that answers them."""
        await wait_until_complete(self, nodes, timeout_s, self._examine, system_name="Redis")

    async def statuses(self, node: Node, timeout_s: float) -> Sequence[NodeStatus]:
        """Returns the master that a sentinel names, and the epoch of its configuration as the term."""
        master = await self.master(node, timeout_s)
        if master is None:
            return ()
        epoch = master.get("config-epoch", "")
        details = {"master": self._redis.name_at(master.get("ip")), "flags": master.get("flags")}
        return (
            NodeStatus(
                node=node.name, role="sentinel", term=int(epoch) if epoch.isdecimal() else None, details=details
            ),
        )

    async def master(self, node: Node, timeout_s: float) -> Mapping[str, str] | None:
        """Returns what a sentinel says of the master; None if it does not answer in time."""
        answer = await answer_of(node, SENTINEL_PORT, timeout_s, "SENTINEL", "MASTER", MASTER)
        if not isinstance(answer, list) or len(answer) % 2:
            return None
        return {str(name): str(value) for name, value in zip(answer[::2], answer[1::2], strict=True)}

    async def _examine(self, nodes: Sequence[Node]) -> tuple[Mapping[str, str], Sequence[Node]]:
        views = await asyncio.gather(*(self.master(node, TIMEOUT_S) for node in nodes))
        silent = [node for node, view in zip(nodes, views, strict=True) if view is None]
        lacking = {node.name: "has a sentinel that does not answer" for node in silent}
        for node, view in zip(nodes, views, strict=True):
            if view is None:
                continue
            if view.get("flags") != "master":
                lacking[node.name] = f"has a sentinel that sees the master as {view.get('flags')}"
            elif view.get("num-other-sentinels") != str(len(self.nodes) - 1):
                lacking[node.name] = f"has a sentinel that knows {view.get('num-other-sentinels')} other sentinels"
            elif view.get("num-slaves") != str(len(self.system.front().nodes) - 1):
                lacking[node.name] = f"has a sentinel that knows {view.get('num-slaves')} replicas"
        return lacking, silent


async def answer_of(node: Node, port: int, timeout_s: float, *words: str) -> Any:
    """Sends one command over a new connection; returns its answer, or None without one in time."""
    return await asked_once(Connection(node.address, port), lambda asked: asked.call(*words), timeout_s)
