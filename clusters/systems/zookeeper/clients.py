"""The clients of ZooKeeper, with a class for each workload.

Source: ZooKeeper's documentation, "ZooKeeper Recipes and Solutions".
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, unquote

from clusters.kit.answers import NoAnswer, NotDone, NotSent, RefusedByCode
from clusters.kit.contracts import (
    NOT_HELD,
    Counters,
    Done,
    Locks,
    Queues,
    Registers,
    Seen,
    Sets,
    Transactions,
    by_workload,
)
from clusters.kit.stored import value_of
from clusters.systems.zookeeper.client import ANY_VERSION, ATTEMPTS, ROOT, ZooKeeperClient, encoded, path_of
from clusters.systems.zookeeper.outcomes import BAD_VERSION, NO_NODE, NODE_EXISTS
from clusters.systems.zookeeper.transactions import Multi

if TYPE_CHECKING:
    from clusters.kit.transactions import Mops
    from clusters.systems.zookeeper.client import Common
    from clusters.systems.zookeeper.options import Checks
    from harness.node import Node
    from harness.op import Value

EPHEMERAL: Final = 1
SEQUENCE: Final = 2
LOCK: Final = "l-"
SESSION_PART: Final = 2 / 3  # of its timeout, after which a client of ZooKeeper takes its session for lost


class ZooKeeperRegisters(ZooKeeperClient, Registers):
    """A register is a znode. A compare-and-set reads it, and sets it if its version is still the same."""

    serves = "read is sync and getData, write is setData, cas is setData with the version of a getData"

    async def read(self, key: str) -> Seen:
        """Reads the znode."""
        path = path_of(key)
        await self._catch_up(path)
        znode = await self._seen(path)
        return Seen(znode.value, znode.zxid)

    async def write(self, key: str, value: Value) -> Done:
        """Sets the znode, or creates it."""
        path = path_of(key)
        for _ in range(ATTEMPTS):
            try:
                return Done(await self._change(path, value, ANY_VERSION))
            except RefusedByCode as error:
                if error.code != NO_NODE:
                    raise
            try:
                return Done((await self._create_below(ROOT, path, encoded(value), 0))[1])
            except RefusedByCode as error:
                if error.code != NODE_EXISTS:
                    raise
        raise NotSent(f"{path} was neither there nor absent in {ATTEMPTS} attempts")

    async def cas(self, key: str, expected: Value, new: Value) -> Done | None:
        """Sets the znode if it has the expected value and does not change meanwhile."""
        path = path_of(key)
        try:
            if expected is None:
                return Done((await self._create_below(ROOT, path, encoded(new), 0))[1])
            znode = await self._before(path)
            if znode.version is None or znode.value != expected:
                return None
            return Done(await self._change(path, new, znode.version))
        except RefusedByCode as error:
            if error.code in {BAD_VERSION, NODE_EXISTS}:
                return None
            raise


class ZooKeeperSets(ZooKeeperClient, Sets):
    """A set is a znode with a child for each element."""

    serves = "add creates a child for the element; read is sync and getChildren"

    async def add(self, key: str, element: Value) -> Done:
        """Creates the child of the element."""
        path = path_of(key)
        name = quote(json.dumps(element), safe="")
        return Done((await self._create_below(path, f"{path}/{name}", b"", 0))[1])

    async def read(self, key: str) -> Seen:
        """Lists the children."""
        path = path_of(key)
        await self._catch_up(path)
        names, zxid = await self._children(path)
        return Seen([value_of(unquote(name)) for name in names], zxid)


class ZooKeeperCounters(ZooKeeperClient, Counters):
    """A counter is a znode. An add reads it, and sets the sum if its version is still the same; else it tries again."""

    serves = "add is setData of the sum with the version of a getData; read is sync and getData"

    async def add(self, key: str, amount: int) -> Done:
        """Adds to the value of the znode."""
        path = path_of(key)
        for _ in range(ATTEMPTS):
            znode = await self._before(path)
            try:
                if znode.version is None:
                    return Done((await self._create_below(ROOT, path, encoded(amount), 0))[1])
                return Done(await self._change(path, znode.value + amount, znode.version))
            except RefusedByCode as error:
                if error.code not in {BAD_VERSION, NODE_EXISTS}:
                    raise
        raise NotDone("contended", f"others changed the counter in each of {ATTEMPTS} attempts")

    async def read(self, key: str) -> Seen:
        """Reads the znode."""
        path = path_of(key)
        await self._catch_up(path)
        znode = await self._seen(path)
        return Seen(znode.value, znode.zxid)


class ZooKeeperLocks(ZooKeeperClient, Locks):
    """A lock is the recipe: an ephemeral child with a sequence number; the client of the lowest one holds the lock.

    A client whose child is not the lowest removes it, and does not wait.
    """

    serves = "acquire creates an ephemeral child with a number, release deletes it; the lowest holds the lock"

    def __init__(self, node: Node, common: Common, *, owner: str, fencing: bool) -> None:
        """Connects with the first operation.

        Args:
            node: The node.
            common: What the clients of all workloads need. The timeout of the session is the lease of the locks.
            owner: A text that no other client of the run has.
            fencing: Whether an acquire returns a fencing token.
        """
        super().__init__(node, common)
        self.fencing = fencing
        self._owner = owner
        self._held: dict[str, tuple[int, str]] = {}  # by lock, the token and the path of this client's child

    async def acquire(self, key: str) -> Seen | None:
        """Creates a child, and removes it again if it is not the lowest. The token is its sequence number.

        A node that hung may answer when the session has long ended and another client holds the lock. So a client of ZooKeeper
        takes its session for lost after a part of the timeout, counted from its request.
        """
        path = path_of(key)
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
            return None
        if self._connection.sessions != sessions:
            raise NoAnswer("the session that created the child is lost")
        token = int(name.removeprefix(LOCK))
        self._held[path] = token, mine
        return Seen(token, zxid)

    async def release(self, key: str, token: Value) -> Done | None:
        """Removes the child of this client."""
        path = path_of(key)
        own, mine = self._held.get(path, (0, ""))
        if not mine or (token is not None and token != own):
            raise NotDone(NOT_HELD, "this client has no child with this token")
        try:
            await self._delete(mine)
        except RefusedByCode as error:
            if error.code == NO_NODE:
                raise NotDone(NOT_HELD, "the session that held it has ended") from error
            raise
        del self._held[path]
        return Done()


class ZooKeeperQueues(ZooKeeperClient, Queues):
    """A queue is the recipe: a child with a sequence number for each value; a dequeue removes the lowest one."""

    serves = "enqueue creates a child with a number, dequeue deletes the lowest, drain deletes all at once"

    async def enqueue(self, key: str, value: Value) -> Done:
        """Creates a child."""
        path = path_of(key)
        await self._create_below(path, f"{path}/q-", encoded(value), SEQUENCE)
        return Done()

    async def dequeue(self, key: str) -> Seen | None:
        """Removes the lowest child that no other client takes first."""
        for _ in range(ATTEMPTS):
            children = await self._listed(path_of(key))
            if not children:
                return None
            for child in children:
                znode = await self._before(child)
                if znode.version is None:
                    continue
                try:
                    await self._delete(child)
                except RefusedByCode as error:
                    if error.code != NO_NODE:
                        raise
                else:
                    return Seen(znode.value)
        raise NotDone("contended", f"others took each value in {ATTEMPTS} attempts")

    async def drain(self, key: str) -> Seen:
        """Removes all values in one transaction."""
        from kazoo.protocol.serialization import Delete, GetData, Transaction  # noqa: PLC0415

        for _ in range(ATTEMPTS):
            children = await self._listed(path_of(key))
            if not children:
                return Seen([])
            answers = await self._connection.calls([GetData(child, False) for child in children])  # noqa: FBT003
            if any(isinstance(answer, RefusedByCode) for answer in answers):
                continue  # somebody took one meanwhile
            try:
                done = await self._connection.call(Transaction([Delete(child, ANY_VERSION) for child in children]))
            except RefusedByCode as error:
                if error.code != NO_NODE:
                    raise
                continue
            if all(part is True for part in done):
                return Seen([value_of(data.decode(errors="replace")) for data, _ in answers])
        raise NotDone("contended", f"others took values in {ATTEMPTS} attempts")

    async def _listed(self, path: str) -> list[str]:
        """Returns the paths of the values in a queue, in order, as the first step of a change; see `_before`."""
        try:
            async with asyncio.timeout(self.read_timeout_s):
                await self._catch_up(path)
                return [f"{path}/{name}" for name in sorted((await self._children(path))[0])]
        except (TimeoutError, NoAnswer) as error:
            raise NotSent(f"not read: {error or 'no answer in time'}") from error


class ZooKeeperTransactions(ZooKeeperClient, Transactions):
    """A transaction is reads, and a multi; see `clusters.systems.zookeeper.transactions`."""

    serves = "txn reads each key, and a multi checks versions and writes"

    def __init__(self, node: Node, common: Common, *, checks: Checks) -> None:
        """Connects with the first operation.

        Args:
            node: The node.
            common: What the clients of all workloads need.
            checks: Which znodes of a transaction a multi checks.
        """
        super().__init__(node, common)
        self._multi = Multi(self._connection, checks, catch_up=self._catch_up, create_below=self._create_below)

    async def carry_out(self, key: str, mops: Mops) -> Seen:
        """Carries out a transaction on the znodes below that of the key."""
        return await self._multi.carry_out(path_of(key), mops)


CLIENTS: Final = by_workload(
    ZooKeeperRegisters, ZooKeeperSets, ZooKeeperCounters, ZooKeeperLocks, ZooKeeperTransactions, ZooKeeperQueues
)
