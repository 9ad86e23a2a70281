"""Transactions of etcd's client: the level that each choice of comparisons gives, and answers that are none of etcd's."""

from __future__ import annotations

import asyncio
import base64
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from checker.formats.columns import of_operations
from checker.transactions.judge import judge
from clusters.kit.answers import NoAnswer
from clusters.kit.transactions import applied, keys_of, only_reads
from clusters.systems.etcd.client import EtcdTransactions
from clusters.systems.etcd.gateway import Answer
from clusters.systems.etcd.options import Compares, Reads
from harness.node import Node
from harness.op import Fail, Info, Invocation, Ok
from tests.transacting import random_appends

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from harness.op import Operation, Outcome, Value

NODE = Node(name="n1", address="127.0.0.1")


class Store:
    """One node's keys behind `kv/txn`, which carries out one request at a time.

    Attributes:
        shows: Changes an answer before the client gets it.
    """

    def __init__(self) -> None:
        self.revision = 1
        self.kvs: dict[str, dict[str, str]] = {}
        self.shows: Callable[[dict[str, Any]], dict[str, Any]] = dict

    async def call(self, method: str, request: Mapping[str, Value]) -> Answer:
        """Answers a transaction; others come between the request and the answer."""
        assert method == "kv/txn"
        await asyncio.sleep(0)
        succeeded = all(self._holds(compare) for compare in request.get("compare", []))
        responses: list[dict[str, Any]] = []
        puts = [operation["requestPut"] for operation in request["success"] if "requestPut" in operation]
        if succeeded and puts:
            self.revision += 1
        for operation in request["success"] if succeeded else []:
            if "requestPut" in operation:
                self._put(operation["requestPut"])
                responses.append({"response_put": {}})
            else:
                known = self.kvs.get(operation["requestRange"]["key"])
                responses.append({"response_range": {"kvs": [known]} if known else {}})
        body = {"header": {"revision": str(self.revision)}, "succeeded": succeeded, "responses": responses}
        await asyncio.sleep(0)
        return Answer(self.shows(body))

    def _holds(self, compare: Mapping[str, str]) -> bool:
        known = self.kvs.get(compare["key"])
        if compare["target"] == "CREATE":
            return known is None
        return known is not None and known["mod_revision"] == compare["modRevision"]

    def _put(self, put: Mapping[str, str]) -> None:
        created = self.kvs.get(put["key"], {}).get("create_revision", str(self.revision))
        self.kvs[put["key"]] = {**put, "create_revision": created, "mod_revision": str(self.revision)}


def client(store: Store, compares: Compares = Compares.ALL) -> EtcdTransactions:
    """Returns a client of a store in this process."""
    made = EtcdTransactions(NODE, Reads.LINEARIZABLE, compares)
    made._gateway = store  # type: ignore[assignment]
    return made


def run(store: Store, *mops: list[Any]) -> Outcome:
    """Carries out one transaction."""
    return asyncio.run(client(store).invoke(Invocation("txn", list(mops), None)))


def test_a_transaction_sees_its_own_writes() -> None:
    """Reads after a write return it; the last write of a key is stored."""
    store = Store()
    outcome = run(store, ["r", "x", None], ["append", "x", 1], ["append", "x", 2], ["r", "x", None])
    assert isinstance(outcome, Ok)
    assert outcome.value == [["r", "x", None], ["append", "x", 1], ["append", "x", 2], ["r", "x", [1, 2]]]
    outcome = run(store, ["w", "y", 5], ["w", "y", 6], ["r", "y", None], ["r", "z", None])
    assert isinstance(outcome, Ok)
    assert outcome.value == [["w", "y", 5], ["w", "y", 6], ["r", "y", 6], ["r", "z", None]]
    assert base64.b64decode(store.kvs[base64.b64encode(b"labrys/only/y").decode()]["value"]) == b"6"


@pytest.mark.parametrize(
    ("compares", "holds", "broken"),
    [
        (Compares.ALL, "strict-serializable", None),
        (Compares.WRITTEN, "snapshot-isolation", "serializable"),
        (Compares.NONE, None, "snapshot-isolation"),
    ],
)
def test_the_level_is_the_promised_one(compares: Compares, holds: str | None, broken: str | None) -> None:
    """Each choice of comparisons gives its level, and the random transactions show that it gives no stronger one."""
    random, verdicts = Random(38), set()
    for _ in range(20):
        operations = asyncio.run(_history(random, compares))
        if holds:
            judgement = judge(of_operations(operations), workload="list-append", model=holds)
            assert str(judgement.verdict) == "valid", judgement.anomalies
        if broken:
            verdicts.add(str(judge(of_operations(operations), workload="list-append", model=broken).verdict))
    assert broken is None or "invalid" in verdicts


async def _history(random: Random, compares: Compares) -> list[Operation]:
    """Returns random transactions on one store."""
    store = Store()

    def made() -> Callable[[list[Any]], Awaitable[Outcome]]:
        own = client(store, compares)
        return lambda mops: own.invoke(Invocation("txn", mops, None))

    return await random_appends(random, made)


@pytest.mark.parametrize(
    "responses",
    [[], [{"response_put": {}}], 5, [{"response_range": {"kvs": [{"key": "!"}]}}]],
)
def test_an_answer_of_another_form_is_no_read(responses: Value) -> None:
    """A transaction that has not read its keys has written nothing."""
    store = Store()
    store.shows = lambda body: {**body, "responses": responses}
    outcome = run(store, ["append", "x", 1])
    assert isinstance(outcome, Fail)
    assert str(outcome.error).startswith("not-read: expected")
    assert store.kvs == {}


def test_a_write_without_an_answer_may_have_happened() -> None:
    """Only the second transaction of etcd writes, so only its answer counts."""
    store, calls = Store(), []
    answered = store.call

    async def call(method: str, request: Mapping[str, Value]) -> Answer:
        calls.append(method)
        answer = await answered(method, request)
        if len(calls) == 2:
            raise NoAnswer("the connection ended")
        return answer

    store.call = call  # type: ignore[method-assign]
    assert isinstance(run(store, ["append", "x", 1]), Info)
    assert len(store.kvs) == 1


def test_parts_of_transactions() -> None:
    """Each key is read once; a list that no client wrote is refused."""
    mops: list[list[Any]] = [["r", "x", None], ["append", "y", 1], ["r", "x", None]]
    assert keys_of(mops) == ["x", "y"]
    assert (only_reads(mops), only_reads(mops[:1])) == (False, True)
    with pytest.raises(NoAnswer, match="expected a list at key y, found 5"):
        applied(mops, {"x": None, "y": 5})
