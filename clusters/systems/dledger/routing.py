"""The node that a DLedger client contacts: always its own node, or the leader.

A pinned client never leaves its node. So a deposed leader still gets requests, and its mistakes show. A following client goes
to the leader that an answer names. Both pause after a refusal. A refusal takes less than a millisecond, so retries without a
pause would use up the processor.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from clusters.kit.answers import PAUSE_S, NoAnswer, NotSent, Refused
from clusters.kit.contracts import Contract
from clusters.systems.dledger import outcomes
from clusters.systems.dledger.protocol import SUCCESS, Peer
from clusters.systems.dledger.remoting import HEADER_OK, Connection

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from clusters.systems.dledger.members import Members
    from clusters.systems.dledger.remoting import Answer
    from harness.node import Node
    from harness.op import Invocation, Outcome, Value

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

    async def ask(self, question: Callable[[Peer], Awaitable[Answer]], *, timeout_s: float | None = None) -> Answer:
        """Sends a request to the node, and returns its answer. A following client moves to another node after an error.

        Args:
            question: Sends the request.
            timeout_s: The time limit of the answer; None if the caller limits it.

        Raises:
            NotSent: The node got no request.
            NoAnswer: It may have got it, and no usable answer came.
            Refused: The code of the answer is not success.
        """
        try:
            async with asyncio.timeout(timeout_s):
                answer = await question(await self._connected())
        except NotSent:
            await self._leave(None)
            await asyncio.sleep(PAUSE_S)
            raise
        except NoAnswer:
            await self._leave(None)
            raise
        except TimeoutError as error:
            silent = self._at.name
            await self._leave(None)
            raise NoAnswer(f"{silent} did not answer in {timeout_s:g} s") from error
        if answer.status not in HEADER_OK:
            raise outcomes.refusal_by_header(answer.status, answer.remark)
        if answer.body.get("code") != SUCCESS:
            raise await self._refused(answer.body)
        return answer

    async def close(self) -> None:
        """Closes the connection."""
        if self._peer is not None:
            await self._peer.close()
            self._peer = None

    async def _connected(self) -> Peer:
        if self._peer is None or self._peer.closed:
            self._peer = await self._group.connect(self._at)
        return self._peer

    async def _refused(self, body: Mapping[str, Value]) -> Refused:
        """Returns the error of a refusal.

        A following client goes to the leader that the refusal names. If it names none, the client goes to the next node after
        a pause.
        """
        code, leader_id = body.get("code"), body.get("leaderId")
        if not isinstance(code, int):
            return Refused(outcomes.BAD_ANSWER, "no code")
        leader = self._group.members.name_of(leader_id) if isinstance(leader_id, str) else None
        named = leader if leader != self._at.name else None
        if code in NOT_SERVING and self._follows and named is not None:
            await self._leave(named)
        else:
            await asyncio.sleep(PAUSE_S)
            if code in NOT_SERVING and leader_id is None:
                await self._leave(None)
        return outcomes.refusal(code, named)

    async def _leave(self, leader: str | None) -> None:
        """Closes the connection. A following client goes to the leader, or to the next node if it knows no leader."""
        await self.close()
        if self._follows:
            names = [node.name for node in self._group.nodes]
            following = (names.index(self._at.name) + 1) % len(names)
            self._at = self._group.nodes[names.index(leader) if leader in names else following]


class DLedgerClient(Contract):
    """A `harness.client.RoutedClient` of a group. The interpreter limits the time of an operation.

    Attributes:
        node: Its own node. A client that does not follow leaders sends everything there.
        via: The node that received its last operation; None if the client does not follow leaders.
    """

    never_happened = outcomes.NEVER_HAPPENED
    read_timeout_s = None

    def __init__(self, *, group: Group, node: Node, follows: bool) -> None:
        """Connects with the first operation.

        Args:
            group: The group.
            node: The client's own node.
            follows: Whether it follows the leader.
        """
        self.node = node
        self.via: str | None = None
        self._seat = Seat(group=group, node=node, follows=follows)

    async def invoke(self, invocation: Invocation) -> Outcome:
        """Carries out an operation, first at the node of the seat."""
        self.via = self._seat.via
        return await super().invoke(invocation)

    def name_of(self, code: str) -> str:
        """Returns the code, which is a name already."""
        return code

    async def failed(self, error: Exception) -> None:
        """Does nothing: the seat has moved and paused."""

    async def close(self) -> None:
        """Closes the connection."""
        await self._seat.close()
