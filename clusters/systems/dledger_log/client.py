"""The client of DLedger's log: one connection of one process. It appends and gets entries.

The set or the log of a key consists of the entries that clients have appended with this key. All keys share one log, so the
offsets of a key have gaps.

Each request of an operation has its own deadline. So a read of a long log can take long, and the client still notices a silent
node soon. If one request gets no answer, the whole read fails: an error never shortens a list.

`barrier` is linearizable if the library keeps the guarantees of Raft. A leader that commits an entry of its own term was the
leader when it appended the entry, so its log had every entry committed before. Entries below a committed entry are committed,
and no node ever drops a committed entry. So the entries below the marker are those that were committed when the node appended
the marker. This moment is between the start and the end of the read.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, NamedTuple, TypeGuard

from clusters.kit.answers import unsupported
from clusters.kit.dledger_protocol import SUCCESS
from clusters.kit.remoting import HEADER_OK, Answer
from clusters.kit.stored import entry_or_fail
from clusters.systems.dledger import outcomes
from clusters.systems.dledger.routing import Seat
from clusters.systems.dledger_log.entries import BARRIER, entry_of, values_of
from harness.op import Fail, Info, Ok

if TYPE_CHECKING:
    from clusters.kit.dledger_protocol import Peer
    from clusters.systems.dledger.routing import Group
    from clusters.systems.dledger_log.entries import Entry
    from harness.node import Node
    from harness.op import Invocation, Outcome, Value

# A leader without a quorum answers with an error after two to three seconds.
ANSWER_TIMEOUT_S = 5.0


class _Found(NamedTuple):
    """The result of a read.

    Attributes:
        values: The offset and the value of each entry.
        marker: The index of the read's marker in the log; None without a barrier.
    """

    values: list[tuple[int, Value]]
    marker: int | None

    def ok(self, result: Value) -> Ok:
        """Returns the outcome of the read."""
        return Ok(result, order=self.marker)


class LogClient:
    """A `harness.client.RoutedClient` for sets (`add`, `read` of all) and logs (`append`, `read` by offset or range).

    Attributes:
        node: The client's own node. A pinned client stays there.
        via: The node that received its last operation; None if the client is pinned.
    """

    def __init__(self, *, group: Group, node: Node, barrier: bool, window: int, follows: bool) -> None:
        self.node = node
        self._seat = Seat(group=group, node=node, follows=follows)
        self._barrier = barrier
        self._window = window
        self.via: str | None = None

    async def invoke(self, invocation: Invocation) -> Outcome:
        """Carries out an operation of the workload `set` or `log` on `invocation.key`."""
        self.via = self._seat.via
        key, value = invocation.key, invocation.value
        match invocation.f, value:
            case "add", _:
                index = await self._append(key, value)
                return Ok(value, order=index) if isinstance(index, int) else index
            case "append", _:
                index = await self._append(key, value)
                return Ok(index, order=index) if isinstance(index, int) else index
            case "read", None:
                found = await self._read(key, 0, None)
                return found.ok([each for _, each in found.values]) if isinstance(found, _Found) else found
            case "read", int(offset) if _is_offset(offset):
                found = await self._read(key, offset, offset)
                return found.ok(found.values[0][1] if found.values else None) if isinstance(found, _Found) else found
            case "read", [int(first), int(last)] if _is_offset(first) and _is_offset(last):
                found = await self._read(key, first, last)
                return found.ok([list(pair) for pair in found.values]) if isinstance(found, _Found) else found
        return unsupported(invocation.f, value)

    async def close(self) -> None:
        """Closes the connection."""
        self._seat.close()

    async def _append(self, key: str | None, value: Value) -> int | Fail | Info:
        """Appends a value. Returns its index; without one, the outcome of the operation."""
        body = entry_or_fail(key, value)
        if isinstance(body, Fail):
            return body
        answer = await self._seat.ask(lambda peer: peer.append(body), is_read=False, timeout_s=ANSWER_TIMEOUT_S)
        if not isinstance(answer, Answer):
            return answer
        index = answer.body.get("index")
        return index if _is_offset(index) else Info(f"bad-answer: index {str(index)[:100]}")

    async def _read(self, key: str | None, first: int, last: int | None) -> _Found | Fail | Info:
        """Reads a range of the log. Returns the entries; without them, the outcome of the operation."""
        marker: int | None = None
        if self._barrier:
            appended = await self._marker()
            if not isinstance(appended, int):
                return appended
            marker = appended
            last = marker - 1 if last is None else min(last, marker - 1)
        entries: list[Entry] = []
        answer = await self._seat.ask(lambda peer: self._scan(peer, first, last, entries), is_read=True)
        return _Found(values_of(entries, key), marker) if isinstance(answer, Answer) else answer

    async def _marker(self) -> int | Fail | Info:
        """Appends a marker, and waits until it is committed. Returns its index; without one, the outcome of the operation."""
        answer = await self._seat.ask(lambda peer: peer.append(BARRIER), is_read=True, timeout_s=ANSWER_TIMEOUT_S)
        if not isinstance(answer, Answer):
            return answer
        index = answer.body.get("index")
        return index if _is_offset(index) else Fail(f"bad-answer: index {str(index)[:100]}")

    async def _scan(self, peer: Peer, first: int, last: int | None, entries: list[Entry]) -> Answer:
        """Gets the entries from `first` to `last`, or to the end of the node's log, in order.

        Args:
            peer: The node.
            first: The first index.
            last: The last index; None: the end of the log.
            entries: The list to fill with the entries up to the first missing one.

        Returns:
            An answer with success; or the first answer that has neither an entry nor the code "index out of range".
        """
        found: dict[int, Entry] = {}
        refusals: list[Answer] = []

        def take(place: int, answer: Answer) -> bool:
            index, code = first + place, answer.body.get("code")
            if answer.status in HEADER_OK and code == SUCCESS:
                found[index] = entry_of(answer.body, index)
                return True
            if answer.status not in HEADER_OK or code != outcomes.INDEX_OUT_OF_RANGE:
                refusals.append(answer)
            return False

        indexes = itertools.count(first) if last is None else range(first, last + 1)
        await peer.get_many(indexes, window=self._window, timeout_s=ANSWER_TIMEOUT_S, take=take)
        if refusals:
            return refusals[0]
        # A request in flight behind the first missing index may have found an entry that was appended meanwhile.
        entries.extend(found[index] for index in itertools.takewhile(found.__contains__, itertools.count(first)))
        return Answer(status=SUCCESS, remark="", body={"code": SUCCESS})


def _is_offset(value: Value) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
