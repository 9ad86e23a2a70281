"""RocketMQ's controllers as a system under test, on either consensus library.

A controller elects the master of each group of brokers. A node runs the release's own controller class and jars, with a
configuration file. Clients use RocketMQ's remoting protocol.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, ClassVar, Final

from clusters.kit import jvm
from clusters.kit.answers import NoAnswer, NotSent
from clusters.kit.contracts import served
from clusters.systems.rocketmq import controllers, jraft, mends, settings
from clusters.systems.rocketmq.client import CLIENTS, SplitClient
from clusters.systems.rocketmq.controllers import GROUP, JRAFT_PORT, ControllerProcesses
from clusters.systems.rocketmq.options import ControllerOptions
from clusters.systems.rocketmq.outcomes import REFUSALS
from clusters.systems.rocketmq.promises import of_controllers
from harness.traits import Tier

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from clusters.systems.rocketmq.client import ControllerClient
    from harness.builds import Artifact
    from harness.cluster import Cluster
    from harness.daemon import Daemon
    from harness.node import Node
    from harness.promise import Promise
    from harness.service import NodeStatus
    from harness.traits import LogLine

ONE_LEADER: Final = "A term of the controllers has one leader; Labrys asks for the term before and after the role."


class RocketMQController(jvm.LedJvmSystem):
    """Controllers of RocketMQ, on a cluster.

    Attributes:
        processes: The controllers of the nodes.
        controllers: Their addresses.
    """

    name = "rocketmq-controller"
    summary = "The controllers of RocketMQ 5, which elect the master of each broker group."
    tier = Tier.FINDING
    Options = ControllerOptions
    simulator_class = "clusters.systems.rocketmq.simulated:SimRocketMQController"
    serves = served(CLIENTS)
    software = "RocketMQ's controller"
    programs = (settings.JAVA, settings.MAVEN)
    fatal = controllers.FATAL
    role = controllers.ROLE
    log_lines: ClassVar[Mapping[str, LogLine]] = controllers.LINES
    telling_log_texts = controllers.TELLING
    refusals = REFUSALS
    every_node_returns = (
        "A controller is a member of a Raft group, and a follower gets from the leader what its log lacks."
    )

    def __init__(self, cluster: Cluster, options: ControllerOptions, workload: str) -> None:
        super().__init__(cluster, options, workload)
        self._options = options
        self.processes = ControllerProcesses(cluster.nodes, options)
        self.controllers = self.processes.controllers
        if self.processes.is_dledger:  # on jraft, no controller tells a term
            self.one_leader_per_term = ONE_LEADER

    @classmethod
    def promises(cls, options: ControllerOptions) -> Mapping[str, Promise]:  # noqa: ARG003 - they change no promise
        """Returns what the controllers promise to each workload."""
        return of_controllers()

    @classmethod
    def build(cls, options: ControllerOptions, say: Callable[[str], object]) -> Artifact:
        """Gets the released jars of a version with Maven, if the cache does not have them, and mends them."""
        released = settings.jars(options.rocketmq_version, say)
        numbers = mends.CONTROLLER.chosen(options.mend)
        return mends.CONTROLLER.mended(released, None, numbers, say) if numbers else released

    def versions(self) -> Mapping[str, str]:
        """Returns the versions of the release and of its consensus library."""
        return self.processes.versions(self.artifact)

    def daemon(self, node: Node) -> Daemon:
        """Returns the one process of a node."""
        return self.processes.daemon(node, self.artifact.there)

    async def lacking(self, statuses: Mapping[str, NodeStatus | None]) -> Mapping[str, str]:
        """Returns what each controller lacks: the leader that all name, and that serves."""
        return await self.processes.lacking(statuses)

    def client(self, process: int, node: Node, *, pinned: bool = False) -> ControllerClient | SplitClient:
        """Returns the client of a process."""

        def make(*, follows: bool) -> ControllerClient:
            return CLIENTS[self.workload](controllers=self.controllers, node=node, follows=follows)

        if self._options.pinned_reads and not pinned:
            return SplitClient(reader=make(follows=False), other=make(follows=True))
        return make(follows=not pinned and self._options.routing.follows(process, len(self.controllers.nodes)))

    async def statuses(self, node: Node, timeout_s: float) -> Sequence[NodeStatus]:
        """Returns a controller's status (request 1005); none if it does not answer in time. On jraft, the term is None."""
        status = await self.processes.status(node, timeout_s)
        return () if status is None else (status,)

    async def transfer(self, leader: Node, term: int | None, to: Node, limit_s: float) -> None:
        """Requests a transfer with the library's own request."""
        if self.processes.is_dledger:
            if term is not None:
                await self.processes.ask(
                    leader, limit_s, lambda connection: self.processes.peer(connection, leader).transfer(to.name, term)
                )
            return
        with contextlib.suppress(NotSent, NoAnswer):
            await jraft.transfer(
                leader.address, JRAFT_PORT, group=GROUP, to=f"{to.address}:{JRAFT_PORT}", timeout_s=limit_s
            )

    async def is_serving(self, status: NodeStatus) -> bool:
        """Returns whether a controller answers a read that only a leader answers."""
        return await self.processes.is_serving(status)
