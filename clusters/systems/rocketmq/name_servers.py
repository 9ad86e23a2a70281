"""The name servers, which tell clients the addresses of brokers: one on each of the first two nodes.

Brokers tell every name server of themselves. Name servers know nothing of each other, so none of them leads.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from clusters.kit import jvm
from clusters.kit.exchange import asked_once
from clusters.kit.waiting import wait_until_complete
from clusters.systems.dledger.remoting import Connection
from clusters.systems.rocketmq import settings
from clusters.systems.rocketmq.broker_requests import NAME_SERVER_PORT, master_of
from harness.service import Service
from harness.slowness import slowed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness.daemon import Daemon
    from harness.node import Node
    from harness.system import System

ROLE: Final = "namesrv"
CLASS: Final = "org.apache.rocketmq.namesrv.NamesrvStartup"
MEMORY: Final = ("-Xmx96m", "-XX:MaxMetaspaceSize=96m")
CLUSTER_INFO: Final = 106


async def connect(node: Node, timeout_s: float) -> Connection:
    """Connects to the name server of a node.

    Raises:
        NotSent: It cannot be reached.
    """
    return await Connection.open(node.address, NAME_SERVER_PORT, timeout_s)


class NameServers(Service):
    """The name servers."""

    role = ROLE
    serves_clients = False

    def __init__(self, system: System, nodes: Sequence[Node]) -> None:
        super().__init__(system, nodes)

    def daemon(self, node: Node) -> Daemon:  # noqa: ARG002 - the same on every node
        """Returns the name server of a node."""
        folder = self.system.artifact.there
        lines = {"listenPort": NAME_SERVER_PORT}
        logs = ("namesrv", "namesrv_default")
        return settings.daemon(ROLE, CLASS, folder, lines, ports=(NAME_SERVER_PORT,), logs=logs, memory=MEMORY)

    async def until_ready(self, nodes: Sequence[Node], timeout_s: float) -> None:
        """Waits until each name server answers."""
        await wait_until_complete(self, nodes, timeout_s, self._examine, system_name="RocketMQ's name servers")

    async def without_master(self, topic: str, master: str) -> str:
        """Returns which name server does not give clients this master for a topic; empty if all do."""
        limit_s = slowed(jvm.STATUS_TIMEOUT_S)
        for node in self.nodes:
            named = await asked_once(connect(node, limit_s), lambda asked: master_of(asked, topic), limit_s)
            if named != master:
                return f"the name server of {node.name} names {named or 'no master'}"
        return ""

    async def _examine(self, nodes: Sequence[Node]) -> tuple[Mapping[str, str], Sequence[Node]]:
        async def answers(node: Node) -> object:
            limit_s = slowed(jvm.STATUS_TIMEOUT_S)
            return await asked_once(
                connect(node, limit_s), lambda asked: asked.call(CLUSTER_INFO, None, extension={}), limit_s
            )

        answered = await asyncio.gather(*map(answers, nodes))
        silent = [node for node, answer in zip(nodes, answered, strict=True) if answer is None]
        return {node.name: "has a name server that does not answer" for node in silent}, silent
