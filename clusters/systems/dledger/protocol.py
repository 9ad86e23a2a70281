"""The requests to a DLedger node, and their answers as values. RocketMQ's controllers on DLedger answer them too.

Every server of the library answers append, get, metadata and leadership transfer. Labrys' own requests use the library's
user-defined request code, with their type in the header. `dledger/node/` has the server's side.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

from clusters.kit.answers import NoAnswer
from clusters.systems.dledger.remoting import HEADER_OK, Connection
from harness.service import NodeStatus, ReplicaState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from clusters.systems.dledger.members import Members
    from clusters.systems.dledger.remoting import Answer
    from harness.op import Value

SUCCESS = 200
UNEXPECTED_ARGUMENT = 411
METADATA = 50000
APPEND = 50001
GET = 50002
LEADERSHIP_TRANSFER = 51005
USER_DEFINED = 59999
REGISTER, STATUS, DUMP, PROMPT = "1", "2", "3", "4"
NO_INDEX = -1  # an index that a node does not know
NOBODY = ""  # an id that no node has


class Peer:
    """A connection to one node of one group. Its methods take and return names of nodes; the messages have ids of members."""

    def __init__(self, connection: Connection, *, group: str, node: str, members: Members) -> None:
        self._connection = connection
        self._ids = {"group": group, "remoteId": members.id_of(node)}
        self._node = node
        self._members = members

    @property
    def closed(self) -> bool:
        """Returns whether the connection is closed."""
        return self._connection.closed

    async def close(self) -> None:
        """Closes the connection."""
        await self._connection.close()

    async def register(self, request: Mapping[str, Value]) -> Answer:
        """Sends a get, put or cas. The answer's body has `code`, and `value`, `applied` and `index` as they apply."""
        return await self._own(REGISTER, request)

    async def status(self) -> NodeStatus:
        """Requests the node's status.

        All entries of a snapshot are committed, and the node has them. The library keeps its own committed index when it loads
        a snapshot, and resets its log only afterwards, sometimes ten seconds later (finding 13).
        """
        body = _body(await self._own(STATUS, {}))
        details = {key: value for key, value in body.items() if isinstance(value, int | str)}
        return NodeStatus(
            node=self._node,
            role=str(body.get("role")),
            term=_integer(body, "term"),
            leader=self._leader(body),
            applied_index=_integer(body, "appliedIndex"),
            committed_index=_committed(body),
            last_index=max(_integer(body, "ledgerEndIndex"), _integer(body, "snapshotIndex")),
            details=details,
        )

    async def dump(self) -> ReplicaState:
        """Requests all registers and their log index."""
        body = _body(await self._own(DUMP, {}))
        registers = body.get("registers")
        if not isinstance(registers, dict):
            raise NoAnswer(f"{self._node}: expected a map of registers, got {str(registers)[:100]}")
        state = {key: _integer(registers, key) for key in registers}
        return ReplicaState(node=self._node, applied_index=_integer(body, "appliedIndex"), state=state)

    async def be_prompt(self) -> None:
        """Requests that the node takes over the leadership promptly from now on."""
        _body(await self._own(PROMPT, {}))

    async def transfer(self, to: str, term: int) -> int:
        """Requests that this leader transfers its leadership of `term` to a node. Returns DLedger's code."""
        request = {
            **self._ids,
            "transferId": self._ids["remoteId"],
            "transfereeId": self._members.id_of(to),
            "term": term,
        }
        return _integer((await self._connection.call(LEADERSHIP_TRANSFER, request, extension={})).body, "code")

    async def append(self, body: bytes) -> Answer:
        """Appends an entry; the answer's body has its `index`."""
        request = {**self._ids, "body": base64.b64encode(body).decode()}
        return await self._connection.call(APPEND, request, extension={})

    async def get_many(
        self, indexes: Iterable[int], *, window: int, timeout_s: float, take: Callable[[int, Answer], bool]
    ) -> None:
        """Gets entries; see `Connection.call_many`. The library returns one entry for each request."""
        requests = ({**self._ids, "beginIndex": index} for index in indexes)
        await self._connection.call_many(GET, requests, window=window, timeout_s=timeout_s, take=take)

    async def leader(self) -> str | None:
        """Requests the leader that the node knows; None if it knows none."""
        body = _body(await self._connection.call(METADATA, self._ids, extension={}))
        return self._leader(body)

    async def term(self) -> int:
        """Requests the node's current term.

        The library has no request for it. So this requests a leadership transfer between two nodes that do not exist. The node
        refuses with the code "unexpected argument", and the refusal has the term.
        """
        request = {**self._ids, "transferId": NOBODY, "transfereeId": NOBODY}
        answer = await self._connection.call(LEADERSHIP_TRANSFER, request, extension={})
        if answer.body.get("code") != UNEXPECTED_ARGUMENT:
            raise NoAnswer(f"{self._node}: expected a refusal with its term, got {str(answer.body)[:100]}")
        return _integer(answer.body, "term")

    def _leader(self, body: Mapping[str, Value]) -> str | None:
        """Returns the name of the leader in an answer; None if there is none."""
        return self._members.name_of(str(body["leaderId"])) if body.get("leaderId") else None

    async def _own(self, kind: str, request: Mapping[str, Value]) -> Answer:
        return await self._connection.call(USER_DEFINED, {**self._ids, **request}, extension={"requestTypeCode": kind})


def _body(answer: Answer) -> Mapping[str, Value]:
    if answer.status not in HEADER_OK or answer.body.get("code") != SUCCESS:
        raise NoAnswer(f"refused with {answer.body.get('code', answer.status)}: {answer.remark}")
    return answer.body


def _committed(body: Mapping[str, Value]) -> int | None:
    known = max(_integer(body, "committedIndex"), _integer(body, "snapshotIndex"))
    return None if known == NO_INDEX else known


def _integer(body: Mapping[str, Value], key: str) -> int:
    value = body.get(key)
    if not isinstance(value, int) or isinstance(value, bool):
        raise NoAnswer(f"expected a whole number as {key!r}, got {value!r}")
    return value
