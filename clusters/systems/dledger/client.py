"""The client of DLedger registers: one connection of one process.

A pinned client never leaves its node, whatever that answers: that is how a deposed leader keeps getting requests, and how its
mistakes are seen. A following client goes where the answers say that the leader is. Neither asks again at once after a
refusal, which comes in less than a millisecond: it would only burn the processor. How long an answer may take is the
interpreter's business; a call that it cancels closes the connection.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from clusters.systems.dledger import outcomes
from clusters.systems.dledger.remoting import HEADER_OK, Connection, NotSent, RemotingError
from clusters.systems.dledger.requests import Peer
from harness.op import Fail, Info, Ok

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clusters.systems.dledger.options import ReadMode
    from harness.node import Node
    from harness.op import Invocation, Outcome, Value

CONNECT_TIMEOUT_S = 2.0
REFUSAL_PAUSE_S = 0.1
ONLY_KEY = "register"  # where a workload has one object and no keys
MIN_INT64, MAX_INT64 = -(2**63), 2**63 - 1
NOT_SERVING = frozenset({outcomes.NOT_LEADER, outcomes.LEADER_NOT_READY, outcomes.TERM_NOT_READY})


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The group that a client talks to.

    Attributes:
        name: The Raft group.
        nodes: Its nodes.
        port: The port of each.
    """

    name: str
    nodes: Sequence[Node]
    port: int

    async def connect(self, node: Node, timeout_s: float = CONNECT_TIMEOUT_S) -> Peer:
        """Connects to a node.

        Raises:
            NotSent: It cannot be reached.
        """
        connection = await Connection.open(node.address, self.port, timeout_s)
        return Peer(connection, group=self.name, node=node.name)


class DLedgerClient:
    """A `harness.client.RoutedClient` for registers: read, write, cas.

    Attributes:
        node: Where it was placed, and where it stays if it does not follow.
        via: The node that its last operation was sent to; None if it does not follow.
    """

    def __init__(self, *, group: Group, node: Node, read_mode: ReadMode, follows: bool) -> None:
        self.node = node
        self._group = group
        self._read_mode = read_mode
        self._follows = follows
        self._at = node
        self._peer: Peer | None = None
        self.via: str | None = None

    async def invoke(self, invocation: Invocation) -> Outcome:
        """Carries out a read (`None`), a write (a value) or a cas (`[expected, new]`) of the register `invocation.key`."""
        request = self._request(invocation)
        if request is None:
            return Fail(f"unsupported: {invocation.f} of {str(invocation.value)[:100]}")
        is_read = invocation.f == "read"
        self.via = self._at.name if self._follows else None
        try:
            answer = await (await self._connected()).register(request)
        except NotSent as error:
            self._leave(None)
            await asyncio.sleep(REFUSAL_PAUSE_S)
            return Fail(f"not-connected: {error}")
        except RemotingError as error:
            self._leave(None)
            return _no_answer(f"no-answer: {error}", is_read=is_read)
        if answer.status not in HEADER_OK:
            return outcomes.refused_by_header(answer.status, answer.remark, is_read=is_read)
        if answer.body.get("code") == outcomes.SUCCESS:
            return _outcome(invocation, answer.body)
        return await self._refused(answer.body, is_read=is_read)

    async def close(self) -> None:
        """Closes the connection."""
        if self._peer is not None:
            self._peer.close()
            self._peer = None

    def _request(self, invocation: Invocation) -> Mapping[str, Value] | None:
        """Returns what to send; None for what the node cannot store, or would store as something else."""
        key, value = invocation.key or ONLY_KEY, invocation.value
        match invocation.f, value:
            case "read", _:
                return {"op": "get", "key": key, "readMode": str(self._read_mode)}
            case "write", _ if _is_int64(value):
                return {"op": "put", "key": key, "value": value}
            case "cas", [expected, new] if _is_int64(new) and (expected is None or _is_int64(expected)):
                # To expect None is to expect that the register holds nothing.
                return {"op": "cas", "key": key, "expected": expected, "value": new}
        return None

    async def _connected(self) -> Peer:
        if self._peer is None or self._peer.closed:
            self._peer = await self._group.connect(self._at)
        return self._peer

    async def _refused(self, body: Mapping[str, Value], *, is_read: bool) -> Outcome:
        """Goes to the leader, if this client follows and one is named; if none is, to the next node, after a pause."""
        code, leader = body.get("code"), body.get("leaderId")
        if not isinstance(code, int):
            return _no_answer("bad-answer: no code", is_read=is_read)
        named = leader if isinstance(leader, str) and leader != self._at.name else None
        if code in NOT_SERVING and self._follows and named is not None:
            self._leave(named)
        else:
            await asyncio.sleep(REFUSAL_PAUSE_S)
            if code in NOT_SERVING and leader is None:
                self._leave(None)
        return outcomes.refused_read(code, named) if is_read else outcomes.refused_write(code, named)

    def _leave(self, leader: str | None) -> None:
        """Drops the connection; a following client turns to the leader, or to the next node if none is known."""
        if self._peer is not None:
            self._peer.close()
            self._peer = None
        if self._follows:
            names = [node.name for node in self._group.nodes]
            following = (names.index(self._at.name) + 1) % len(names)
            self._at = self._group.nodes[names.index(leader) if leader in names else following]


def _no_answer(error: str, *, is_read: bool) -> Outcome:
    return Fail(error) if is_read else Info(error)


def _outcome(invocation: Invocation, body: Mapping[str, Value]) -> Outcome:
    """Returns the outcome of an operation that the state machine has answered."""
    value, applied, found = body.get("value"), body.get("applied"), body.get("found")
    holds = found is True and _is_int64(value)
    if not holds and not (found is False and value is None):
        return _no_answer(
            f"bad-answer: found {str(found)[:100]}, value {str(value)[:100]}", is_read=invocation.f == "read"
        )
    if invocation.f == "read":
        return Ok(value)
    if applied is True:
        return Ok(invocation.value)
    if applied is False and invocation.f == "cas":
        return Fail(f"cas-mismatch: holds {value if holds else 'nothing'}")
    return Info(f"bad-answer: applied {str(applied)[:100]}")


def _is_int64(value: Value) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and MIN_INT64 <= value <= MAX_INT64
