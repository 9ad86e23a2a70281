"""The client of DLedger registers: one connection of one process.

`routing` chooses the node. The interpreter limits the time of an answer. If it cancels a call, the client closes the
connection.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from clusters.kit.answers import UNSUPPORTED, NotDone, Refused
from clusters.kit.contracts import Done, Registers, Seen, by_workload
from clusters.systems.dledger.outcomes import BAD_ANSWER, CAS_MISMATCH
from clusters.systems.dledger.routing import DLedgerClient

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clusters.systems.dledger.options import ReadMode
    from clusters.systems.dledger.routing import Group
    from harness.node import Node
    from harness.op import Value

MIN_INT64, MAX_INT64 = -(2**63), 2**63 - 1


class DLedgerRegisters(DLedgerClient, Registers):
    """Registers in the state machine of Labrys' nodes, which holds whole numbers of 64 bits."""

    serves = "read, write and cas are GET, PUT and CAS of a replicated map from texts to 64-bit integers"

    def __init__(self, *, group: Group, node: Node, follows: bool, read_mode: ReadMode) -> None:
        """Connects with the first operation; see `DLedgerClient`.

        Args:
            group: The group.
            node: The client's own node.
            follows: Whether it follows the leader.
            read_mode: How a node makes sure that a read is recent.
        """
        super().__init__(group=group, node=node, follows=follows)
        self._read_mode = read_mode

    async def read(self, key: str) -> Seen:
        """Gets the value."""
        return Seen(_held(await self._register({"op": "get", "key": key, "readMode": str(self._read_mode)})))

    async def write(self, key: str, value: Value) -> Done:
        """Puts the value. The order is the index of the log entry, as for `cas`."""
        if not _is_int64(value):
            raise NotDone(UNSUPPORTED, f"write of {str(value)[:100]}")
        body = await self._register({"op": "put", "key": key, "value": value})
        _held(body)
        return _applied(body)

    async def cas(self, key: str, expected: Value, new: Value) -> Done | None:
        """Puts the new value if the register holds the expected one. An expected None matches one that holds nothing."""
        if not _is_int64(new) or (expected is not None and not _is_int64(expected)):
            raise NotDone(UNSUPPORTED, f"cas of {str([expected, new])[:100]}")
        body = await self._register({"op": "cas", "key": key, "expected": expected, "value": new})
        current = _held(body)
        if body.get("applied") is False:
            raise NotDone(CAS_MISMATCH, f"holds {'nothing' if current is None else current}")
        return _applied(body)

    async def _register(self, request: Mapping[str, Value]) -> Mapping[str, Value]:
        """Sends a request, and returns what the state machine answered."""
        return (await self._seat.ask(lambda peer: peer.register(request))).body


CLIENTS: Final = by_workload(DLedgerRegisters)


def _held(body: Mapping[str, Value]) -> Value:
    """Returns the value that a register holds by an answer; None if it holds nothing.

    Raises:
        Refused: The answer does not say it.
    """
    value, is_found = body.get("value"), body.get("found")
    holds = is_found is True and _is_int64(value)
    if not holds and not (is_found is False and value is None):
        raise Refused(BAD_ANSWER, f"found {str(is_found)[:100]}, value {str(value)[:100]}")
    return value


def _applied(body: Mapping[str, Value]) -> Done:
    """Returns the index of the log entry of a change.

    Raises:
        Refused: The answer does not say that the change was applied.
    """
    applied, index = body.get("applied"), body.get("index")
    if applied is not True:
        raise Refused(BAD_ANSWER, f"applied {str(applied)[:100]}")
    return Done(index if _is_int64(index) else None)


def _is_int64(value: Value) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and MIN_INT64 <= value <= MAX_INT64
