"""The client of etcd: one connection of one process to one node, for registers, sets, counters, locks, logs and transactions.

Every node of etcd serves every request, so a client stays at its node. The order of an operation is etcd's revision: the one
that a write made, or the one that a read saw.

- A register is a key. A compare-and-set is a transaction that compares the value, or that the key does not exist.
- A set is a key for each element, below a prefix. A read is a range.
- A counter is a key. An add reads it, and writes the sum if nobody changed the key since; it tries again if somebody did.
- A lock is a key that exists while the lock is held. With a lease, etcd removes it after the lease.
- A log is the history of a key: an append is a put, and its revision is its offset. A read is a watch from its first offset on.
  A watch may lag, so a read waits until it has shown the last change that a range of the same node knows. A read that begins
  after the last event that the client has read goes on with the same watch; every other read begins a new one.
- A transaction reads all its keys in one transaction of etcd. If it writes, a second one compares the revisions of the keys,
  and puts the new values. If a comparison fails, nothing is written, and the client tries again.

Source: etcd's documentation, "API guarantees" and "Interacting with etcd".
"""

from __future__ import annotations

import asyncio
import json
import math
from typing import TYPE_CHECKING, Final

from clusters.kit.answers import NoAnswer, carried_out, unsupported
from clusters.kit.stored import value_of
from clusters.kit.transactions import LIST_APPEND, RW_REGISTER, TRANSACTION, applied, keys_of, only_reads
from clusters.systems.etcd.gateway import Gateway, Refused, Watch, after, encoded
from clusters.systems.etcd.options import Compares, Reads
from clusters.systems.etcd.outcomes import CAS_MISMATCH, CONFLICT, HELD, NOT_HELD, refused
from harness.op import ONLY_KEY, Fail, Ok

if TYPE_CHECKING:
    from clusters.systems.etcd.gateway import Answer, Entry
    from harness.node import Node
    from harness.op import Info, Invocation, Outcome, Value

PREFIX: Final = "labrys/"
READ_TIMEOUT_S: Final = 5.0
WATCH_TIMEOUT_S: Final = 3.0
ADD_ATTEMPTS: Final = 30
TRANSACTION_ATTEMPTS: Final = 10


