"""A contract for each workload: which operations a client carries out, and what each of them becomes in the history.

A system derives a class from the contract of each workload that it serves, and implements its operations. They return what the
system said, or raise one of the errors of `clusters.kit.answers`. What an answer, a refusal or a silence means for the history
stands here, once, because every verdict depends on it:

- `NotSent`: the node did not get the request, so the operation is a `Fail`;
- `NoAnswer`, or no answer in time: a read is a `Fail`, and a change is an `Info`, because it may have an effect, unless
  `was_sent` says that the client had not sent it yet;
- `Refused`: a change is a `Fail` only if its code is in `never_happened`, and else like a change without an answer; a read is a
  `Fail`;
- `NotDone`: a `Fail`, because the client knows that the operation has no effect; `InDoubt`: an `Info`.
"""

from __future__ import annotations

import abc
import asyncio
import json
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple, TypeVar

from clusters.kit.answers import (
    PAUSE_S,
    InDoubt,
    NoAnswer,
    NotDone,
    NotSent,
    Refused,
    RefusedByCode,
    unsupported,
    worded,
)
from clusters.kit.transactions import LIST_APPEND, RW_REGISTER, TRANSACTION, only_reads
from harness.client import via_of
from harness.op import ONLY_KEY, Fail, Info, Ok

if TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping, Sequence

    from clusters.kit.transactions import Mops
    from harness.node import Node
    from harness.op import Invocation, Outcome, Value

C = TypeVar("C", bound="Contract")

READ: Final = "read"
MAX_SHOWN: Final = 100  # characters of a value in an error

# Codes of errors in a history.
NOT_CONNECTED: Final = "not-connected"
NO_ANSWER: Final = "no-answer"
REFUSED: Final = "refused"
# Those that are answers of a working system.
CAS_MISMATCH: Final = "cas-mismatch"
HELD: Final = "held"
NOT_HELD: Final = "not-held"
EMPTY: Final = "empty"
CONFLICT: Final = "conflict"


class Done(NamedTuple):
    """A change took effect.

    Attributes:
        order: The number that the system gave to it; see `harness.op.Ok`.
    """

    order: int | None = None


class Seen(NamedTuple):
    """What the system answered, with a value.

    Attributes:
        value: The value.
        order: The number of the last change that it includes; see `harness.op.Ok`.
    """

    value: Value
    order: int | None = None


class Entries(NamedTuple):
    """What the system answered to a read of a log.

    Attributes:
        entries: The offset and the value of each entry, in the order of the offsets.
        order: The number of the last change that the read includes; see `harness.op.Ok`.
    """

    entries: Sequence[tuple[int, Value]]
    order: int | None = None


class Contract(abc.ABC):
    """The client of one process for one workload.

    Attributes:
        workloads: The names of the workloads.
        serves: The operations of the system for its functions, in one line; see `harness.system.System.serves`.
        never_happened: By the code of a refusal, after which a change never happens: the code of the error in the history.
        read_timeout_s: After this time, a read has no answer; None: when its caller gives up.
        change_timeout_s: The same for a change.
        node: The client's own node.
    """

    workloads: ClassVar[tuple[str, ...]]
    serves: ClassVar[str]
    never_happened: ClassVar[Mapping[Any, str]] = MappingProxyType({})
    read_timeout_s: float | None = 5.0
    change_timeout_s: float | None = None

    node: Node

    @abc.abstractmethod
    async def operate(self, key: str, f: str, value: Value) -> Outcome:
        """Carries out an operation; the contract of the workload calls the method of the function."""

    @abc.abstractmethod
    async def close(self) -> None:
        """Closes the connections."""

    def is_read(self, invocation: Invocation) -> bool:
        """Returns whether an operation has no effect."""
        return invocation.f == READ

    def limit_s(self, invocation: Invocation) -> float | None:
        """Returns the time after which an operation has no answer; None: when its caller gives up."""
        return self.read_timeout_s if self.is_read(invocation) else self.change_timeout_s

    def was_sent(self) -> bool:
        """Returns whether the system may have the change of the operation that got no answer, or was refused."""
        return True

    def name_of(self, code: Any) -> str:  # noqa: ARG002 - most systems have one name for all of them
        """Returns the code in the history of a refusal after which a change may still happen."""
        return REFUSED

    async def confirmed(self, outcome: Ok) -> Outcome:
        """Returns the outcome of a change that took effect, e.g. after the client has asked for its replication."""
        return outcome

    async def failed(self, error: Exception) -> None:
        """Prepares the next operation after an error: by default, a pause after a request that could not be sent."""
        if isinstance(error, NotSent):
            await asyncio.sleep(PAUSE_S)

    async def invoke(self, invocation: Invocation) -> Outcome:
        """Carries out an operation of the workload, and returns what it becomes."""
        is_read = self.is_read(invocation)
        limit_s = self.limit_s(invocation)
        try:
            async with asyncio.timeout(limit_s):
                outcome = await self.operate(invocation.key or ONLY_KEY, invocation.f, invocation.value)
                return await self.confirmed(outcome) if isinstance(outcome, Ok) and not is_read else outcome
        except (NotSent, NoAnswer, NotDone, Refused, RefusedByCode, TimeoutError) as error:
            is_harmless = is_read or not self.was_sent()
            await self.failed(error)
            return self._becomes(error, is_harmless=is_harmless, limit_s=limit_s)

    def _becomes(self, error: Exception, *, is_harmless: bool, limit_s: float | None) -> Fail | Info:
        """Returns what an operation without a usable answer becomes."""
        text = str(error)
        match error:
            case InDoubt():
                return Info(worded(error.code, text))
            case NotDone():
                return Fail(worded(error.code, text))
            case NotSent():
                return Fail(worded(NOT_CONNECTED, text))
            case Refused() | RefusedByCode():
                code = self.never_happened.get(error.code)
                if code is not None:
                    return Fail(worded(code, text))
                text = worded(self.name_of(error.code), text)
            case TimeoutError():
                within = "time" if limit_s is None else f"{limit_s:g} s"
                text = worded(NO_ANSWER, f"{via_of(self) or self.node.name} did not answer in {within}")
            case _:
                text = worded(NO_ANSWER, text)
        return Fail(text) if is_harmless else Info(text)


