"""Simulated objects of the models in `own`: their histories, and mistakes that certainly make a history invalid.

A mistake changes one answer to one that no order of the history explains. The docstring of each `mistake` has the reason.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from benchmarks.checker.cases import simulate
from benchmarks.checker.own import (
    ACCOUNTS,
    BALANCE,
    CAPACITY,
    KEYS,
    PARTICIPANTS,
    Automaton,
    Bank,
    BoundedStack,
    CasList,
    LeaseLock,
    MaxRegister,
    Store,
    TwoPhaseCommit,
    random_table,
)
from benchmarks.checker.window import refuted
from harness.op import OpType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from random import Random

    from checker.models import Model
    from harness.op import Operation

PLACES: Final = {"start": 0.0, "middle": 0.5, "end": 1.0}
_CANDIDATES: Final = 30
_NEVER: Final = 9  # no table has this answer
_VALUES: Final = 5  # values of a store


class Subject:
    """A simulated object.

    Attributes:
        model: Its model.
        porcupine: The name of porcupine's model.
        made: The parameters of porcupine's model, if any.
        revision: The number of its changes, for an object that counts them.
    """

    model: Model
    porcupine: str
    made: str = ""
    revision: int = 0

    def draw(self, random: Random, number: int) -> tuple[str, Any]:
        """Returns the f and the argument of the operation with a number."""
        raise NotImplementedError

    def apply(self, f: str, value: Any) -> tuple[str, Any]:
        """Applies an operation. Returns `ok` or `fail`, and the result."""
        raise NotImplementedError

    def mistake(self, operations: Sequence[Operation], order: Sequence[int]) -> tuple[int, Any]:
        """Returns the first position of an order that can have a wrong answer, and this answer.

        Raises:
            ValueError: There is none.
        """
        raise NotImplementedError

    def history(self, *, count: int, processes: int, crashed: int, seed: str, ordered: bool = False) -> list[Operation]:
        """Returns a valid history. This object must be new.

        Args:
            count: The number of operations.
            processes: The number of processes.
            crashed: The number of crashed operations among those that may change the object, spread over the history.
            seed: The seed of the history.
            ordered: Whether operations that return have the revision as their order.
        """
        return simulate(
            lambda random, number: (*self.draw(random, number), None),
            lambda _states, f, value, _key: self.apply(f, value),
            count=count,
            processes=processes,
            seed=seed,
            crash=_spread(count, crashed),
            order=(lambda: self.revision) if ordered else None,
        )

    def with_mistake(self, operations: Sequence[Operation], share: float) -> list[Operation]:
        """Returns the history with one wrong answer, as near as possible to a place between 0 and 1."""
        target = share * (len(operations) - 1)
        order = sorted(range(len(operations)), key=lambda position: abs(position - target))
        position, result = self.mistake(operations, order)
        changed = list(operations)
        changed[position] = replace(changed[position], result=result)
        return changed


def _spread(count: int, crashed: int) -> Callable[[Random, int, str], bool]:
    left = [i * count // crashed for i in range(crashed)][::-1]

    def crash(_random: Random, number: int, f: str) -> bool:
        if f == "read" or not left or number < left[-1]:
            return False
        left.pop()
        return True

    return crash


def _returned(operations: Sequence[Operation], order: Sequence[int], f: str) -> Iterator[tuple[int, Operation]]:
    return ((i, operations[i]) for i in order if operations[i].f == f and operations[i].type is OpType.OK)


class MaxRegisterSubject(Subject):
    """A maximum of a few values, or of increasing values."""

    model = MaxRegister()
    porcupine = "max-register"

    def __init__(self, values: int | None) -> None:
        """Makes one.

        Args:
            values: The number of values; None: they increase.
        """
        self.values = values
        self._state = 0

    def draw(self, random: Random, number: int) -> tuple[str, Any]:
        """See `Subject`."""
        if random.random() < 0.5:
            return "read", None
        return "max", random.randrange(self.values) if self.values else random.randrange(
            number // 10, number // 10 + 20
        )

    def apply(self, f: str, value: Any) -> tuple[str, Any]:
        """See `Subject`."""
        if f == "max":
            self.revision += value > self._state
            self._state = max(self._state, value)
        return "ok", None if f == "max" else self._state

    def mistake(self, operations: Sequence[Operation], order: Sequence[int]) -> tuple[int, Any]:
        """A read that begins after a `max` has returned gives a smaller value: 0, or the next smaller one."""
        done = sorted((op.complete_index or 0, op.value) for _, op in _returned(operations, order, "max"))
        ends = [end for end, _ in done]
        written = sorted({0, *(value for _, value in done)})
        tops, top = [0], 0
        for _, value in done:
            top = max(top, value)
            tops.append(top)
        for position, op in _returned(operations, order, "read"):
            top = tops[bisect_left(ends, op.invoke_index)]
            if top > 0:
                return position, 0 if self.values else written[bisect_left(written, top) - 1]
        raise ValueError("no max returns before a read")


class StackSubject(Subject):
    """A stack to which each value is pushed about twice."""

    model = BoundedStack()
    porcupine = "bounded-stack"

    def __init__(self) -> None:
        self._items: list[int] = []

    def draw(self, random: Random, number: int) -> tuple[str, Any]:
        """See `Subject`."""
        return ("push", number // 4) if random.random() < 0.5 else ("pop", None)

    def apply(self, f: str, value: Any) -> tuple[str, Any]:
        """See `Subject`."""
        if (f == "push" and len(self._items) == CAPACITY) or (f == "pop" and not self._items):
            return "fail", None
        if f == "pop":
            return "ok", self._items.pop()
        self._items.append(value)
        return "ok", None

    def mistake(self, operations: Sequence[Operation], order: Sequence[int]) -> tuple[int, Any]:
        """A pop gives a value that other pops took as often as it was pushed: the last such value before."""
        left: Counter[int] = Counter(op.value for op in operations if op.f == "push" and op.type is not OpType.FAIL)
        left.subtract(op.result for op in operations if op.f == "pop" and op.type is OpType.OK)
        for position, op in _returned(operations, order, "pop"):
            earlier = (
                other.result
                for other in reversed(operations[:position])
                if other.f == "pop" and other.result is not None
            )
            wrong = next((value for value in earlier if left[value] == 0 and value != op.result), None)
            if wrong is not None:
                return position, wrong
        raise ValueError("no value was popped as often as pushed")


class LeaseSubject(Subject):
    """A lock with many clients. The holder releases it at some time, or the lease expires."""

    model = LeaseLock()
    porcupine = "lease-lock"

    def __init__(self) -> None:
        self._holder = 0
        self._last = 0

    def draw(self, random: Random, number: int) -> tuple[str, Any]:  # noqa: ARG002 - see `Subject`
        """See `Subject`."""
        f = random.choices(["acquire", "release", "expire"], [50, 45, 5])[0]
        return f, max(1, self._last - (random.random() < 0.1)) if f == "release" else None

    def apply(self, f: str, value: Any) -> tuple[str, Any]:
        """See `Subject`."""
        if (f == "acquire" and self._holder) or (f == "release" and self._holder != value):
            return "fail", None
        if f != "acquire":
            self._holder = 0
            return "ok", None
        self._last += 1
        self._holder = self._last
        return "ok", self._last

    def mistake(self, operations: Sequence[Operation], order: Sequence[int]) -> tuple[int, Any]:
        """Two leases have the same token."""
        given = {op.result for _, op in _returned(operations, order, "acquire")}
        for position, op in _returned(operations, order, "acquire"):
            if op.result - 1 in given:
                return position, op.result - 1
        raise ValueError("no two leases follow each other")


class CommitSubject(Subject):
    """A coordinator whose participants mostly vote yes."""

    model = TwoPhaseCommit()
    porcupine = "two-phase-commit"

    def __init__(self) -> None:
        self._number = 0
        self._phase = "idle"
        self._votes: dict[int, str] = {}

    def draw(self, random: Random, number: int) -> tuple[str, Any]:  # noqa: ARG002 - see `Subject`
        """See `Subject`."""
        f = random.choices(["begin", "vote", "commit", "abort", "read"], [15, 45, 15, 1, 24])[0]
        if f == "vote":
            return f, (self._number, random.randrange(PARTICIPANTS), "yes" if random.random() < 0.95 else "no")
        return f, self._number if f in {"commit", "abort"} else None

    def apply(self, f: str, value: Any) -> tuple[str, Any]:
        """See `Subject`."""
        if f == "read":
            return "ok", (self._number, self._phase)
        if f == "begin":
            if self._phase == "voting":
                return "fail", None
            self._number, self._phase, self._votes = self._number + 1, "voting", {}
            return "ok", self._number
        number = value[0] if f == "vote" else value
        agreed = [self._votes.get(who) for who in range(PARTICIPANTS)] == ["yes"] * PARTICIPANTS
        if number != self._number or self._phase != "voting" or (f == "commit" and not agreed):
            return "fail", None
        if f == "vote":
            _, who, vote = value
            if who in self._votes:
                return "fail", None
            self._votes[who] = vote
        else:
            self._phase = "aborted" if f == "abort" else "committed"
        return "ok", None

    def mistake(self, operations: Sequence[Operation], order: Sequence[int]) -> tuple[int, Any]:
        """A read gives aborted for a transaction whose commit returned, or the reverse."""
        ends: dict[int, str] = {op.value: "aborted" for _, op in _returned(operations, order, "commit")}
        ends |= {op.value: "committed" for _, op in _returned(operations, order, "abort")}
        for position, op in _returned(operations, order, "read"):
            number, phase = op.result
            if phase in {"committed", "aborted"} and number in ends:
                return position, (number, ends[number])
        raise ValueError("no read sees the end of a transaction")


class CasListSubject(Subject):
    """A list that grows whenever a client knows its length."""

    model = CasList()
    porcupine = "cas-list"

    def __init__(self) -> None:
        self._items: tuple[int, ...] = ()

    def draw(self, random: Random, number: int) -> tuple[str, Any]:
        """See `Subject`."""
        if random.random() < 0.5:
            return "read", None
        return "append", (max(0, len(self._items) - (random.random() < 0.3)), number % 10)

    def apply(self, f: str, value: Any) -> tuple[str, Any]:
        """See `Subject`."""
        if f == "read":
            return "ok", self._items
        length, item = value
        if length != len(self._items):
            return "fail", None
        self._items = (*self._items, item)
        return "ok", None

    def mistake(self, operations: Sequence[Operation], order: Sequence[int]) -> tuple[int, Any]:
        """A read gives a last value other than that of the append that returned for that length."""
        known = {op.value[0] for _, op in _returned(operations, order, "append")}
        for position, op in _returned(operations, order, "read"):
            if len(op.result) - 1 in known:
                return position, (*op.result[:-1], (op.result[-1] + 1) % 10)
        raise ValueError("no read sees an append that returned")


class BankSubject(Subject):
    """A bank. Four in five operations are transfers, all of even amounts."""

    model = Bank()
    porcupine = "bank"

    def __init__(self) -> None:
        self._held = [BALANCE] * ACCOUNTS

    def draw(self, random: Random, number: int) -> tuple[str, Any]:  # noqa: ARG002 - see `Subject`
        """See `Subject`."""
        if random.random() < 0.2:
            return "read", random.choice([None, *range(ACCOUNTS)])
        source, target = random.sample(range(ACCOUNTS), 2)
        return "transfer", [source, target, 2 * random.randint(1, BALANCE // 4)]

    def apply(self, f: str, value: Any) -> tuple[str, Any]:
        """See `Subject`."""
        if f == "read":
            return "ok", list(self._held) if value is None else self._held[value]
        source, target, amount = value
        if self._held[source] < amount:
            return "ok", False
        self._held[source] -= amount
        self._held[target] += amount
        self.revision += 1
        return "ok", True

    def mistake(self, operations: Sequence[Operation], order: Sequence[int]) -> tuple[int, Any]:
        """A read gives odd balances with the right total. All true balances are even."""
        for position, op in _returned(operations, order, "read"):
            if op.value is None and op.result[1] > 0:
                return position, [op.result[0] + 1, op.result[1] - 1, *op.result[2:]]
        raise ValueError("nothing reads")


class StoreSubject(Subject):
    """A few keys with a few values."""

    model = Store()
    porcupine = "store"

    def __init__(self) -> None:
        self._held = [0] * KEYS

    def draw(self, random: Random, number: int) -> tuple[str, Any]:  # noqa: ARG002 - see `Subject`
        """See `Subject`."""
        f, key = random.choice(["get", "put", "cas"]), random.randrange(KEYS)
        some, other = random.randrange(_VALUES), random.randrange(_VALUES)
        return f, key if f == "get" else [key, some] if f == "put" else [key, some, other]

    def apply(self, f: str, value: Any) -> tuple[str, Any]:
        """See `Subject`."""
        if f == "get":
            return "ok", self._held[value]
        key, *expected, new = value
        if expected and self._held[key] != expected[0]:
            return "ok", False
        self.revision += self._held[key] != new
        self._held[key] = new
        return "ok", None if f == "put" else True

    def mistake(self, operations: Sequence[Operation], order: Sequence[int]) -> tuple[int, Any]:
        """A get gives a value that no operation ever put."""
        for position, _ in _returned(operations, order, "get"):
            return position, _VALUES
        raise ValueError("nothing is got")


class AutomatonSubject(Subject):
    """A random table."""

    model: Automaton
    porcupine = "automaton"

    def __init__(self, seed: str) -> None:
        """Makes one.

        Args:
            seed: The seed of the table.
        """
        self._table = random_table(seed)
        self._state = 0
        self.model = Automaton(self._table)
        self.made = ";".join(",".join(f"{after},{answer}" for after, answer in row) for row in self._table)

    def draw(self, random: Random, number: int) -> tuple[str, Any]:  # noqa: ARG002 - see `Subject`
        """See `Subject`."""
        return str(random.randrange(len(self._table[0]))), None

    def apply(self, f: str, value: Any) -> tuple[str, Any]:  # noqa: ARG002 - see `Subject`
        """See `Subject`."""
        self._state, answer = self._table[self._state][int(f)]
        return "ok", answer

    def mistake(self, operations: Sequence[Operation], order: Sequence[int]) -> tuple[int, Any]:
        """An answer that its neighbours refute from every state, or, without one, an answer that the table never gives."""
        states = range(len(self._table))
        returned = [position for position in order if operations[position].type is OpType.OK]
        for position in returned[:_CANDIDATES]:
            op = operations[position]
            for answer in {row[int(op.f)][1] for row in self._table} - {op.result}:
                changed = list(operations)
                changed[position] = replace(op, result=answer)
                if refuted(self.model, states, changed, position):
                    return position, answer
        return returned[0], _NEVER
