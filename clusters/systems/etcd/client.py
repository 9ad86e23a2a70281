"""The clients of etcd: one connection of one process to one node, with a class for each workload.

Every node of etcd serves every request, so a client stays at its node. The order of an operation is etcd's revision: the one
that a write made, or the one that a read saw.

Source: etcd's documentation, "API guarantees" and "Interacting with etcd".
"""

from __future__ import annotations

import asyncio
import json
import math
from typing import TYPE_CHECKING, Final

from clusters.kit.answers import NoAnswer, NotDone, Refused
from clusters.kit.contracts import (
    CONFLICT,
    Contract,
    Counters,
    Done,
    Entries,
    Locks,
    Logs,
    Registers,
    Seen,
    Sets,
    Transactions,
    by_workload,
)
from clusters.kit.stored import value_of
from clusters.kit.transactions import applied, keys_of
from clusters.systems.etcd.gateway import Gateway, Watch, after, encoded
from clusters.systems.etcd.options import Compares, Reads
from clusters.systems.etcd.outcomes import WRITE_NEVER_HAPPENED

if TYPE_CHECKING:
    from clusters.kit.transactions import Mops
    from clusters.systems.etcd.gateway import Answer, Entry
    from harness.node import Node
    from harness.op import Value

PREFIX: Final = "labrys/"
WATCH_TIMEOUT_S: Final = 3.0
ADD_ATTEMPTS: Final = 30
TRANSACTION_ATTEMPTS: Final = 10


class EtcdClient(Contract):
    """A client that asks only its own node."""

    never_happened = WRITE_NEVER_HAPPENED

    def __init__(self, node: Node, reads: Reads = Reads.LINEARIZABLE) -> None:
        """Connects with the first operation.

        Args:
            node: The node.
            reads: How the node answers reads.
        """
        self.node = node
        self._serializable = reads is Reads.SERIALIZABLE
        self._gateway = Gateway(node.address)

    async def close(self) -> None:
        """Closes the connection."""
        await self._gateway.close()

    async def _call(self, method: str, request: dict[str, Value]) -> Answer:
        return await self._gateway.call(method, request)

    async def _range(self, key: str, **more: Value) -> list[Entry]:
        return (await self._call("kv/range", {"key": encoded(PREFIX + key), **more})).entries()

    async def _get(self, key: str) -> Entry | None:
        entries = await self._range(key, serializable=self._serializable)
        return entries[0] if entries else None

    async def _put(self, key: str, text: str) -> int:
        """Puts a text, and returns the revision."""
        answer = await self._call("kv/put", {"key": encoded(PREFIX + key), "value": encoded(text)})
        return answer.header().number("revision")

    async def _if(self, compare: list[dict[str, Value]], then: list[dict[str, Value]]) -> int | None:
        """Carries out requests if all comparisons hold. Returns the revision, or None if one does not hold."""
        answer = await self._call("kv/txn", {"compare": compare, "success": then})
        return answer.header().number("revision") if answer.flag("succeeded") else None


class EtcdRegisters(EtcdClient, Registers):
    """A register is a key. A compare-and-set is a transaction that compares the value, or that the key does not exist."""

    serves = "read is a range, write is a put, cas is a transaction that compares the value"

    async def read(self, key: str) -> Seen:
        """Reads the key."""
        return _seen(await self._get(key))

    async def write(self, key: str, value: Value) -> Done:
        """Puts the key."""
        return Done(await self._put(key, json.dumps(value)))

    async def cas(self, key: str, expected: Value, new: Value) -> Done | None:
        """Puts the key if it has the expected value."""
        compare = _absent(key) if expected is None else _holds(key, json.dumps(expected))
        return _done(await self._if([compare], [_put(key, json.dumps(new))]))


class EtcdSets(EtcdClient, Sets):
    """A set is a key for each element, below a prefix. A read is a range."""

    serves = "add is a put of a key for the element; read is a range of all these keys"

    async def add(self, key: str, element: Value) -> Done:
        """Puts the key of the element."""
        return Done(await self._put(f"{key}/{json.dumps(element)}", ""))

    async def read(self, key: str) -> Seen:
        """Reads all keys below the prefix."""
        prefix = f"{PREFIX}{key}/"
        entries = await self._range(f"{key}/", range_end=after(prefix), serializable=self._serializable)
        last = max((entry.modified for entry in entries), default=None)
        return Seen([value_of(entry.key.removeprefix(prefix)) for entry in entries], last)


