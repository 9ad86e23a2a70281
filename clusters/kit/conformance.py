"""Laws that the clients of a system keep without faults, for each workload; pytest runs them against a system that serves.

```python
@pytest.mark.parametrize(("workload", "law"), conformance.cases(KvStoreSystem.serves), ids=conformance.name)
def test_clients_keep_the_laws(workload: str, law: Law) -> None:
    asyncio.run(law(Bench(nodes=nodes, client=clients[workload])))
```

A law that does not hold raises AssertionError. Each one uses keys of its own, so all can run on one cluster.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from clusters.kit.contracts import EMPTY
from harness.op import Fail, Info, Invocation, Ok

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from harness.client import Client
    from harness.node import Node
    from harness.op import Outcome, Value

_numbers = itertools.count(1)
CANCELLED: Final = 20  # how many writes are cancelled
BEHIND: Final = 50  # offsets behind the last one, where a log has nothing
LATEST_S: Final = 0.004  # when the last of them is cancelled


def _new_name(law: str) -> str:
    return f"{law}-{next(_numbers)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """What a law needs.

    Attributes:
        nodes: The nodes that serve.
        client: Makes the client of a process at a node.
        name: Returns a name for the object of a law, for a system that has only some.
        empty: The code with which the system says that a queue gives no value.
        settled_s: After this time in seconds, a log or a queue gives what was put in; for a system that does not promise it at
            once.
    """

    nodes: Sequence[Node]
    client: Callable[[int, Node], Client]
    name: Callable[[str], str] = _new_name
    empty: str = EMPTY
    settled_s: float = 0.0

    async def ask(self, node: Node, key: str, *operations: tuple[str, Value]) -> list[Outcome]:
        """Carries out operations `(f, value)` on a key, one after the other, by one new client."""
        client = self.client(next(_numbers), node)
        try:
            return [await client.invoke(Invocation(f, value, key)) for f, value in operations]
        finally:
            await client.close()

    def at(self, number: int) -> Node:
        """Returns one of the nodes; numbers go round."""
        return self.nodes[number % len(self.nodes)]


Law: TypeAlias = Callable[[Bench], Coroutine[Any, Any, None]]


async def a_register_is_one_object(bench: Bench) -> None:
    """Reads, writes and compare-and-sets through all nodes act on one value."""
    key = bench.name("one")
    outcomes = [
        *await bench.ask(bench.at(0), key, ("read", None), ("cas", [None, 1]), ("cas", [None, 2])),
        *await bench.ask(bench.at(1), key, ("read", None), ("write", 3)),
        *await bench.ask(bench.at(2), key, ("cas", [3, 4]), ("cas", [3, 5]), ("read", None)),
    ]
    assert [_plain(outcome) for outcome in outcomes] == [
        Ok(None), Ok([None, 1]), "cas-mismatch", Ok(1), Ok(3), Ok([3, 4]), "cas-mismatch", Ok(4),
    ]  # fmt: skip


async def the_order_of_a_register_grows(bench: Bench) -> None:
    """If writes have an order, the next one has a later one, and a read none, or that of the write that it saw."""
    outcomes = await bench.ask(
        bench.at(0), bench.name("order"), ("write", 1), ("read", None), ("write", 2), ("read", None)
    )
    orders = [outcome.order if isinstance(outcome, Ok) else outcome for outcome in outcomes]
    if set(orders) != {None}:
        first, seen, second, seen_again = orders
        assert isinstance(first, int), orders
        assert isinstance(second, int), orders
        assert {seen, seen_again} == {None} or (seen, seen_again) == (first, second), orders
        assert first < second, orders


async def a_cancelled_operation_leaves_nothing(bench: Bench) -> None:
    """The answer of a cancelled request is never taken for that of the next one."""
    key, node = bench.name("cancelled"), bench.at(0)
    client = bench.client(next(_numbers), node)
    try:
        for number in range(CANCELLED):
            write = asyncio.create_task(client.invoke(Invocation("write", number, key)))
            await asyncio.sleep(LATEST_S * number / CANCELLED)
            write.cancel()
            await asyncio.gather(write, return_exceptions=True)
            outcome = await client.invoke(Invocation("read", None, key))
            assert isinstance(outcome, Ok | Fail), outcome
            if isinstance(outcome, Ok):
                assert outcome.value in {None, *range(number + 1)}, outcome
        done = [await client.invoke(Invocation(f, value, key)) for f, value in (("write", -1), ("read", None))]
        assert [_plain(outcome) for outcome in done] == [Ok(-1), Ok(-1)]
    finally:
        await client.close()


async def a_set_keeps_every_add(bench: Bench) -> None:
    """Adds through all nodes at the same time are in a read."""
    key = bench.name("set")
    added = await asyncio.gather(*(bench.ask(bench.at(number), key, ("add", number)) for number in range(6)))
    assert all(isinstance(outcome, Ok) for outcomes in added for outcome in outcomes), added
    (read,) = await bench.ask(bench.at(1), key, ("read", None))
    assert isinstance(read, Ok), read
    assert sorted(read.value) == list(range(6)), read


async def a_counter_keeps_every_add(bench: Bench) -> None:
    """Adds through all nodes at the same time are in a read, and nobody has added to a new counter."""
    key = bench.name("counter")
    assert [_plain(outcome) for outcome in await bench.ask(bench.at(0), key, ("read", None))] == [Ok(0)]
    added = await asyncio.gather(*(bench.ask(bench.at(number), key, ("add", 5), ("add", -1)) for number in range(3)))
    assert all(isinstance(outcome, Ok) for outcomes in added for outcome in outcomes), added
    assert [_plain(outcome) for outcome in await bench.ask(bench.at(1), key, ("read", None))] == [Ok(12)]


async def a_lock_has_one_holder(bench: Bench) -> None:
    """Another client gets the lock after its release only, and cannot release it; tokens grow if there are any."""
    key = bench.name("lock")
    holder, other = bench.client(next(_numbers), bench.at(0)), bench.client(next(_numbers), bench.at(1))
    try:
        taken = await holder.invoke(Invocation("acquire", None, key))
        assert isinstance(taken, Ok), taken
        refused = [
            await other.invoke(Invocation("acquire", None, key)),
            await other.invoke(Invocation("release", None, key)),
        ]
        assert [_plain(outcome) for outcome in refused] == ["held", "not-held"]
        released = await holder.invoke(Invocation("release", taken.value, key))
        assert isinstance(released, Ok), released
        again = await other.invoke(Invocation("acquire", None, key))
        assert isinstance(again, Ok), again
        assert taken.value is None or again.value > taken.value, (taken, again)
    finally:
        await holder.close()
        await other.close()


async def a_queue_gives_each_value_once_in_order(bench: Bench) -> None:
    """Values leave a queue in the order of their enqueues, and an empty queue is a `fail`."""
    key = bench.name("queue")
    outcomes = await bench.ask(bench.at(0), key, ("dequeue", None), *(("enqueue", number) for number in range(4)))
    await asyncio.sleep(bench.settled_s)
    outcomes += await bench.ask(
        bench.at(0), key, ("dequeue", None), ("dequeue", None), ("drain", None), ("dequeue", None)
    )
    assert [_plain(outcome) for outcome in outcomes] == [
        bench.empty, Ok(0), Ok(1), Ok(2), Ok(3), Ok(0), Ok(1), Ok([2, 3]), bench.empty,
    ]  # fmt: skip


async def a_log_keeps_its_entries_in_order(bench: Bench) -> None:
    """Offsets grow; a read of a range has all entries with their offsets, one of an offset its value, and none is behind."""
    key = bench.name("log")
    appended = [*await bench.ask(bench.at(0), key, *(("append", f"v{number}") for number in range(4)))]
    offsets = [outcome.value for outcome in appended if isinstance(outcome, Ok)]
    assert len(offsets) == len(appended), appended
    assert offsets == sorted(set(offsets)), appended
    entries = [[offset, f"v{number}"] for number, offset in enumerate(offsets)]
    await asyncio.sleep(bench.settled_s)
    reads = [offsets[0], offsets[-1]], offsets[1], offsets[-1] + BEHIND
    read = await bench.ask(bench.at(0), key, *(("read", asked) for asked in reads))
    assert [_plain(outcome) for outcome in read] == [Ok(entries), Ok("v1"), Ok(None)]


async def a_recovered_ledger_has_its_entries(bench: Bench) -> None:
    """Another node ends a ledger at its last entry, and reads all of them; after that, its writer appends nothing."""
    key = bench.name("ledger")
    appended = await bench.ask(bench.at(0), key, *(("append", f"v{number}") for number in range(3)))
    offsets = [outcome.value for outcome in appended if isinstance(outcome, Ok)]
    assert len(offsets) == len(appended), appended
    assert offsets == sorted(set(offsets)), appended
    last = offsets[-1]
    ended = await bench.ask(bench.at(1), key, ("recover", None), ("confirmed", None), ("read", [offsets[0], last]))
    entries = [[offset, f"v{number}"] for number, offset in enumerate(offsets)]
    assert [_plain(outcome) for outcome in ended] == [Ok(last), Ok(last), Ok(entries)]
    late = await bench.ask(bench.at(0), key, ("append", "late"))
    assert not any(isinstance(outcome, Ok) for outcome in late), late


async def a_transaction_of_lists_sees_its_own_writes(bench: Bench) -> None:
    """A read of a transaction has its own appends, and the next transaction has them through another node."""
    key = bench.name("txn")
    appends = [["r", "x", None], ["append", "x", 1], ["append", "x", 2], ["r", "x", None]]
    outcomes = [
        *await bench.ask(bench.at(0), key, ("txn", appends)),
        *await bench.ask(bench.at(1), key, ("txn", [["append", "x", 3], ["r", "x", None], ["r", "y", None]])),
    ]
    assert all(isinstance(outcome, Ok) for outcome in outcomes), outcomes
    first, second = (outcome.value for outcome in outcomes if isinstance(outcome, Ok))
    assert [first[0][2] or [], *first[1:]] == [[], ["append", "x", 1], ["append", "x", 2], ["r", "x", [1, 2]]], first
    assert [*second[:2], second[2][2] or []] == [["append", "x", 3], ["r", "x", [1, 2, 3]], []], second


async def a_transaction_of_registers_sees_its_own_writes(bench: Bench) -> None:
    """A read of a transaction has its last own write, and an absent key is null."""
    writes = [["w", "x", 5], ["w", "x", 6], ["r", "x", None], ["r", "y", None]]
    outcomes = await bench.ask(bench.at(0), bench.name("txn"), ("txn", writes))
    assert [_plain(outcome) for outcome in outcomes] == [
        Ok([["w", "x", 5], ["w", "x", 6], ["r", "x", 6], ["r", "y", None]])
    ]


async def an_unknown_function_is_a_fail(bench: Bench) -> None:
    """The client sends nothing, and says so."""
    outcomes = await bench.ask(bench.at(0), bench.name("unknown"), ("fly", 1))
    assert [_plain(outcome) for outcome in outcomes] == ["unsupported"]


LAWS: Final[dict[str, tuple[Law, ...]]] = {
    "register": (a_register_is_one_object, the_order_of_a_register_grows, a_cancelled_operation_leaves_nothing),
    "set": (a_set_keeps_every_add,),
    "counter": (a_counter_keeps_every_add,),
    "lock": (a_lock_has_one_holder,),
    "queue": (a_queue_gives_each_value_once_in_order,),
    "log": (a_log_keeps_its_entries_in_order,),
    "ledger": (a_recovered_ledger_has_its_entries,),
    "list-append": (a_transaction_of_lists_sees_its_own_writes,),
    "rw-register": (a_transaction_of_registers_sees_its_own_writes,),
}


def cases(workloads: Collection[str]) -> list[tuple[str, Law]]:
    """Returns each workload that has laws, with each of them, for `pytest.mark.parametrize`."""
    return [
        (workload, law)
        for workload in workloads
        if workload in LAWS
        for law in (*LAWS[workload], an_unknown_function_is_a_fail)
    ]


def name(value: str | Law) -> str:
    """Returns the name of a workload or of a law, for the `ids` of pytest."""
    return value if isinstance(value, str) else value.__name__.replace("_", "-")


def _plain(outcome: Outcome) -> Ok | str:
    """Returns an outcome without its order, and of an error its code."""
    match outcome:
        case Ok(value):
            return Ok(value)
        case Fail(error) | Info(error):
            return error.partition(":")[0]