class Registers(Contract):
    """The workload `register`."""

    workloads = ("register",)

    async def operate(self, key: str, f: str, value: Value) -> Outcome:
        """Carries out a read, a write or a compare-and-set."""
        match f, value:
            case "read", _:
                return Ok(*await self.read(key))
            case "write", _:
                return Ok(value, *await self.write(key, value))
            case "cas", [expected, new]:
                done = await self.cas(key, expected, new)
                if done is None:
                    return Fail(f"{CAS_MISMATCH}: it does not hold {json.dumps(expected)[:MAX_SHOWN]}")
                return Ok(value, *done)
        return unsupported(f, value)

    @abc.abstractmethod
    async def read(self, key: str) -> Seen:
        """Returns the value; None if nobody has written it."""

    @abc.abstractmethod
    async def write(self, key: str, value: Value) -> Done:
        """Sets the value."""

    @abc.abstractmethod
    async def cas(self, key: str, expected: Value, new: Value) -> Done | None:
        """Sets the value if it is the expected one, None for one that nobody has written; else returns None."""


class Sets(Contract):
    """The workload `set`."""

    workloads = ("set",)

    async def operate(self, key: str, f: str, value: Value) -> Outcome:
        """Carries out an add or a read."""
        match f:
            case "add":
                return Ok(value, *await self.add(key, value))
            case "read":
                return Ok(*await self.read(key))
        return unsupported(f, value)

    @abc.abstractmethod
    async def add(self, key: str, element: Value) -> Done:
        """Adds an element."""

    @abc.abstractmethod
    async def read(self, key: str) -> Seen:
        """Returns the list of all elements."""


class Counters(Contract):
    """The workload `counter`."""

    workloads = ("counter",)

    async def operate(self, key: str, f: str, value: Value) -> Outcome:
        """Carries out an add or a read."""
        match f, value:
            case "add", int(amount):
                return Ok(value, *await self.add(key, amount))
            case "read", _:
                seen = await self.read(key)
                return Ok(seen.value or 0, seen.order)
        return unsupported(f, value)

    @abc.abstractmethod
    async def add(self, key: str, amount: int) -> Done:
        """Adds to the counter."""

    @abc.abstractmethod
    async def read(self, key: str) -> Seen:
        """Returns the value of the counter; None if nobody has added to it."""


class Locks(Contract):
    """The workload `lock`.

    Attributes:
        fencing: Whether an acquire returns its fencing token.
    """

    workloads = ("lock",)
    fencing: bool

    async def operate(self, key: str, f: str, value: Value) -> Outcome:
        """Carries out an acquire or a release."""
        match f:
            case "acquire":
                grant = await self.acquire(key)
                if grant is None:
                    return Fail(f"{HELD}: another client holds it")
                return Ok(grant.value if self.fencing else None, grant.order)
            case "release":
                done = await self.release(key, value)
                if done is None:
                    return Fail(f"{NOT_HELD}: the lock is free, or another client holds it")
                return Ok(value, *done)
        return unsupported(f, value)

    @abc.abstractmethod
    async def acquire(self, key: str) -> Seen | None:
        """Acquires the lock, and returns its fencing token; None if another client holds it."""

    @abc.abstractmethod
    async def release(self, key: str, token: Value) -> Done | None:
        """Releases the lock that has a token, None for the one that this client acquired last; returns None if it has none."""