class EtcdCounters(EtcdClient, Counters):
    """A counter is a key. An add reads it, and writes the sum if nobody changed the key since; else it tries again."""

    serves = "add reads the key, and writes the sum in a transaction that compares the revision"

    async def add(self, key: str, amount: int) -> Done:
        """Adds to the value of the key."""
        for _ in range(ADD_ATTEMPTS):
            try:
                entries = await asyncio.wait_for(self._range(key), self.read_timeout_s)
            except (TimeoutError, NoAnswer, Refused) as error:  # it only read
                raise NotDone("not-read", f"{error or 'no answer in time'}") from error
            total = (value_of(entries[0].value) if entries else 0) + amount
            compare = _same(key, entries[0] if entries else None)
            revision = await self._if([compare], [_put(key, json.dumps(total))])
            if revision is not None:
                return Done(revision)
        raise NotDone("contended", f"others changed the counter in each of {ADD_ATTEMPTS} attempts")

    async def read(self, key: str) -> Seen:
        """Reads the key."""
        return _seen(await self._get(key))


class EtcdLocks(EtcdClient, Locks):
    """A lock is a key that exists while the lock is held. With a lease, etcd removes it after the lease."""

    serves = "acquire creates a key, with a lease if the locks have one; release deletes it"

    def __init__(self, node: Node, *, owner: str, lease_s: float | None, fencing: bool) -> None:
        """Connects with the first operation.

        Args:
            node: The node.
            owner: A text that no other client of the run has.
            lease_s: The lease of a lock in seconds; None: locks have none.
            fencing: Whether an acquire returns a fencing token.
        """
        super().__init__(node)
        self.fencing = fencing
        self._owner = owner
        self._lease_s = lease_s
        self._acquires = 0
        self._held: dict[str, str] = {}  # by key, the value of the lock that this client acquired last

    async def acquire(self, key: str) -> Seen | None:
        """Creates the key; the token is its revision."""
        self._acquires += 1
        mine = f"{self._owner}/{self._acquires}"
        put = _put(key, mine)
        if self._lease_s is not None:
            try:
                granted = await self._call("lease/grant", {"TTL": math.ceil(self._lease_s)})
            except (NoAnswer, Refused) as error:  # a lease alone locks nothing
                raise NotDone("no-lease", str(error)) from error
            put["requestPut"]["lease"] = granted.number("ID")
        revision = await self._if([_absent(key)], [put])
        if revision is None:
            return None
        self._held[key] = mine
        return Seen(revision, revision)

    async def release(self, key: str, token: Value) -> Done | None:
        """Deletes the key if the client that asks holds it."""
        if isinstance(token, int):
            compare = _compared(key, "CREATE", createRevision=str(token))
        else:
            compare = _holds(key, self._held.get(key, ""))
        return _done(await self._if([compare], [{"requestDeleteRange": {"key": encoded(PREFIX + key)}}]), orders=False)


class EtcdLogs(EtcdClient, Logs):
    """A log is the history of a key: an append is a put, and its revision is its offset. A read is a watch from an offset on.

    A watch may lag, so a read waits until it has shown the last change that a range of the same node knows. A read that begins
    after the last event that the client has read goes on with the same watch; every other read begins a new one.
    """

    serves = "append is a put, and its revision is the offset; read is a watch from a revision on, see --follow"

    def __init__(self, node: Node, reads: Reads = Reads.LINEARIZABLE) -> None:
        """Connects with the first operation; see `EtcdClient`."""
        super().__init__(node, reads)
        self._watches: dict[str, Watch] = {}

    async def append(self, key: str, value: Value) -> Seen:
        """Puts the key."""
        revision = await self._put(key, json.dumps(value))
        return Seen(revision, revision)

    async def read(self, key: str, first: int, last: int) -> Entries:
        """Returns the events that a watch shows from a revision on, up to the last change that a range knows."""
        entry = await self._get(key)
        newest = min(last, entry.modified if entry else 0)
        watch = self._watches.get(key)
        if watch is None or watch.following != first:
            await self._unwatch(key)
            watch = self._watches[key] = Watch(self.node.address, PREFIX + key, first)
        try:
            await asyncio.wait_for(watch.until(newest), WATCH_TIMEOUT_S)
        except TimeoutError:
            raise NoAnswer(f"the watch is behind: it has not shown revision {newest} of the key") from None
        except NoAnswer:
            await self._unwatch(key)
            raise
        return Entries([(event.modified, value_of(event.value)) for event in watch.take(last)])

    async def close(self) -> None:
        """Closes the connections."""
        for watch in self._watches.values():
            await watch.close()
        await super().close()

    async def _unwatch(self, key: str) -> None:
        watch = self._watches.pop(key, None)
        if watch is not None:
            await watch.close()


