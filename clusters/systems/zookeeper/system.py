"""ZooKeeper as a system under test: a released version's own server and jars, without any code of Labrys.

Every node serves every request, so the final reads go through each node as it is. ZooKeeper has no request that moves the
leadership.
"""

from __future__ import annotations

import asyncio
import itertools
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

from clusters.kit import jvm
from clusters.kit.answers import NoAnswer, NotSent, RefusedByCode
from clusters.kit.contracts import served
from clusters.kit.zookeepers import LINES, SESSION_TICKS, TELLING, Settings, ZooKeeperServers
from clusters.systems.zookeeper.client import ROOT, Common
from clusters.systems.zookeeper.clients import CLIENTS, ZooKeeperLocks, ZooKeeperTransactions
from clusters.systems.zookeeper.connection import Connection
from clusters.systems.zookeeper.options import ZooKeeperOptions
from clusters.systems.zookeeper.outcomes import ANSWERS
from clusters.systems.zookeeper.promises import promises
from harness.errors import InputError
from harness.service import ReplicaState
from harness.traits import Tier

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from clusters.systems.zookeeper.client import ZooKeeperClient
    from harness.builds import Artifact
    from harness.cluster import Cluster
    from harness.node import Node
    from harness.promise import Promise
    from harness.traits import LogLine

MODULE = Path(__file__).parent / "jars"
LEAST_SESSION_TICKS = 2  # ZooKeeper grants no shorter sessions
JAVA = jvm.java("running ZooKeeper")
MAVEN = jvm.maven("getting ZooKeeper's jars")
OLD = "3.4."  # these releases do not tell the zxid of a creation
DUMPED_AT_ONCE = 200


class ZooKeeperSystem(ZooKeeperServers, jvm.JvmSystem):
    """ZooKeeper on a cluster."""

    name = "zookeeper"
    summary = "ZooKeeper 3.9, a tree of small files on Zab."
    tier = Tier.FINDING
    Options = ZooKeeperOptions
    serves = served(CLIENTS)
    programs = (JAVA, MAVEN)
    fatal = (
        r"Digests are not matching",  # the state of a node differs from the leader's at the same change
        r"Unable to load database on disk",
    )
    log_lines: ClassVar[Mapping[str, LogLine]] = LINES
    answers = ANSWERS
    libraries: ClassVar[Mapping[str, str]] = MappingProxyType({"kazoo": "zookeeper"})
    telling_log_texts = TELLING
    dumps_replicas = True

    def __init__(self, cluster: Cluster, options: ZooKeeperOptions, workload: str) -> None:
        super().__init__(cluster, options, workload)
        self._options = options
        self.settings = Settings(
            tick_ms=options.tick_ms,
            snapshot_count=options.snapshot_count,
            force_sync=options.force_sync,
            trust_empty_snapshot=options.trust_empty_snapshot,
        )
        self._clients = itertools.count(1)

    @classmethod
    def build(cls, options: ZooKeeperOptions, say: Callable[[str], object]) -> Artifact:
        """Gets the released jars of a version with Maven, if the cache does not have them; compiles nothing."""
        return jvm.released_jars("zookeeper", options.zookeeper_version, MODULE, tools=(MAVEN,)).artifact(say)

    @classmethod
    def promises(cls, options: ZooKeeperOptions) -> Mapping[str, Promise]:
        """Returns what ZooKeeper promises to each workload."""
        return promises(options)

    def refuse_options(self) -> None:
        """Refuses locks that ZooKeeper does not have.

        Raises:
            InputError: The workload expects a session that ZooKeeper does not grant, or locks that outlive the session of a
                client.
        """
        if self.workload != "lock":
            return
        if not self.workload_options.sessions:
            raise InputError("ZooKeeper frees the locks of a client when its session ends; leave out --no-sessions")
        least_s, most_s = (ticks * self._options.tick_ms / 1000 for ticks in (LEAST_SESSION_TICKS, SESSION_TICKS))
        if not least_s <= self._lease_s() <= most_s:
            raise InputError(
                f"expected a lease from {least_s:g} to {most_s:g} seconds, as ZooKeeper grants sessions with --tick-ms "
                f"{self._options.tick_ms}, found {self._lease_s():g}"
            )

    def _lease_s(self) -> float:
        """Returns the session of a client, which is the lease of its locks."""
        lease_s = getattr(self.workload_options, "lease_s", None)
        return SESSION_TICKS * self._options.tick_ms / 1000 if lease_s is None else float(lease_s)

    def versions(self) -> Mapping[str, str]:
        """Returns the version of the release."""
        return {"zookeeper": self.artifact.provenance.version}

    def client(self, process: int, node: Node, *, pinned: bool = False) -> ZooKeeperClient:  # noqa: ARG002 - all stay at their node
        """Returns the client of a process."""
        common = Common(
            reads=self._options.zookeeper_reads,
            session_ms=round(self._lease_s() * 1000),
            tells_creations=not self._options.zookeeper_version.startswith(OLD),
        )
        match self.workload:
            case "lock":
                owner = f"{process}/{next(self._clients)}"
                return ZooKeeperLocks(node, common, owner=owner, fencing=self._options.fencing)
            case "list-append" | "rw-register":
                return ZooKeeperTransactions(node, common, checks=self._options.zookeeper_checks)
        return CLIENTS[self.workload](node, common)

    async def replica(self, node: Node, timeout_s: float) -> ReplicaState | None:
        """Returns the znodes of the clients, from the node's own state: value, version, last change, and owner.

        Sessions are changes too, so the nodes' positions differ. Their states are compared at rest.
        """
        from kazoo.protocol.serialization import GetChildren, GetData  # noqa: PLC0415 - an extra

        connection = Connection(node.address, session_ms=SESSION_TICKS * self._options.tick_ms)
        state: dict[str, Any] = {}
        try:
            async with asyncio.timeout(timeout_s):
                paths = [ROOT]
                while paths:
                    some, paths = paths[:DUMPED_AT_ONCE], paths[DUMPED_AT_ONCE:]
                    contents = await connection.calls([GetData(path, False) for path in some])  # noqa: FBT003
                    parents = []
                    for path, seen in zip(some, contents, strict=True):
                        if isinstance(seen, RefusedByCode):
                            continue  # it vanished meanwhile; at rest none does
                        data, stat = seen
                        text = (data or b"").decode(errors="replace")
                        state[path] = [text, stat.version, stat.mzxid, stat.ephemeralOwner]
                        if stat.numChildren:
                            parents.append(path)
                    below = await connection.calls([GetChildren(path, False) for path in parents]) if parents else []  # noqa: FBT003
                    for path, children in zip(parents, below, strict=True):
                        if not isinstance(children, RefusedByCode):
                            paths += [f"{path}/{child}" for child in sorted(children)]
        except (NotSent, NoAnswer, RefusedByCode, TimeoutError):
            return None
        finally:
            await connection.close()
        del state[ROOT]  # reads with --zookeeper-reads quorum write it
        return ReplicaState(node=node.name, applied_index=None, state=state)