class Logs(Contract):
    """The workload `log`."""

    workloads = ("log",)

    async def operate(self, key: str, f: str, value: Value) -> Outcome:
        """Carries out an append, or a read of one offset or of a range."""
        match f, value:
            case "append", _:
                return Ok(*await self.append(key, value))
            case "read", int(offset):
                entries, order = await self.read(key, offset, offset)
                return Ok(entries[0][1] if entries else None, order)
            case "read", [int(first), int(last)]:
                entries, order = await self.read(key, first, last)
                return Ok([list(entry) for entry in entries], order)
        return unsupported(f, value)

    @abc.abstractmethod
    async def append(self, key: str, value: Value) -> Seen:
        """Appends a value, and returns its offset."""

    @abc.abstractmethod
    async def read(self, key: str, first: int, last: int) -> Entries:
        """Returns the entries from one offset to another, as far as there are any."""


class Ledgers(Contract):
    """The workload `ledger`."""

    workloads = ("ledger",)

    def is_read(self, invocation: Invocation) -> bool:
        """Returns whether an operation neither appends nor ends a ledger."""
        return invocation.f in {READ, "confirmed", "inspect"}

    async def operate(self, key: str, f: str, value: Value) -> Outcome:
        """Carries out an append, a read of a range, an inspection, or what ends a ledger."""
        asked: Awaitable[Value]
        match f, value:
            case "append", _:
                return Ok(*await self.append(key, value))
            case "read", [int(first), int(last)]:
                entries, order = await self.read(key, first, last)
                return Ok([list(entry) for entry in entries], order)
            case "confirmed", None:
                asked = self.last_confirmed(key)
            case "inspect", None:
                asked = self.inspect(key)
            case "recover", None:
                asked = self.recover(key)
            case "close", None:
                asked = self.end(key)
            case _:
                return unsupported(f, value)
        return Ok(await asked)

    @abc.abstractmethod
    async def append(self, key: str, value: Value) -> Seen:
        """Appends a value, and returns its offset."""

    @abc.abstractmethod
    async def read(self, key: str, first: int, last: int) -> Entries:
        """Returns the confirmed entries from one offset to another."""

    @abc.abstractmethod
    async def last_confirmed(self, key: str) -> int:
        """Returns the offset of the last confirmed entry; -1 without one."""

    @abc.abstractmethod
    async def inspect(self, key: str) -> Value:
        """Returns what `workloads.ledger.inspection` describes."""

    @abc.abstractmethod
    async def recover(self, key: str) -> int:
        """Ends the ledger of another writer, and returns the offset of its last entry; -1 without one."""

    @abc.abstractmethod
    async def end(self, key: str) -> int:
        """Ends the ledger as its writer, for `close`, and returns the offset of its last entry; -1 without one."""


class Queues(Contract):
    """The workload `queue`."""

    workloads = ("queue",)

    async def operate(self, key: str, f: str, value: Value) -> Outcome:
        """Carries out an enqueue, a dequeue or a drain."""
        match f:
            case "enqueue":
                return Ok(value, *await self.enqueue(key, value))
            case "dequeue":
                taken = await self.dequeue(key)
                return Fail(f"{EMPTY}: {self.empty}") if taken is None else Ok(*taken)
            case "drain":
                return Ok(*await self.drain(key))
        return unsupported(f, value)

    empty: ClassVar[str] = "the queue has no value"

    @abc.abstractmethod
    async def enqueue(self, key: str, value: Value) -> Done:
        """Puts a value at the end."""

    @abc.abstractmethod
    async def dequeue(self, key: str) -> Seen | None:
        """Takes a value from the beginning; None if there is none."""

    @abc.abstractmethod
    async def drain(self, key: str) -> Seen:
        """Takes all values, and returns their list."""


class Transactions(Contract):
    """The workloads `list-append` and `rw-register`."""

    workloads: ClassVar[tuple[str, ...]] = (LIST_APPEND, RW_REGISTER)

    def is_read(self, invocation: Invocation) -> bool:
        """Returns whether a transaction has no effect."""
        return invocation.f == TRANSACTION and only_reads(invocation.value)

    async def operate(self, key: str, f: str, value: Value) -> Outcome:
        """Carries out a transaction."""
        return Ok(*await self.carry_out(key, value)) if f == TRANSACTION else unsupported(f, value)

    @abc.abstractmethod
    async def carry_out(self, key: str, mops: Mops) -> Seen:
        """Returns the micro-operations with the results of the reads. A conflict with others is `NotDone`."""


def by_workload(*contracts: type[C]) -> Mapping[str, type[C]]:
    """Returns the classes of a system by the names of their workloads, in their order. mypy names one that lacks a method."""
    return MappingProxyType({name: contract for contract in contracts for name in contract.workloads})


def served(contracts: Mapping[str, type[Contract]]) -> Mapping[str, str]:
    """Returns what a system serves, in words, for `harness.system.System.serves`."""
    return MappingProxyType({name: contract.serves for name, contract in contracts.items()})
