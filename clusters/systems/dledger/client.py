"""The client of DLedger registers: one connection of one process.

`routing` chooses the node. The interpreter limits the time of an answer. If it cancels a call, the client closes the
connection.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from clusters.kit.answers import no_answer, unsupported
from clusters.kit.remoting import Answer
from clusters.systems.dledger.outcomes import CAS_MISMATCH
from clusters.systems.dledger.routing import Seat
from harness.op import ONLY_KEY, Fail, Info, Ok

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clusters.systems.dledger.options import ReadMode
    from clusters.systems.dledger.routing import Group
    from harness.node import Node
    from harness.op import Invocation, Outcome, Value

MIN_INT64, MAX_INT64 = -(2**63), 2**63 - 1


class DLedgerClient:
    """A `harness.client.RoutedClient` for registers: read, write, cas.

    Attributes:
        node: Its own node. A client that does not follow leaders sends everything there.
        via: The node that received its last operation; None if the client does not follow leaders.
    """

    def __init__(self, *, group: Group, node: Node, read_mode: ReadMode, follows: bool) -> None:
        self.node = node
        self._seat = Seat(group=group, node=node, follows=follows)
        self._read_mode = read_mode
        self.via: str | None = None

    async def invoke(self, invocation: Invocation) -> Outcome:
        """Carries out a read (`None`), a write (a value) or a cas (`[expected, new]`) of the register `invocation.key`."""
        request = self._request(invocation)
        if request is None:
            return unsupported(invocation.f, invocation.value)
        is_read = invocation.f == "read"
        self.via = self._seat.via
        answer = await self._seat.ask(lambda peer: peer.register(request), is_read=is_read)
        return _outcome(invocation, answer.body) if isinstance(answer, Answer) else answer

    async def close(self) -> None:
        """Closes the connection."""
        self._seat.close()

    def _request(self, invocation: Invocation) -> Mapping[str, Value] | None:
        """Returns the request; None if the node cannot store the value unchanged."""
        key, value = invocation.key or ONLY_KEY, invocation.value
        match invocation.f, value:
            case "read", _:
                return {"op": "get", "key": key, "readMode": str(self._read_mode)}
            case "write", _ if _is_int64(value):
                return {"op": "put", "key": key, "value": value}
            case "cas", [expected, new] if _is_int64(new) and (expected is None or _is_int64(expected)):
                # An expected None matches a register that holds nothing.
                return {"op": "cas", "key": key, "expected": expected, "value": new}
        return None


def _outcome(invocation: Invocation, body: Mapping[str, Value]) -> Outcome:
    """Returns the outcome of an operation that the state machine answered. A write's outcome has the index of its log entry."""
    value, applied, found = body.get("value"), body.get("applied"), body.get("found")
    holds = found is True and _is_int64(value)
    if not holds and not (found is False and value is None):
        return no_answer(
            f"bad-answer: found {str(found)[:100]}, value {str(value)[:100]}", is_read=invocation.f == "read"
        )
    if invocation.f == "read":
        return Ok(value)
    if applied is True:
        index = body.get("index")
        return Ok(invocation.value, order=index if _is_int64(index) else None)
    if applied is False and invocation.f == "cas":
        return Fail(f"{CAS_MISMATCH}: holds {value if holds else 'nothing'}")
    return Info(f"bad-answer: applied {str(applied)[:100]}")


def _is_int64(value: Value) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and MIN_INT64 <= value <= MAX_INT64
