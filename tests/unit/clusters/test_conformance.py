"""The laws of the conformance kit hold for a store in memory, and each mistake breaks one."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Any

import pytest

from clusters.kit import conformance, contracts
from clusters.kit.answers import NotDone
from clusters.kit.contracts import Done, Entries, Seen
from clusters.kit.transactions import applied, keys_of
from harness.clock import run_virtual
from harness.node import Node

if TYPE_CHECKING:
    from collections.abc import Callable

    from clusters.kit.transactions import Mops
    from harness.op import Value

NODES = [Node(name=f"n{number}", address=f"127.0.0.{number}") for number in (1, 2, 3)]
ANSWER_S = 0.001


class Memory:
    """A client of a store in memory, which answers after a moment."""

    serves = "as its methods say"

    def __init__(self, store: dict[str, Any], node: Node, mistake: str | None) -> None:
        self.store = store
        self.node = node
        self.mistake = mistake
        self.answers: deque[Value] = deque()

    async def answered(self, value: Value) -> Value:
        """Returns an answer in the order of the requests; a cancelled request leaves its own, with one of the mistakes."""
        self.answers.append(value)
        complete = False
        try:
            await asyncio.sleep(ANSWER_S)
            complete = True
        finally:
            if not complete and self.mistake != "keeps-answers":
                self.answers.clear()
        return self.answers.popleft()

    async def close(self) -> None:
        """Has no connection."""


class Registers(Memory, contracts.Registers):
    """A register has its value and its order."""

    async def read(self, key: str) -> Seen:
        """Reads it."""
        value, order = self.store.get(key, (None, None))
        if self.mistake == "one-value-a-node":
            value = self.store.get(f"{key}/{self.node.name}", (None, None))[0]
        if self.mistake == "order-of-an-earlier-write" and order:
            order -= 1
        return Seen(*await self.answered((value, 1 if self.mistake == "same-order" and order else order)))

    async def write(self, key: str, value: Value) -> Done:
        """Sets it."""
        order = (self.store.get(key, (None, 0))[1] or 0) + 1
        self.store[key] = self.store[f"{key}/{self.node.name}"] = value, order
        _, order = await self.answered((value, 1 if self.mistake == "same-order" else order))
        return Done(order)

    async def cas(self, key: str, expected: Value, new: Value) -> Done | None:
        """Sets it if it is as expected."""
        if self.store.get(key, (None, None))[0] != expected and self.mistake != "cas-without-compare":
            return None
        return await self.write(key, new)


class Sets(Memory, contracts.Sets):
    """A set is a list."""

    async def add(self, key: str, element: Value) -> Done:
        """Adds an element."""
        before = list(self.store.get(key, []))
        await asyncio.sleep(ANSWER_S)
        self.store[key] = [*(before if self.mistake == "lost-add" else self.store.get(key, [])), element]
        return Done()

    async def read(self, key: str) -> Seen:
        """Reads them all."""
        return Seen(self.store.get(key, []))


class Counters(Memory, contracts.Counters):
    """A counter is a number."""

    async def add(self, key: str, amount: int) -> Done:
        """Adds to it."""
        before = self.store.get(key, 0)
        await asyncio.sleep(ANSWER_S)
        self.store[key] = (before if self.mistake == "lost-add" else self.store.get(key, 0)) + amount
        return Done()

    async def read(self, key: str) -> Seen:
        """Reads it."""
        return Seen(self.store.get(key))


class Locks(Memory, contracts.Locks):
    """A lock has its holder and its token."""

    fencing = True

    async def acquire(self, key: str) -> Seen | None:
        """Takes it if it is free."""
        holder, token = self.store.get(key, (None, 0))
        if holder is not None and self.mistake != "two-holders":
            return None
        self.store[key] = self, 1 if self.mistake == "same-token" else token + 1
        return Seen(self.store[key][1])

    async def release(self, key: str, token: Value) -> Done | None:
        """Frees it."""
        holder, held = self.store.get(key, (None, 0))
        if holder is not self and self.mistake != "stray-release":
            return None
        self.store[key] = None, held
        return Done()


class Queues(Memory, contracts.Queues):
    """A queue is a list."""

    async def enqueue(self, key: str, value: Value) -> Done:
        """Appends a value."""
        self.store.setdefault(key, []).append(value)
        return Done()

    async def dequeue(self, key: str) -> Seen | None:
        """Takes the first one."""
        values = self.store.setdefault(key, [])
        if not values:
            return None
        return Seen(
            values[0] if self.mistake == "gives-twice" else values.pop(-1 if self.mistake == "last-first" else 0)
        )

    async def drain(self, key: str) -> Seen:
        """Takes all."""
        return Seen(self.store.pop(key, []))


class Logs(Memory, contracts.Logs):
    """A log is a list."""

    async def append(self, key: str, value: Value) -> Seen:
        """Appends a value."""
        self.store.setdefault(key, []).append(value)
        return Seen(0 if self.mistake == "same-offset" else len(self.store[key]) - 1)

    async def read(self, key: str, first: int, last: int) -> Entries:
        """Reads a range."""
        if self.mistake == "last-for-behind":
            first = min(first, len(self.store[key]) - 1)
        return Entries(list(enumerate(self.store.get(key, [])))[first : last + (self.mistake != "short-range")])


class Ledgers(Memory, contracts.Ledgers):
    """A ledger is a list, and whether it has ended."""

    async def append(self, key: str, value: Value) -> Seen:
        """Appends a value."""
        entries, ended = self.store.setdefault(key, ([], []))
        if ended and self.mistake != "goes-on":
            raise NotDone("fenced", "it has ended")
        entries.append(value)
        return Seen(len(entries) - 1)

    async def read(self, key: str, first: int, last: int) -> Entries:
        """Reads a range."""
        return Entries(list(enumerate(self.store[key][0]))[first : last + (self.mistake != "short-range")])

    async def last_confirmed(self, key: str) -> int:
        """Returns the last offset."""
        return len(self.store[key][0]) - 1

    async def inspect(self, key: str) -> Value:
        """Returns all entries."""
        return list(self.store[key][0])

    async def recover(self, key: str) -> int:
        """Ends the ledger."""
        entries, ended = self.store[key]
        ended.append(True)
        if self.mistake == "loses-last":
            entries.pop()
        return len(entries) - 1

    end = recover


class Transactions(Memory, contracts.Transactions):
    """Keys of a dictionary."""

    async def carry_out(self, key: str, mops: Mops) -> Seen:
        """Carries out a transaction."""
        state = {name: self.store.get(f"{key}/{name}") for name in keys_of(mops)}
        answer, written = applied(mops, state)
        if self.mistake == "reads-before":
            answer = [[f, name, state[name] if f == "r" else value] for f, name, value in mops]
        if self.mistake != "not-kept":
            self.store.update({f"{key}/{name}": value for name, value in written.items()})
        return Seen(answer)


CLIENTS = {
    "register": Registers, "set": Sets, "counter": Counters, "lock": Locks, "queue": Queues, "log": Logs, "ledger": Ledgers,
    "list-append": Transactions, "rw-register": Transactions,
}  # fmt: skip


def bench(workload: str, mistake: str | None = None) -> conformance.Bench:
    """A new store with three nodes."""
    store: dict[str, Any] = {}
    kind: Callable[..., Any] = CLIENTS[workload]
    return conformance.Bench(nodes=NODES, client=lambda _process, node: kind(store, node, mistake))


@pytest.mark.parametrize(("workload", "law"), conformance.cases(CLIENTS), ids=conformance.name)
def test_a_store_without_a_mistake_keeps_all_laws(workload: str, law: conformance.Law) -> None:
    """No law asks for more than the workload promises."""
    run_virtual(law(bench(workload)))


@pytest.mark.parametrize(
    ("workload", "mistake", "law"),
    [
        ("register", "one-value-a-node", "a-register-is-one-object"),
        ("register", "cas-without-compare", "a-register-is-one-object"),
        ("register", "same-order", "the-order-of-a-register-grows"),
        ("register", "order-of-an-earlier-write", "the-order-of-a-register-grows"),
        ("register", "keeps-answers", "a-cancelled-operation-leaves-nothing"),
        ("set", "lost-add", "a-set-keeps-every-add"),
        ("counter", "lost-add", "a-counter-keeps-every-add"),
        ("lock", "two-holders", "a-lock-has-one-holder"),
        ("lock", "stray-release", "a-lock-has-one-holder"),
        ("lock", "same-token", "a-lock-has-one-holder"),
        ("queue", "gives-twice", "a-queue-gives-each-value-once-in-order"),
        ("queue", "last-first", "a-queue-gives-each-value-once-in-order"),
        ("log", "same-offset", "a-log-keeps-its-entries-in-order"),
        ("log", "last-for-behind", "a-log-keeps-its-entries-in-order"),
        ("log", "short-range", "a-log-keeps-its-entries-in-order"),
        ("ledger", "goes-on", "a-recovered-ledger-has-its-entries"),
        ("ledger", "loses-last", "a-recovered-ledger-has-its-entries"),
        ("ledger", "short-range", "a-recovered-ledger-has-its-entries"),
        ("list-append", "reads-before", "a-transaction-of-lists-sees-its-own-writes"),
        ("list-append", "not-kept", "a-transaction-of-lists-sees-its-own-writes"),
        ("rw-register", "reads-before", "a-transaction-of-registers-sees-its-own-writes"),
    ],
)
def test_each_mistake_breaks_its_law(workload: str, mistake: str, law: str) -> None:
    """The law fails, and not the client."""
    laws = {conformance.name(case): case for _, case in conformance.cases([workload])}
    with pytest.raises(AssertionError):
        run_virtual(laws[law](bench(workload, mistake)))
