"""The brokers of RocketMQ whose commit log is a DLedger group, which clients use: the leader of the group is the master.

RocketMQ has this mode beside controller mode. There are no controllers. Each broker has a DLedger server on a port of its own,
with the old library 0.3.1.2 in RocketMQ 5.3.3. The term is that of the group.

A broker becomes the master after its DLedger server has become the leader: once its whole log is committed, and consumers can
get it. Until then, it refuses messages as a slave does.

Source: RocketMQ 5.3.3, `DLedgerCommitLog`, `DLedgerRoleChangeHandler` and `BrokerStartup`.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from clusters.kit.exchange import asked_once
from clusters.systems.dledger.members import Members
from clusters.systems.dledger.protocol import Peer
from clusters.systems.dledger.remoting import Connection
from clusters.systems.rocketmq import broker_requests, brokers, controllers
from clusters.systems.rocketmq.broker_requests import BROKER, FAST_PORT, PORT, LogState
from harness.leaders import LEADER
from harness.service import NodeStatus

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clusters.systems.rocketmq.system import RocketMQSystem
    from harness.node import Node

DLEDGER_PORT: Final = 40911


class DLedgerBrokers(brokers.BrokerGroup):
    """The brokers with a commit log on DLedger."""

    one_leader_per_term = (
        "DLedger implements Raft, which has at most one leader in a term; Labrys asks a broker for its term before and after "
        "it asks for the leader."
    )

    def __init__(self, system: RocketMQSystem, nodes: Sequence[Node]) -> None:
        super().__init__(system, nodes)
        self._members = Members(nodes, port=DLEDGER_PORT, system="RocketMQ", numbered=True)

    def ports(self) -> Sequence[int]:
        """Returns the ports for clients and for DLedger."""
        return PORT, FAST_PORT, DLEDGER_PORT

    def replication_settings(self, node: Node) -> Mapping[str, object]:
        """Returns the settings of the DLedger group."""
        return {
            "enableDLegerCommitLog": "true",  # RocketMQ spells it so
            "dLegerGroup": BROKER,
            "dLegerPeers": self._members.text,
            "dLegerSelfId": self._members.id_of(node.name),
        }

    async def log_state(self, connection: Connection) -> LogState:
        """Returns the end of what is committed. A broker in this mode tells no epochs."""
        return LogState(end=await broker_requests.commit_log_end(connection))

    async def has_all(self, node: Node) -> bool:  # noqa: ARG002 - the same for each
        """Returns True: at rest, each member of the group has the whole log."""
        return True

    async def statuses(self, node: Node, timeout_s: float) -> Sequence[NodeStatus]:
        """Returns the term of a broker, whom its DLedger server takes for the leader, and the end of what is committed.

        `master` in the details says whether the broker acts as the master.
        """

        async def of_group(connection: Connection) -> tuple[int, str | None, int]:
            peer = Peer(connection, group=BROKER, node=node.name, members=self._members)
            return await peer.term(), await peer.leader(), await peer.term()

        async def of_broker(connection: Connection) -> tuple[int, bool]:
            return await broker_requests.commit_log_end(connection), await broker_requests.is_master(connection)

        group, broker = await asyncio.gather(
            asked_once(_connect(node, timeout_s), of_group, timeout_s),
            asked_once(brokers.connect(node, timeout_s), of_broker, timeout_s),
        )
        if group is None:
            return ()
        before, leader, term = group
        role = "candidate" if leader is None or before != term else LEADER if leader == node.name else "follower"
        end, is_master = (None, None) if broker is None else broker
        return (
            NodeStatus(
                node=node.name,
                role=role,
                term=term,
                leader=leader,
                applied_index=end,
                details={"master": is_master},
            ),
        )

    async def lacking(self, statuses: Mapping[str, NodeStatus | None]) -> Mapping[str, str]:
        """Returns what each broker lacks: the one leader of the group, which acts as the master."""
        missing = controllers.lacking(statuses)
        for name, status in statuses.items():
            if name in missing or status is None:
                continue
            acts = (status.details or {}).get("master")
            if acts is None:
                missing[name] = "has a broker that does not answer"
            elif acts != (status.role == LEADER):
                missing[name] = "is a master that does not lead" if acts else "leads, but is not the master yet"
        return missing


async def _connect(node: Node, timeout_s: float) -> Connection:
    return await Connection.open(node.address, DLEDGER_PORT, timeout_s)