class EtcdClient:
    """A client that asks only its own node.

    Attributes:
        node: The node.
    """

    def __init__(
        self,
        *,
        node: Node,
        workload: str,
        reads: Reads,
        fencing: bool,
        lease_s: float | None,
        owner: str,
        compares: Compares = Compares.ALL,
    ) -> None:
        """Connects with the first operation.

        Args:
            node: The node.
            workload: The workload.
            reads: How the node answers reads.
            fencing: Whether an acquire returns a fencing token.
            lease_s: The lease of a lock in seconds; None: locks have none.
            owner: A text that no other client of the run has.
            compares: What a transaction compares when it writes.
        """
        self.node = node
        self._workload = workload
        self._serializable = reads is Reads.SERIALIZABLE
        self._fencing = fencing
        self._lease_s = lease_s
        self._owner = owner
        self._compares = compares
        self._acquires = 0
        self._held: dict[str, str] = {}  # by key, the value of the lock that this client acquired last
        self._gateway = Gateway(node.address)
        self._watches: dict[str, Watch] = {}

    async def invoke(self, invocation: Invocation) -> Outcome:
        """Carries out an operation of the workload."""
        is_read = invocation.f == "read" or (invocation.f == TRANSACTION and only_reads(invocation.value))
        operation = self._carry_out(invocation)
        try:
            return await carried_out(operation, self.node, is_read=is_read, read_timeout_s=READ_TIMEOUT_S)
        except Refused as error:
            return refused(error.message, is_read=is_read)

    async def close(self) -> None:
        """Closes the connections."""
        for watch in self._watches.values():
            await watch.close()
        await self._gateway.close()

    async def _carry_out(self, invocation: Invocation) -> Outcome:
        operations = {
            "register": self._register,
            "set": self._set,
            "counter": self._counter,
            "lock": self._lock,
            "log": self._log,
            LIST_APPEND: self._transaction,
            RW_REGISTER: self._transaction,
        }
        return await operations[self._workload](PREFIX + (invocation.key or ONLY_KEY), invocation.f, invocation.value)

    async def _register(self, key: str, f: str, value: Value) -> Outcome:
        match f, value:
            case "read", _:
                return _read(await self._get(key))
            case "write", _:
                return _written(
                    await self._call("kv/put", {"key": encoded(key), "value": encoded(json.dumps(value))}), value
                )
            case "cas", [expected, new]:
                return await self._cas(key, expected, new)
        return unsupported(f, value)

    async def _set(self, key: str, f: str, value: Value) -> Outcome:
        match f:
            case "add":
                element = f"{key}/{json.dumps(value)}"
                return _written(await self._call("kv/put", {"key": encoded(element), "value": ""}), value)
            case "read":
                return await self._elements(f"{key}/")
        return unsupported(f, value)

    async def _counter(self, key: str, f: str, value: Value) -> Outcome:
        match f, value:
            case "add", int(amount):
                return await self._add(key, amount)
            case "read", _:
                found = _read(await self._get(key))
                return Ok(found.value or 0, order=found.order)
        return unsupported(f, value)

    async def _lock(self, key: str, f: str, value: Value) -> Outcome:
        match f:
            case "acquire":
                return await self._acquire(key)
            case "release":
                return await self._release(key, value)
        return unsupported(f, value)

    async def _log(self, key: str, f: str, value: Value) -> Outcome:
        match f, value:
            case "append", _:
                answer = await self._call("kv/put", {"key": encoded(key), "value": encoded(json.dumps(value))})
                revision = answer.header().number("revision")
                return Ok(revision, order=revision)
            case "read", int(offset):
                found = await self._watched(key, offset, offset)
                return Ok(value_of(found[-1].value) if found else None)
            case "read", [int(first), int(last)]:
                found = await self._watched(key, first, last)
                return Ok([[event.modified, value_of(event.value)] for event in found])
        return unsupported(f, value)

    async def _transaction(self, key: str, f: str, value: Value) -> Outcome:
        if f != TRANSACTION:
            return unsupported(f, value)
        names = keys_of(value)
        for _ in range(TRANSACTION_ATTEMPTS):
            try:
                entries, revision = await asyncio.wait_for(self._snapshot(key, names), READ_TIMEOUT_S)
                state = {name: value_of(entry.value) if entry else None for name, entry in entries.items()}
                answer, written = applied(value, state)
            except (TimeoutError, NoAnswer, Refused) as error:  # it only read
                return Fail(f"not-read: {error or 'no answer in time'}")
            if not written:
                return Ok(answer, order=revision)
            compared = {Compares.ALL: names, Compares.WRITTEN: list(written), Compares.NONE: []}[self._compares]
            found = await self._if(
                [_same(f"{key}/{name}", entries[name]) for name in compared],
                [_put(f"{key}/{name}", json.dumps(new)) for name, new in written.items()],
            )
            if found is not None:
                return Ok(answer, order=found)
        return Fail(f"{CONFLICT}: others changed its keys in each of {TRANSACTION_ATTEMPTS} attempts")

    async def _snapshot(self, key: str, names: list[str]) -> tuple[dict[str, Entry | None], int]:
        """Returns the entries of keys, all from one revision, and this revision."""
        ranges = [
            {"requestRange": {"key": encoded(f"{key}/{name}"), "serializable": self._serializable}} for name in names
        ]
        answer = await self._call("kv/txn", {"success": ranges})
        found = answer.ranges(len(names))
        entries = {name: some[0] if some else None for name, some in zip(names, found, strict=True)}
        return entries, answer.header().number("revision")

    async def _watched(self, key: str, first: int, last: int) -> list[Entry]:
        """Returns the events that a watch shows from a revision on, up to the last change that a range knows."""
        entries = await self._get(key)
        newest = min(last, entries[0].modified if entries else 0)
        watch = self._watches.get(key)
        if watch is None or watch.following != first:
            await self._unwatch(key)
            watch = self._watches[key] = Watch(self.node.address, key, first)
        try:
            await asyncio.wait_for(watch.until(newest), WATCH_TIMEOUT_S)
        except TimeoutError:
            raise NoAnswer(f"the watch is behind: it has not shown revision {newest} of the key") from None
        except NoAnswer:
            await self._unwatch(key)
            raise
        return watch.take(last)

    async def _unwatch(self, key: str) -> None:
        watch = self._watches.pop(key, None)
        if watch is not None:
            await watch.close()

    async def _call(self, method: str, request: dict[str, Value]) -> Answer:
        return await self._gateway.call(method, request)

    async def _get(self, key: str) -> list[Entry]:
        request = {"key": encoded(key), "serializable": self._serializable}
        return (await self._call("kv/range", request)).entries()

    async def _elements(self, prefix: str) -> Outcome:
        answer = await self._call(
            "kv/range", {"key": encoded(prefix), "range_end": after(prefix), "serializable": self._serializable}
        )
        entries = answer.entries()
        last = max((entry.modified for entry in entries), default=None)
        return Ok([value_of(entry.key.removeprefix(prefix)) for entry in entries], order=last)

    async def _if(self, compare: list[dict[str, Value]], then: list[dict[str, Value]]) -> int | None:
        """Carries out requests if all comparisons hold. Returns the revision, or None if one does not hold."""
        answer = await self._call("kv/txn", {"compare": compare, "success": then})
        return answer.header().number("revision") if answer.flag("succeeded") else None

    async def _cas(self, key: str, expected: Value, new: Value) -> Outcome:
        compare = _absent(key) if expected is None else _holds(key, json.dumps(expected))
        revision = await self._if([compare], [_put(key, json.dumps(new))])
        if revision is None:
            return Fail(f"{CAS_MISMATCH}: it does not hold {json.dumps(expected)[:100]}")
        return Ok([expected, new], order=revision)

    async def _add(self, key: str, amount: int) -> Outcome:
        for _ in range(ADD_ATTEMPTS):
            try:
                entries = await asyncio.wait_for(self._linearizable(key), READ_TIMEOUT_S)
            except (TimeoutError, NoAnswer, Refused) as error:  # it only read
                return Fail(f"not-read: {error or 'no answer in time'}")
            total = (value_of(entries[0].value) if entries else 0) + amount
            compare = _same(key, entries[0] if entries else None)
            revision = await self._if([compare], [_put(key, json.dumps(total))])
            if revision is not None:
                return Ok(amount, order=revision)
        return Fail(f"contended: others changed the counter in each of {ADD_ATTEMPTS} attempts")

    async def _linearizable(self, key: str) -> list[Entry]:
        return (await self._call("kv/range", {"key": encoded(key)})).entries()

    async def _acquire(self, key: str) -> Outcome:
        self._acquires += 1
        mine = f"{self._owner}/{self._acquires}"
        put = _put(key, mine)
        if self._lease_s is not None:
            try:
                granted = await self._call("lease/grant", {"TTL": math.ceil(self._lease_s)})
            except (NoAnswer, Refused) as error:  # a lease alone locks nothing
                return Fail(f"no-lease: {error}")
            put["requestPut"]["lease"] = granted.number("ID")
        revision = await self._if([_absent(key)], [put])
        if revision is None:
            return Fail(f"{HELD}: another client holds it")
        self._held[key] = mine
        return Ok(revision if self._fencing else None, order=revision)

    async def _release(self, key: str, token: Value) -> Outcome:
        if isinstance(token, int):
            compare = {"key": encoded(key), "target": "CREATE", "result": "EQUAL", "createRevision": str(token)}
        else:
            compare = _holds(key, self._held.get(key, ""))
        revision = await self._if([compare], [{"requestDeleteRange": {"key": encoded(key)}}])
        return Fail(f"{NOT_HELD}: the lock is free, or another client holds it") if revision is None else Ok(token)


def _put(key: str, value: str) -> dict[str, Value]:
    return {"requestPut": {"key": encoded(key), "value": encoded(value)}}


def _absent(key: str) -> dict[str, Value]:
    return {"key": encoded(key), "target": "CREATE", "result": "EQUAL", "createRevision": "0"}


def _holds(key: str, value: str) -> dict[str, Value]:
    return {"key": encoded(key), "target": "VALUE", "result": "EQUAL", "value": encoded(value)}


def _same(key: str, entry: Entry | None) -> dict[str, Value]:
    """Returns the comparison that a key is as it was read; None: that it does not exist."""
    if entry is None:
        return _absent(key)
    return {"key": encoded(key), "target": "MOD", "result": "EQUAL", "modRevision": str(entry.modified)}


def _read(entries: list[Entry]) -> Ok:
    """Returns the outcome of a read of one key: null if it does not exist."""
    return Ok(value_of(entries[0].value), order=entries[0].modified) if entries else Ok(None)


def _written(answer: Answer, value: Value) -> Ok | Info:
    return Ok(value, order=answer.header().number("revision"))
