"""The base of the clients of ZooKeeper: one session of one process at one node.

Every node serves every request, so a client stays at its node. The order of an operation is a zxid: that of the change that it
made, or of the last change that it saw.

Source: ZooKeeper's documentation, "Consistency Guarantees".
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import quote

from clusters.kit.answers import NoAnswer, NotSent, RefusedByCode
from clusters.kit.contracts import Contract
from clusters.kit.stored import value_of
from clusters.systems.zookeeper.connection import Connection
from clusters.systems.zookeeper.options import Reads
from clusters.systems.zookeeper.outcomes import NO_NODE, NODE_EXISTS, WRITE_NEVER_HAPPENED

if TYPE_CHECKING:
    from harness.node import Node
    from harness.op import Value

ROOT: Final = "/labrys"
ATTEMPTS: Final = 30
ANY_VERSION: Final = -1


class Znode(NamedTuple):
    """A znode as a node holds it.

    Attributes:
        value: Its value; None if the znode does not exist.
        version: The number of its changes; None if it does not exist.
        zxid: Its last change; None if it does not exist.
    """

    value: Value
    version: int | None
    zxid: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Common:
    """What the clients of all workloads need.

    Attributes:
        reads: What precedes a read.
        session_ms: The timeout of a session in milliseconds.
        tells_creations: Whether the release answers a creation with its zxid, as all since 3.5 do.
    """

    reads: Reads
    session_ms: int
    tells_creations: bool


class ZooKeeperClient(Contract):
    """A client that asks only its own node."""

    never_happened = WRITE_NEVER_HAPPENED
    read_timeout_s = 4.0

    def __init__(self, node: Node, common: Common) -> None:
        """Connects with the first operation."""
        self.node = node
        self._reads = common.reads
        self._tells_creations = common.tells_creations
        self._connection = Connection(node.address, session_ms=common.session_ms)

    async def close(self) -> None:
        """Ends the session, and closes the connection."""
        await self._connection.close()

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

    async def _seen(self, path: str) -> Znode:
        """Returns a znode from the node's own state."""
        from kazoo.protocol.serialization import GetData  # noqa: PLC0415

        try:
            data, stat = await self._connection.call(GetData(path, False))  # noqa: FBT003 - no watch
        except RefusedByCode as error:
            if error.code != NO_NODE:
                raise
            return Znode(None, None, None)
        return Znode(value_of((data or b"").decode(errors="replace")), stat.version, stat.mzxid)

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

    async def _change(self, path: str, value: Value, version: int) -> int:
        """Sets a znode of a version, and returns the zxid."""
        from kazoo.protocol.serialization import SetData  # noqa: PLC0415

        stat = await self._connection.call(SetData(path, encoded(value), version))
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

    async def _before(self, path: str) -> Znode:
        """Returns a znode as the first step of a change, which changes nothing.

        Raises:
            NotSent: The node did not answer.
        """
        try:
            async with asyncio.timeout(self.read_timeout_s):
                await self._catch_up(path)
                return await self._seen(path)
        except (TimeoutError, NoAnswer) as error:
            raise NotSent(f"not read: {error or 'no answer in time'}") from error

    async def _delete(self, path: str) -> None:
        from kazoo.protocol.serialization import Delete  # noqa: PLC0415

        await self._connection.call(Delete(path, ANY_VERSION))


def path_of(key: str) -> str:
    """Returns the path of the znode of a key."""
    return f"{ROOT}/{quote(key, safe='')}"


def encoded(value: Value) -> bytes:
    """Returns the data of a znode with a value."""
    return json.dumps(value).encode()
