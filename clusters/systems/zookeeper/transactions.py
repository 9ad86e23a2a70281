"""Transactions over several znodes: reads, and a multi that checks the versions and writes.

A key is a znode that holds a list or a value. ZooKeeper reads one znode at a time, so the reads of a transaction may be of
different moments. A multi then carries out all its parts or none: a check of the version of each znode that was only read, and
a setData with the version of each one that is written. If no znode has changed since it was read, the transaction took place
at the moment of the multi. Otherwise nothing is written, and the client begins again.

A check needs a znode. So the client creates one without data for a key that is absent. It stands for the initial value.

Source: ZooKeeper 3.9.3, `PrepRequestProcessor` (a multi with a part that fails becomes one of errors) and `DataTree`.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from clusters.kit.answers import NoAnswer, NotDone, NotSent, RefusedByCode
from clusters.kit.contracts import CONFLICT, Seen
from clusters.kit.stored import value_of
from clusters.kit.transactions import applied, keys_of
from clusters.systems.zookeeper.options import Checks
from clusters.systems.zookeeper.outcomes import NO_NODE, NODE_EXISTS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from clusters.kit.transactions import Mops
    from clusters.systems.zookeeper.connection import Connection
    from harness.op import Value

ATTEMPTS: Final = 10
READ_TIMEOUT_S: Final = 4.0


class Multi:
    """Carries out transactions through one connection."""

    def __init__(
        self,
        connection: Connection,
        checks: Checks,
        *,
        catch_up: Callable[[str], Awaitable[None]],
        create_below: Callable[[str, str, bytes, int], Awaitable[object]],
    ) -> None:
        """Takes what it uses of a client.

        Args:
            connection: The connection.
            checks: Which znodes a multi checks.
            catch_up: Lets the node catch up before reads.
            create_below: Creates a znode, and its parent first if that is absent.
        """
        self._connection = connection
        self._checks = checks
        self._catch_up = catch_up
        self._create_below = create_below

    async def carry_out(self, parent: str, mops: Mops) -> Seen:
        """Carries out a transaction on znodes below a parent."""
        paths = {name: f"{parent}/{quote(name, safe='')}" for name in keys_of(mops)}
        for _ in range(ATTEMPTS):
            try:
                async with asyncio.timeout(READ_TIMEOUT_S):
                    values, versions = await self._read(parent, paths)
                answer, written = applied(mops, values)
            except (TimeoutError, NoAnswer, NotSent, RefusedByCode) as error:  # it only read
                raise NotDone("not-read", f"{error or 'no answer in time'}") from error
            done, zxid = await self._commit(paths, versions, written)
            if done:
                return Seen(answer, zxid)
        raise NotDone(CONFLICT, f"others changed its keys in each of {ATTEMPTS} attempts")

    async def _read(self, parent: str, paths: Mapping[str, str]) -> tuple[dict[str, Value], dict[str, int]]:
        """Returns the values and the versions of keys, each of a moment of its own."""
        await self._catch_up(parent)
        values: dict[str, Value] = {}
        versions: dict[str, int] = {}
        for name, path in paths.items():
            data, version = await self._seen(parent, path)
            values[name] = value_of(data.decode(errors="replace")) if data else None
            versions[name] = version
        return values, versions

    async def _seen(self, parent: str, path: str) -> tuple[bytes, int]:
        """Returns the data and the version of a znode; it is created if it is absent."""
        from kazoo.protocol.serialization import GetData  # noqa: PLC0415 - an extra, which only runs of ZooKeeper need

        for may_create in (True, False):
            try:
                data, stat = await self._connection.call(GetData(path, False))  # noqa: FBT003 - no watch
            except RefusedByCode as error:
                if error.code != NO_NODE or not may_create:
                    raise
            else:
                return data or b"", stat.version
            try:
                await self._create_below(parent, path, b"", 0)
            except RefusedByCode as error:
                if error.code != NODE_EXISTS:
                    raise
        raise AssertionError

    async def _commit(
        self, paths: Mapping[str, str], versions: Mapping[str, int], written: Mapping[str, Value]
    ) -> tuple[bool, int | None]:
        """Carries out the multi; returns whether no znode that it checks has changed, and its zxid if it wrote.

        All parts of a multi have one zxid; the statistics in the answer to a setData have it as that of the last change.
        """
        from kazoo.protocol.serialization import CheckVersion, SetData, Transaction  # noqa: PLC0415

        parts: list[Any] = [
            SetData(paths[name], json.dumps(value).encode(), versions[name]) for name, value in written.items()
        ]
        if self._checks is Checks.ALL:
            parts += [CheckVersion(path, versions[name]) for name, path in paths.items() if name not in written]
        if not parts:
            return True, None
        done = await self._connection.call(Transaction(parts))
        if any(isinstance(result, Exception) for result in done):
            return False, None
        return True, int(done[0].mzxid) if written else None
