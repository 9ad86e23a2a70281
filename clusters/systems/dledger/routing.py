"""The node that a DLedger client contacts: always its own node, or the leader.

A pinned client never leaves its node. So a deposed leader still gets requests, and its mistakes show. A following client goes
to the leader that an answer names. Both pause after a refusal. A refusal takes less than a millisecond, so retries without a
pause would use up the processor.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from clusters.kit.answers import PAUSE_S, no_answer
from clusters.kit.dledger_protocol import SUCCESS, Peer
from clusters.kit.remoting import HEADER_OK, Connection, NotSent, RemotingError
from clusters.systems.dledger import outcomes
from harness.op import Fail, Info

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from clusters.kit.members import Members
    from clusters.kit.remoting import Answer
    from harness.node import Node
    from harness.op import Value

CONNECT_TIMEOUT_S = 2.0
NOT_SERVING = frozenset({outcomes.NOT_LEADER, outcomes.LEADER_NOT_READY, outcomes.TERM_NOT_READY})


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The group that a client talks to.

    Attributes:
        name: The name of the Raft group.
        nodes: Its nodes.
        port: The port of each node.
        members: The ids of the nodes as members.
        open: Opens a connection to a host and a port, with a time limit in seconds.
    """

    name: str
    nodes: Sequence[Node]
    port: int
    members: Members
    open: Callable[[str, int, float], Awaitable[Connection]] = Connection.open

    async def connect(self, node: Node, timeout_s: float = CONNECT_TIMEOUT_S) -> Peer:
        """Connects to a node.

        Raises:
            NotSent: The node cannot be reached.
        """
        connection = await self.open(node.address, self.port, timeout_s)
        return Peer(connection, group=self.name, node=node.name, members=self.members)


class Seat:
    """The connection of a client, which moves to other nodes if the client follows leaders.

    Attributes:
        node: The client's own node. A pinned client stays there.
    """

    def __init__(self, *, group: Group, node: Node, follows: bool) -> None:
        self.node = node
        self._group = group
        self._follows = follows
        self._at = node
        self._peer: Peer | None = None

    @property
    def via(self) -> str | None:
        """Returns the node of the next request; None if the client is pinned."""
        return self._at.name if self._follows else None

    async def ask(
        self, question: Callable[[Peer], Awaitable[Answer]], *, is_read: bool, timeout_s: float | None = None
    ) -> Answer | Fail | Info:
        """Sends a request to the node. A following client moves to another node if it refuses or does not answer.

        Args:
            question: Sends the request.
            is_read: Whether the operation is a read. A read has no effect, so its outcome without a success is `Fail`.
            timeout_s: The time limit of the answer; None if the caller limits it.

        Returns:
            The answer, if its code is success; otherwise the outcome of the operation.
        """
        try:
            async with asyncio.timeout(timeout_s):
                answer = await question(await self._connected())
        except NotSent as error:
            self._leave(None)
            await asyncio.sleep(PAUSE_S)
            return Fail(f"not-connected: {error}")
        except (RemotingError, TimeoutError) as error:
            reason = f"{self._at.name} did not answer in {timeout_s:g} s" if isinstance(error, TimeoutError) else error
            self._leave(None)
            return no_answer(f"no-answer: {reason}", is_read=is_read)
        if answer.status not in HEADER_OK:
            return outcomes.refused_by_header(answer.status, answer.remark, is_read=is_read)
        if answer.body.get("code") == SUCCESS:
            return answer
        return await self._refused(answer.body, is_read=is_read)

    def close(self) -> None:
        """Closes the connection."""
        if self._peer is not None:
            self._peer.close()
            self._peer = None

    async def _connected(self) -> Peer:
        if self._peer is None or self._peer.closed:
            self._peer = await self._group.connect(self._at)
        return self._peer

    async def _refused(self, body: Mapping[str, Value], *, is_read: bool) -> Fail | Info:
        """Returns the outcome of a refused operation.

        A following client goes to the leader that the refusal names. If it names none, the client goes to the next node after
        a pause.
        """
        code, leader_id = body.get("code"), body.get("leaderId")
        if not isinstance(code, int):
            return no_answer("bad-answer: no code", is_read=is_read)
        leader = self._group.members.name_of(leader_id) if isinstance(leader_id, str) else None
        named = leader if leader != self._at.name else None
        if code in NOT_SERVING and self._follows and named is not None:
            self._leave(named)
        else:
            await asyncio.sleep(PAUSE_S)
            if code in NOT_SERVING and leader_id is None:
                self._leave(None)
        return outcomes.refused_read(code, named) if is_read else outcomes.refused_write(code, named)

    def _leave(self, leader: str | None) -> None:
        """Closes the connection. A following client goes to the leader, or to the next node if it knows no leader."""
        self.close()
        if self._follows:
            names = [node.name for node in self._group.nodes]
            following = (names.index(self._at.name) + 1) % len(names)
            self._at = self._group.nodes[names.index(leader) if leader in names else following]
