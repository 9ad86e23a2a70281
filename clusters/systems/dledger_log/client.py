"""The clients of DLedger's log: one connection of one process. They append and get entries.

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
from typing import TYPE_CHECKING, Final, TypeGuard

from clusters.kit.answers import UNSUPPORTED, NotDone, Refused
from clusters.kit.contracts import Done, Entries, Logs, Seen, Sets, by_workload
from clusters.kit.stored import entry_body
from clusters.systems.dledger import outcomes
from clusters.systems.dledger.protocol import SUCCESS
from clusters.systems.dledger.remoting import HEADER_OK, Answer
from clusters.systems.dledger.routing import DLedgerClient
from clusters.systems.dledger_log.entries import BARRIER, entry_of, values_of

if TYPE_CHECKING:
    from clusters.systems.dledger.protocol import Peer
    from clusters.systems.dledger.routing import Group
    from clusters.systems.dledger_log.entries import Entry
    from harness.node import Node
    from harness.op import Value

# A leader without a quorum answers with an error after two to three seconds.
ANSWER_TIMEOUT_S = 5.0


class EntryClient(DLedgerClient):
    """A client that appends entries of a key, and gets them."""

    def __init__(self, *, group: Group, node: Node, follows: bool, barrier: bool, window: int) -> None:
        """Connects with the first operation; see `DLedgerClient`.

        Args:
            group: The group.
            node: The client's own node.
            follows: Whether it follows the leader.
            barrier: Whether a read appends a marker, and gets the entries below it.
            window: The maximum number of requests in flight.
        """
        super().__init__(group=group, node=node, follows=follows)
        self._barrier = barrier
        self._window = window

    async def _append(self, body: bytes) -> int:
        """Appends an entry, waits until it is committed, and returns its index."""
        answer = await self._seat.ask(lambda peer: peer.append(body), timeout_s=ANSWER_TIMEOUT_S)
        index = answer.body.get("index")
        if not _is_offset(index):
            raise Refused(outcomes.BAD_ANSWER, f"index {str(index)[:100]}")
        return index

    async def _entries(self, key: str, first: int, last: int | None) -> Entries:
        """Reads a range of the log. The order is the index of the marker; None without a barrier."""
        marker = await self._append(BARRIER) if self._barrier else None
        if marker is not None:
            last = marker - 1 if last is None else min(last, marker - 1)
        entries: list[Entry] = []
        await self._seat.ask(lambda peer: self._scan(peer, first, last, entries))
        return Entries(values_of(entries, key), marker)

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
        by_index: dict[int, Entry] = {}
        refusals: list[Answer] = []

        def take(number: int, answer: Answer) -> bool:
            index, code = first + number, answer.body.get("code")
            if answer.status in HEADER_OK and code == SUCCESS:
                by_index[index] = entry_of(answer.body, index)
                return True
            if answer.status not in HEADER_OK or code != outcomes.INDEX_OUT_OF_RANGE:
                refusals.append(answer)
            return False

        indexes = itertools.count(first) if last is None else range(first, last + 1)
        await peer.get_many(indexes, window=self._window, timeout_s=ANSWER_TIMEOUT_S, take=take)
        if refusals:
            return refusals[0]
        # A request in flight behind the first missing index may have found an entry that was appended meanwhile.
        entries.extend(by_index[index] for index in itertools.takewhile(by_index.__contains__, itertools.count(first)))
        return Answer(status=SUCCESS, remark="", body={"code": SUCCESS})


class DLedgerSets(EntryClient, Sets):
    """A set consists of the entries of its key."""

    serves = "add is APPEND of an entry; read is GET of every entry, one by one"

    async def add(self, key: str, element: Value) -> Done:
        """Appends an entry."""
        return Done(await self._append(entry_body(key, element)))

    async def read(self, key: str) -> Seen:
        """Gets all entries."""
        entries, marker = await self._entries(key, 0, None)
        return Seen([value for _, value in entries], marker)


class DLedgerLogs(EntryClient, Logs):
    """A log consists of the entries of its key, at the indexes of the library's log."""

    serves = "append is APPEND of an entry, whose index is the offset; read is GET of the entries, one by one"

    async def append(self, key: str, value: Value) -> Seen:
        """Appends an entry."""
        index = await self._append(entry_body(key, value))
        return Seen(index, index)

    async def read(self, key: str, first: int, last: int) -> Entries:
        """Gets a range of the entries."""
        if not _is_offset(first) or not _is_offset(last):
            raise NotDone(UNSUPPORTED, f"read of {first} to {last}")
        return await self._entries(key, first, last)


CLIENTS: Final = by_workload(DLedgerSets, DLedgerLogs)


def _is_offset(value: Value) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
