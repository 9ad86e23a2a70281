"""Nacos as a system under test: the naming service of a released version, without any code of Labrys.

0.8.0 is the newest release whose server is in the registries of Maven. Its Raft is Nacos' own: it has no log, and replicates
whole values. Every node answers reads from its own state, and passes writes on to the leader.
"""

from __future__ import annotations

import re
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

from clusters.kit import jvm
from clusters.kit.contracts import served
from clusters.kit.exchange import asked_once
from clusters.systems.nacos.client import CLIENTS, PREFIX
from clusters.systems.nacos.naming import PORT, Naming
from clusters.systems.nacos.options import Asks, NacosOptions
from clusters.systems.nacos.promises import promises
from harness.daemon import Daemon
from harness.errors import InputError
from harness.leaders import LEADER
from harness.process_clock import LogClock
from harness.service import NodeStatus, ReplicaState
from harness.traits import LogLine, Tier

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from clusters.systems.nacos.client import NacosRegisters
    from harness.builds import Artifact
    from harness.cluster import Cluster
    from harness.node import Node
    from harness.promise import Promise

VERSION = "0.8.0"
MODULE = Path(__file__).parent / "jars"
ROLE = "nacos"
CLASS = "com.alibaba.nacos.naming.NamingApp"
DATA_DIR = "/var/lib/labrys/nacos"
LOG_DIR = "/var/log/labrys/nacos"
LOG = f"{LOG_DIR}/nacos.log"
RAFT_LOG = f"{LOG_DIR}/nacos/logs/naming-raft.log"
JVM_FLAGS = (
    *jvm.JVM_FLAGS,
    "-Xms64m",
    "-Xmx160m",
    "-XX:ActiveProcessorCount=2",
    "--add-opens=java.base/java.lang=ALL-UNNAMED",
    "-Djava.security.egd=file:/dev/./urandom",
)
JAVA = jvm.java("running Nacos")
MAVEN = jvm.maven("getting Nacos' jars")
TELLING = (
    "has become the LEADER",
    "leader timeout, start voting",
    " as leader, term: ",
    "received illegitimate vote",
    "no leader is available",
    "data publish failed",
    "out of date",
    "tried to publish data but wasn't leader",
)
LINES = MappingProxyType(
    {
        "elected": LogLine(
            path=RAFT_LOG, pattern="has become the LEADER", meaning="a node sees that a leader is elected"
        ),
        "leads": LogLine(
            path=RAFT_LOG,
            pattern="has become the LEADER$",  # the line of a follower goes on with what it and the leader are
            meaning="a node is elected",
        ),
        "votes": LogLine(path=RAFT_LOG, pattern="leader timeout, start voting", meaning="a node starts an election"),
    }
)


