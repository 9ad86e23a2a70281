"""The client of ZooKeeper: one session of one process at one node, for each workload but transactions.

Every node serves every request, so a client stays at its node. The order of an operation is a zxid: that of the change that it
made, or of the last change that it saw.

- A register is a znode. A compare-and-set reads it, and sets it if its version is still the same.
- A set is a znode with a child for each element.
- A counter is a znode. An add reads it, and sets the sum if its version is still the same; it tries again if it is not.
- A lock is the recipe: an ephemeral child with a sequence number; the client of the lowest one holds the lock. A client whose
  child is not the lowest removes it, and does not wait.
- A queue is the recipe: a child with a sequence number for each value; a dequeue removes the lowest one.
- `clusters.systems.zookeeper.transactions` carries out transactions.

Source: ZooKeeper's documentation, "ZooKeeper Recipes and Solutions" and "Consistency Guarantees".
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import quote, unquote

from clusters.kit.answers import NoAnswer, NotSent, RefusedByCode, carried_out, unsupported
from clusters.kit.stored import value_of
from clusters.kit.transactions import LIST_APPEND, RW_REGISTER, TRANSACTION, only_reads
from clusters.systems.zookeeper.connection import Connection
from clusters.systems.zookeeper.options import Checks, Reads
from clusters.systems.zookeeper.outcomes import (
    BAD_VERSION,
    CAS_MISMATCH,
    EMPTY,
    HELD,
    NO_NODE,
    NODE_EXISTS,
    NOT_HELD,
    refused,
)
from clusters.systems.zookeeper.transactions import Transactions
from harness.op import ONLY_KEY, Fail, Ok

if TYPE_CHECKING:
    from harness.node import Node
    from harness.op import Invocation, Outcome, Value

ROOT: Final = "/labrys"
READ_TIMEOUT_S: Final = 4.0
ATTEMPTS: Final = 30
ANY_VERSION: Final = -1
EPHEMERAL: Final = 1
SEQUENCE: Final = 2
LOCK: Final = "l-"
SESSION_PART: Final = 2 / 3  # of its timeout, after which a client of ZooKeeper takes its session for lost


class Seen(NamedTuple):
    """A znode as a node holds it.

    Attributes:
        value: Its value; None if the znode does not exist.
        version: The number of its changes; None if it does not exist.
        zxid: Its last change; None if it does not exist.
    """

    value: Value
    version: int | None
    zxid: int | None


class ZooKeeperClient:
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
        session_ms: int,
        owner: str,
        tells_creations: bool,
        checks: Checks = Checks.ALL,
    ) -> None:
        """Connects with the first operation.

        Args:
            node: The node.
            workload: The workload.
            reads: What precedes a read.
            fencing: Whether an acquire returns a fencing token.
            session_ms: The timeout of a session in milliseconds.
            owner: A text that no other client of the run has.
            tells_creations: Whether the release answers a creation with its zxid, as all since 3.5 do.
            checks: Which znodes of a transaction a multi checks.
        """
        self.node = node
        self._workload = workload
        self._reads = reads
        self._fencing = fencing
        self._owner = owner
        self._tells_creations = tells_creations
        self._held: dict[str, tuple[int, str]] = {}  # by lock, the token and the path of this client's child
        self._connection = Connection(node.address, session_ms=session_ms)
        self._transactions = Transactions(
            self._connection, checks, catch_up=self._catch_up, create_below=self._create_below
        )

    async def invoke(self, invocation: Invocation) -> Outcome:
        """Carries out an operation of the workload."""
        is_read = invocation.f == "read" or (invocation.f == TRANSACTION and only_reads(invocation.value))
        operation = self._carry_out(invocation)
        try:
            return await carried_out(operation, self.node, is_read=is_read, read_timeout_s=READ_TIMEOUT_S)
        except RefusedByCode as error:
            return refused(error.code, is_read=is_read)

    async def close(self) -> None:
        """Ends the session, and closes the connection."""
        await self._connection.close()

    async def _carry_out(self, invocation: Invocation) -> Outcome:
        operations = {
            "register": self._register,
            "set": self._set,
            "counter": self._counter,
            "lock": self._lock,
            "queue": self._queue,
            LIST_APPEND: self._transaction,
            RW_REGISTER: self._transaction,
        }
        path = f"{ROOT}/{quote(invocation.key or ONLY_KEY, safe='')}"
        return await operations[self._workload](path, invocation.f, invocation.value)

    async def _register(self, path: str, f: str, value: Value) -> Outcome:
        match f, value:
            case "read", _:
                return await self._read(path, None)
            case "write", _:
                return Ok(value, order=await self._write(path, value))
            case "cas", [expected, new]:
                return await self._cas(path, expected, new)
        return unsupported(f, value)

    async def _set(self, path: str, f: str, value: Value) -> Outcome:
        match f:
            case "add":
                name = quote(json.dumps(value), safe="")
                _, zxid = await self._create_below(path, f"{path}/{name}", b"", 0)
                return Ok(value, order=zxid)
            case "read":
                await self._catch_up(path)
                names, zxid = await self._children(path)
                return Ok([value_of(unquote(name)) for name in names], order=zxid)
        return unsupported(f, value)

    async def _counter(self, path: str, f: str, value: Value) -> Outcome:
        match f, value:
            case "add", int(amount):
                return await self._add(path, amount)
            case "read", _:
                return await self._read(path, 0)
        return unsupported(f, value)

    async def _lock(self, path: str, f: str, value: Value) -> Outcome:
        match f:
            case "acquire":
                return await self._acquire(path)
            case "release":
                return await self._release(path, value)
        return unsupported(f, value)

    async def _queue(self, path: str, f: str, value: Value) -> Outcome:
        match f:
            case "enqueue":
                await self._create_below(path, f"{path}/q-", _encoded(value), SEQUENCE)
                return Ok(value)
            case "dequeue":
                return await self._dequeue(path)
            case "drain":
                return await self._drain(path)
        return unsupported(f, value)

    async def _transaction(self, path: str, f: str, value: Value) -> Outcome:
        if f != TRANSACTION:
            return unsupported(f, value)
        return await self._transactions.carry_out(path, value)

    async def _catch_up(self, path: str) -> None:
        """Lets the node catch up before a read, as the options say."""
        from kazoo.protocol.serialization import SetData, Sync  # noqa: PLC0415 - an extra, which only runs of ZooKeeper need

        match self._reads:
            case Reads.SYNC:
                await self._connection.call(Sync(path))
            case Reads.QUORUM:
                try:
                    await self._connection.call(SetData(ROOT, b"", ANY_VERSION))
                except RefusedByCode as error:
                    if error.code != NO_NODE:
                        raise
                    await self._make(ROOT)
            case Reads.LOCAL:
                pass

    async def _seen(self, path: str) -> Seen:
        """Returns a znode from the node's own state."""
        from kazoo.protocol.serialization import GetData  # noqa: PLC0415

        try:
            data, stat = await self._connection.call(GetData(path, False))  # noqa: FBT003 - no watch
        except RefusedByCode as error:
            if error.code != NO_NODE:
                raise
            return Seen(None, None, None)
        return Seen(value_of((data or b"").decode(errors="replace")), stat.version, stat.mzxid)

    async def _children(self, path: str) -> tuple[list[str], int | None]:
        """Returns the names of the children of a znode from the node's own state, and the last change of them."""
        from kazoo.protocol.serialization import GetChildren2  # noqa: PLC0415

        try:
            names, stat = await self._connection.call(GetChildren2(path, False))  # noqa: FBT003 - no watch
        except RefusedByCode as error:
            if error.code != NO_NODE:
                raise
            return [], None
        return names, stat.pzxid

    async def _read(self, path: str, absent: Value) -> Outcome:
        await self._catch_up(path)
        seen = await self._seen(path)
        return Ok(absent if seen.version is None else seen.value, order=seen.zxid)

    async def _change(self, path: str, value: Value, version: int) -> int:
        """Sets a znode of a version, and returns the zxid."""
        from kazoo.protocol.serialization import SetData  # noqa: PLC0415

        stat = await self._connection.call(SetData(path, _encoded(value), version))
        return int(stat.mzxid)

    async def _create(self, path: str, data: bytes, flags: int) -> tuple[str, int | None]:
        """Creates a znode, and returns its path, and the zxid if the node tells it."""
        from kazoo.protocol.serialization import Create, Create2  # noqa: PLC0415
        from kazoo.security import OPEN_ACL_UNSAFE  # noqa: PLC0415

        if not self._tells_creations:
            return await self._connection.call(Create(path, data, OPEN_ACL_UNSAFE, flags)), None
        made, stat = await self._connection.call(Create2(path, data, OPEN_ACL_UNSAFE, flags))
        return made, int(stat.czxid)

    async def _make(self, path: str) -> None:
        """Makes sure that a znode without a value exists.

        Raises:
            NotSent: It is not known whether it exists. No workload sees it, so this changes nothing.
        """
        try:
            await self._create(path, b"", 0)
        except NoAnswer as error:
            raise NotSent(f"{path} may be absent: {error}") from error
        except RefusedByCode as error:
            if error.code != NODE_EXISTS:
                raise

    async def _create_below(self, parent: str, path: str, data: bytes, flags: int) -> tuple[str, int | None]:
        """Creates a znode, and its parents first if they are absent."""
        for missing in (ROOT, parent):
            try:
                return await self._create(path, data, flags)
            except RefusedByCode as error:
                if error.code != NO_NODE:
                    raise
                await self._make(missing)
        return await self._create(path, data, flags)

    async def _write(self, path: str, value: Value) -> int | None:
        for _ in range(ATTEMPTS):
            try:
                return await self._change(path, value, ANY_VERSION)
            except RefusedByCode as error:
                if error.code != NO_NODE:
                    raise
            try:
                return (await self._create_below(ROOT, path, _encoded(value), 0))[1]
            except RefusedByCode as error:
                if error.code != NODE_EXISTS:
                    raise
        raise NotSent(f"{path} was neither there nor absent in {ATTEMPTS} attempts")

    async def _cas(self, path: str, expected: Value, new: Value) -> Outcome:
        mismatch = Fail(f"{CAS_MISMATCH}: it does not hold {json.dumps(expected)[:100]}")
        try:
            if expected is None:
                return Ok([expected, new], order=(await self._create_below(ROOT, path, _encoded(new), 0))[1])
            seen = await self._before(path)
            if seen.version is None or seen.value != expected:
                return mismatch
            return Ok([expected, new], order=await self._change(path, new, seen.version))
        except RefusedByCode as error:
            if error.code in {BAD_VERSION, NODE_EXISTS}:
                return mismatch
            raise

    async def _before(self, path: str) -> Seen:
        """Returns a znode as the first step of a change, which changes nothing.

        Raises:
            NotSent: The node did not answer.
        """
        try:
            async with asyncio.timeout(READ_TIMEOUT_S):
                await self._catch_up(path)
                return await self._seen(path)
        except (TimeoutError, NoAnswer) as error:
            raise NotSent(f"not read: {error or 'no answer in time'}") from error

    async def _add(self, path: str, amount: int) -> Outcome:
        for _ in range(ATTEMPTS):
            seen = await self._before(path)
            try:
                if seen.version is None:
                    return Ok(amount, order=(await self._create_below(ROOT, path, _encoded(amount), 0))[1])
                return Ok(amount, order=await self._change(path, seen.value + amount, seen.version))
            except RefusedByCode as error:
                if error.code not in {BAD_VERSION, NODE_EXISTS}:
                    raise
        return Fail(f"contended: others changed the counter in each of {ATTEMPTS} attempts")

    async def _acquire(self, path: str) -> Outcome:
        """Creates a child, and removes it again if it is not the lowest.

        A node that hung may answer when the session has long ended and another client holds the lock. So a client of ZooKeeper
        takes its session for lost after a part of the timeout, counted from its request.
        """
        if self._connection.session_s == 0:
            await self._make(ROOT)  # opens a session, whose timeout is then known
        try:
            async with asyncio.timeout(self._connection.session_s * SESSION_PART):
                mine, zxid = await self._create_below(
                    path, f"{path}/{LOCK}", self._owner.encode(), EPHEMERAL | SEQUENCE
                )
                sessions = self._connection.sessions
                names, _ = await self._children(path)
        except TimeoutError:
            raise NoAnswer("the session may have ended before the answer") from None
        name = mine.rpartition("/")[2]
        if name != min(names, default=None):
            await self._delete(mine)
            return Fail(f"{HELD}: another client holds it")
        if self._connection.sessions != sessions:
            raise NoAnswer("the session that created the child is lost")
        token = int(name.removeprefix(LOCK))
        self._held[path] = token, mine
        return Ok(token if self._fencing else None, order=zxid)

    async def _release(self, path: str, token: Value) -> Outcome:
        own, mine = self._held.get(path, (0, ""))
        if not mine or (token is not None and token != own):
            return Fail(f"{NOT_HELD}: this client has no child with this token")
        try:
            await self._delete(mine)
        except RefusedByCode as error:
            if error.code == NO_NODE:
                return Fail(f"{NOT_HELD}: the session that held it has ended")
            raise
        del self._held[path]
        return Ok(token)

    async def _delete(self, path: str) -> None:
        from kazoo.protocol.serialization import Delete  # noqa: PLC0415

        await self._connection.call(Delete(path, ANY_VERSION))

    async def _listed(self, path: str) -> list[str]:
        """Returns the paths of the values in a queue, in order, as the first step of a change; see `_before`."""
        try:
            async with asyncio.timeout(READ_TIMEOUT_S):
                await self._catch_up(path)
                return [f"{path}/{name}" for name in sorted((await self._children(path))[0])]
        except (TimeoutError, NoAnswer) as error:
            raise NotSent(f"not read: {error or 'no answer in time'}") from error

    async def _dequeue(self, path: str) -> Outcome:
        for _ in range(ATTEMPTS):
            found = await self._listed(path)
            if not found:
                return Fail(f"{EMPTY}: the queue has no value")
            for each in found:
                seen = await self._before(each)
                if seen.version is None:
                    continue
                try:
                    await self._delete(each)
                except RefusedByCode as error:
                    if error.code != NO_NODE:
                        raise
                else:
                    return Ok(seen.value)
        return Fail(f"contended: others took each value in {ATTEMPTS} attempts")

    async def _drain(self, path: str) -> Outcome:
        """Removes all values in one transaction."""
        from kazoo.protocol.serialization import Delete, GetData, Transaction  # noqa: PLC0415

        for _ in range(ATTEMPTS):
            found = await self._listed(path)
            if not found:
                return Ok([])
            answers = await self._connection.calls([GetData(each, False) for each in found])  # noqa: FBT003
            if any(isinstance(each, RefusedByCode) for each in answers):
                continue  # somebody took one meanwhile
            try:
                done = await self._connection.call(Transaction([Delete(each, ANY_VERSION) for each in found]))
            except RefusedByCode as error:
                if error.code != NO_NODE:
                    raise
                continue
            if all(each is True for each in done):
                return Ok([value_of(data.decode(errors="replace")) for data, _ in answers])
        return Fail(f"contended: others took values in {ATTEMPTS} attempts")


def _encoded(value: Value) -> bytes:
    return json.dumps(value).encode()
