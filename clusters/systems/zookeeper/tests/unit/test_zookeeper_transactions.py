"""Transactions of ZooKeeper's client: the level that each choice of checks gives."""

from __future__ import annotations

import asyncio
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from kazoo.exceptions import BadVersionError, RolledBackError
from kazoo.protocol.serialization import CheckVersion, GetData, SetData, Transaction

from checker.formats.columns import of_operations
from checker.transactions.judge import judge
from clusters.kit.answers import NoAnswer, RefusedByCode
from clusters.kit.contracts import Seen, Transactions
from clusters.systems.zookeeper.options import Checks
from clusters.systems.zookeeper.outcomes import NO_NODE
from clusters.systems.zookeeper.transactions import Multi
from harness.node import Node
from harness.op import Fail, Invocation, Ok
from tests.transacting import random_appends

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from harness.op import Operation, Outcome


class Stat(NamedTuple):
    """The part of a znode's statistics that the client uses."""

    version: int
    mzxid: int = 0


class Store:
    """One node's znodes; others come between each request and its answer."""

    def __init__(self) -> None:
        self.znodes: dict[str, tuple[bytes, int]] = {}
        self.zxid = 0

    async def call(self, request: Any) -> Any:
        """Answers a request of kazoo."""
        await asyncio.sleep(0)
        if isinstance(request, GetData):
            if request.path not in self.znodes:
                raise RefusedByCode(NO_NODE)
            data, version = self.znodes[request.path]
            return data, Stat(version)
        assert isinstance(request, Transaction)
        holds = all(self.znodes[part.path][1] == part.version for part in request.operations)
        if not holds:
            return [BadVersionError(), RolledBackError()]
        self.zxid += 1
        for part in request.operations:
            if isinstance(part, SetData):
                self.znodes[part.path] = part.data, part.version + 1
            else:
                assert isinstance(part, CheckVersion)
        return [Stat(9, self.zxid) if isinstance(part, SetData) else True for part in request.operations]

    async def catch_up(self, path: str) -> None:
        """Does nothing: there is one node."""

    async def create_below(self, parent: str, path: str, data: bytes, flags: int) -> None:
        """Creates a znode."""
        assert path.startswith(parent)
        assert not flags
        self.znodes.setdefault(path, (data, 0))


class Client(Transactions):
    """A client of a store in this process."""

    serves = "txn is reads and a multi"

    def __init__(self, store: Store, checks: Checks = Checks.ALL) -> None:
        self.node = Node(name="n1", address="127.0.0.1")
        self._multi = Multi(store, checks, catch_up=store.catch_up, create_below=store.create_below)  # type: ignore[arg-type]

    async def carry_out(self, key: str, mops: list[list[Any]]) -> Seen:
        """Carries out a transaction."""
        return await self._multi.carry_out(f"/{key}", mops)

    async def close(self) -> None:
        """Has no connection."""


async def outcome_of(client: Client, mops: list[Any]) -> Outcome:
    """Carries out a transaction, and returns what it becomes in the history."""
    return await client.invoke(Invocation("txn", mops, "p"))


def test_a_transaction_sees_its_own_writes() -> None:
    """An absent key is nil, also after a read has made its znode."""
    store = Store()
    mops: list[list[Any]] = [
        ["r", "x", None],
        ["append", "x", 1],
        ["append", "x", 2],
        ["r", "x", None],
        ["r", "y/", None],
    ]
    outcome = asyncio.run(outcome_of(Client(store), mops))
    assert outcome == Ok(
        [["r", "x", None], ["append", "x", 1], ["append", "x", 2], ["r", "x", [1, 2]], ["r", "y/", None]],
        order=1,
    )
    assert asyncio.run(outcome_of(Client(store), [["r", "y/", None]])) == Ok([["r", "y/", None]])
    assert store.znodes == {"/p/x": (b"[1, 2]", 1), "/p/y%2F": (b"", 0)}


@pytest.mark.parametrize(
    ("checks", "holds", "broken"),
    [
        (Checks.ALL, "strict-serializable", None),
        (Checks.WRITTEN, "cursor-stability", "consistent-view"),
    ],
)
def test_the_level_is_the_promised_one(checks: Checks, holds: str, broken: str | None) -> None:
    """Each choice of checks gives its level, and the random transactions show that it gives no stronger one."""
    random, verdicts = Random(38), set()
    for _ in range(20):
        history = of_operations(asyncio.run(_history(random, checks)))
        judgement = judge(history, workload="list-append", model=holds)
        assert str(judgement.verdict) == "valid", judgement.anomalies
        if broken:
            verdicts.add(str(judge(history, workload="list-append", model=broken).verdict))
    assert broken is None or "invalid" in verdicts


async def _history(random: Random, checks: Checks) -> list[Operation]:
    """Returns random transactions on one store."""
    store = Store()

    def made() -> Callable[[list[Any]], Awaitable[Outcome]]:
        own = Client(store, checks)
        return lambda mops: outcome_of(own, mops)

    return await random_appends(random, made)


@pytest.mark.parametrize("error", [NoAnswer("gone"), RefusedByCode(-4)])
def test_a_transaction_that_has_not_read_has_written_nothing(error: Exception) -> None:
    """It fails, whatever the error of its read is; what stands before the multi has no effect."""
    store = Store()

    async def catch_up(path: str) -> None:
        raise error

    store.catch_up = catch_up  # type: ignore[method-assign]
    outcome = asyncio.run(outcome_of(Client(store), [["append", "x", 1]]))
    assert isinstance(outcome, Fail)
    assert outcome.error.startswith("not-read: ")
    assert not store.znodes