class NacosSystem(jvm.JvmSystem):
    """Nacos' naming service on a cluster."""

    name = "nacos"
    summary = "Nacos 0.8.0: its naming service, with persistent instances on a Raft of its own."
    tier = Tier.FINDING
    Options = NacosOptions
    software = "Nacos"
    programs = (JAVA, MAVEN)
    role = ROLE
    serves = served(CLIENTS)
    libraries: ClassVar[Mapping[str, str]] = MappingProxyType({"aiohttp": "nacos"})
    log_lines: ClassVar[Mapping[str, LogLine]] = LINES
    telling_log_texts = TELLING
    fatal = (r"Nacos failed to start",)
    ready_timeout_s = 120.0  # an election begins only 15 to 20 s after the start
    dumps_replicas = True
    quiet_s = 2.0  # a follower has a write a moment after the leader

    def __init__(self, cluster: Cluster, options: NacosOptions, workload: str) -> None:
        super().__init__(cluster, options, workload)
        self._options = options

    @classmethod
    def build(cls, options: Any, say: Callable[[str], object]) -> Artifact:  # noqa: ARG003 - no option changes the build
        """Gets the released jars with Maven, if the cache does not have them; compiles nothing."""
        return jvm.released_jars("nacos", VERSION, MODULE, tools=(MAVEN,)).artifact(say)

    @classmethod
    def promises(cls, options: NacosOptions) -> Mapping[str, Promise]:
        """Returns what Nacos promises to each workload."""
        return promises(options)

    def refuse_options(self) -> None:
        """Refuses compare-and-sets, which Nacos does not have.

        Raises:
            InputError: The mix of the workload has some.
        """
        if self.workload_options.parts[2]:
            raise InputError("Nacos has no compare-and-set; give --mix 2:1:0, or another mix that ends with 0")

    def versions(self) -> Mapping[str, str]:
        """Returns the version of the release."""
        return {"nacos": self.artifact.provenance.version}

    def daemon(self, node: Node) -> Daemon:
        """Returns the one process of a node."""
        arguments = [
            "java", *JVM_FLAGS, f"-Duser.home={LOG_DIR}", f"-Djava.io.tmpdir={LOG_DIR}", f"-Dnacos.home={DATA_DIR}",
            f"-Dnacos.server.ip={node.address}", "-cp", f"{self.artifact.there}/*", CLASS,
            f"--server.port={PORT}", "--server.servlet.context-path=/nacos",
        ]  # fmt: skip
        members = "".join(f"{other.address}:{PORT}\n" for other in self.nodes)
        return Daemon(
            role=ROLE,
            argv=arguments,
            pattern=rf"^java .*{re.escape(CLASS)}",
            ports=(PORT,),
            data_dir=DATA_DIR,
            log_files=(LOG, RAFT_LOG),
            config_files={f"{DATA_DIR}/conf/cluster.conf": members},
            java_packages=("com.alibaba.nacos", "com.alipay.sofa.jraft"),
            log_clock=LogClock(
                path=RAFT_LOG,
                pattern=r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}) ",
                form="%Y-%m-%d %H:%M:%S,%f",
                resolution_s=0.001,
            ),
        )

    def client(self, process: int, node: Node, *, pinned: bool = False) -> NacosRegisters:  # noqa: ARG002 - all are alike
        """Returns the client of a process."""
        return CLIENTS[self.workload](
            node=node,
            nodes=self.nodes,
            follows=not pinned and self._options.nacos_asks is Asks.LEADER,
            pinned=pinned,
            writes=self._options.nacos_writes,
        )

    async def statuses(self, node: Node, timeout_s: float) -> Sequence[NodeStatus]:
        """Returns what a node says about itself, and the leader that it sees.

        Nacos' term is no term of Raft: a leader adds 100 to it with each change of a service. So a status has none.
        """
        peers = await asked_once(Naming(node.address), Naming.peers, timeout_s) or ()
        names = {other.address: other.name for other in self.nodes}
        own = next((peer for peer in peers if peer.address == node.address), None)
        if own is None:
            return ()
        leading = node.address if own.role == LEADER else next((p.address for p in peers if p.role == LEADER), None)
        leader = None if leading is None else names.get(leading)
        return (NodeStatus(node=node.name, role=own.role, leader=leader, details={"term": own.term}),)

    async def lacking(self, statuses: Mapping[str, NodeStatus | None]) -> Mapping[str, str]:
        """Returns what each node lacks: the same leader as the others, which leads."""
        leading = {status.node for status in statuses.values() if status is not None and status.role == LEADER}
        missing = {name: "does not answer" for name, status in statuses.items() if status is None}
        return missing | {
            name: f"names {status.leader or 'no leader'}, and {' and '.join(sorted(leading)) or 'nobody'} leads"
            for name, status in statuses.items()
            if status is not None and {status.leader} != leading
        }

    async def replica(self, node: Node, timeout_s: float) -> ReplicaState | None:
        """Returns the value of each service in the node's Raft, with the number of its changes.

        Services share no position, so the states of the nodes are compared at rest.
        """

        async def stored(naming: Naming) -> ReplicaState:
            services = [name for name in await naming.services() if name.startswith(PREFIX)]
            state = {name: list(await naming.stored(name)) for name in services}
            return ReplicaState(node=node.name, applied_index=None, state=state)

        return await asked_once(Naming(node.address), stored, timeout_s)