class EtcdTransactions(EtcdClient, Transactions):
    """A transaction reads all its keys in one transaction of etcd.

    If it writes, a second one compares the revisions of the keys, and puts the new values. If a comparison fails, nothing is
    written, and the client tries again.
    """

    serves = "txn reads all its keys in one transaction; a second one compares their revisions, and puts the new values"

    def __init__(self, node: Node, reads: Reads = Reads.LINEARIZABLE, compares: Compares = Compares.ALL) -> None:
        """Connects with the first operation; see `EtcdClient`.

        Args:
            node: The node.
            reads: How the node answers reads.
            compares: What a transaction compares when it writes.
        """
        super().__init__(node, reads)
        self._compares = compares

    async def carry_out(self, key: str, mops: Mops) -> Seen:
        """Carries out a transaction on the keys below a prefix."""
        names = keys_of(mops)
        for _ in range(TRANSACTION_ATTEMPTS):
            try:
                entries, revision = await asyncio.wait_for(self._snapshot(key, names), self.read_timeout_s)
                state = {name: value_of(entry.value) if entry else None for name, entry in entries.items()}
                answer, written = applied(mops, state)
            except (TimeoutError, NoAnswer, Refused) as error:  # it only read
                raise NotDone("not-read", f"{error or 'no answer in time'}") from error
            if not written:
                return Seen(answer, revision)
            compared = {Compares.ALL: names, Compares.WRITTEN: list(written), Compares.NONE: []}[self._compares]
            revision_of_write = await self._if(
                [_same(f"{key}/{name}", entries[name]) for name in compared],
                [_put(f"{key}/{name}", json.dumps(new)) for name, new in written.items()],
            )
            if revision_of_write is not None:
                return Seen(answer, revision_of_write)
        raise NotDone(CONFLICT, f"others changed its keys in each of {TRANSACTION_ATTEMPTS} attempts")

    async def _snapshot(self, key: str, names: list[str]) -> tuple[dict[str, Entry | None], int]:
        """Returns the entries of keys, all from one revision, and this revision."""
        ranges = [
            {"requestRange": {"key": encoded(f"{PREFIX}{key}/{name}"), "serializable": self._serializable}}
            for name in names
        ]
        answer = await self._call("kv/txn", {"success": ranges})
        entries = {name: some[0] if some else None for name, some in zip(names, answer.ranges(len(names)), strict=True)}
        return entries, answer.header().number("revision")


CLIENTS: Final = by_workload(EtcdRegisters, EtcdSets, EtcdCounters, EtcdLocks, EtcdTransactions, EtcdLogs)


def _put(key: str, text: str) -> dict[str, Value]:
    return {"requestPut": {"key": encoded(PREFIX + key), "value": encoded(text)}}


def _compared(key: str, target: str, **expected: str) -> dict[str, Value]:
    return {"key": encoded(PREFIX + key), "target": target, "result": "EQUAL", **expected}


def _absent(key: str) -> dict[str, Value]:
    return _compared(key, "CREATE", createRevision="0")


def _holds(key: str, text: str) -> dict[str, Value]:
    return _compared(key, "VALUE", value=encoded(text))


def _same(key: str, entry: Entry | None) -> dict[str, Value]:
    """Returns the comparison that a key is as it was read; None: that it does not exist."""
    return _absent(key) if entry is None else _compared(key, "MOD", modRevision=str(entry.modified))


def _seen(entry: Entry | None) -> Seen:
    """Returns the answer of a read of one key: null if it does not exist."""
    return Seen(None) if entry is None else Seen(value_of(entry.value), entry.modified)


def _done(revision: int | None, *, orders: bool = True) -> Done | None:
    return None if revision is None else Done(revision if orders else None)
