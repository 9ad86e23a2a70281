"""The state machines, which carry out the commands in the log. Their state depends only on the commands and their order.

A machine holds objects by key. `apply` carries out a command, and `read` answers without a change. Both return a code, a value,
and the index of the last entry that changed the object. `saved` and `load` are for snapshots.
"""

from __future__ import annotations

import abc
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from clusters.systems.sim_raft import outcomes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness.op import Value


class Result(NamedTuple):
    """The result of a command or a query; see `messages.Answer`."""

    code: str
    value: Value = None
    order: int | None = None


class Machine(abc.ABC):
    """Objects by key.

    Attributes:
        state: The object of each key, as JSON-like data.
        changed: For each key, the index of the entry that changed the object last.
        initial: The value of an object before its first change.
    """

    initial: ClassVar[Any] = None

    def __init__(self) -> None:
        self.state: dict[str, Any] = {}
        self.changed: dict[str, int] = {}

    def apply(self, index: int, session: str, f: str, key: str, value: Value) -> Result:
        """Carries out the command in the entry `index`, for the client `session`."""
        result = self.change(index, session, f, key, value)
        if result.code == outcomes.OK:
            self.changed[key] = index
            return result._replace(order=index)
        return result

    def read(self, f: str, key: str, value: Value) -> Result:
        """Answers a query."""
        if f != "read":
            return Result(outcomes.UNSUPPORTED)
        return Result(outcomes.OK, self.select(self.state.get(key, self.initial), value), self.changed.get(key, 0))

    @abc.abstractmethod
    def change(self, index: int, session: str, f: str, key: str, value: Value) -> Result:
        """Changes an object. With a code other than `ok` the object stays unchanged."""

    def select(self, state: Any, selector: Value) -> Value:  # noqa: ARG002 - by default a read returns the whole object
        """Returns the result of a read. It is a copy if the object can change later, since the caller may keep it."""
        return state

    def closed(self, session: str) -> None:  # noqa: B027 - most machines have no state of a client
        """Removes the state of a client that closed its session."""

    def saved(self) -> Value:
        """Returns the whole state for a snapshot."""
        return [self.state, self.changed]

    def load(self, saved: Value) -> None:
        """Replaces the state by that of a snapshot."""
        self.state, self.changed = saved


class Registers(Machine):
    """Registers: `write` sets a value, `cas` compares and sets."""

    def change(self, index: int, session: str, f: str, key: str, value: Value) -> Result:  # noqa: ARG002
        """Writes, or compares and sets."""
        if f == "write":
            self.state[key] = value
            return Result(outcomes.OK, value)
        if f == "cas":
            expected, new = value
            holds = self.state.get(key)
            if holds != expected:
                return Result(outcomes.CAS_MISMATCH, holds)
            self.state[key] = new
            return Result(outcomes.OK, value)
        return Result(outcomes.UNSUPPORTED)


class Sets(Machine):
    """Sets: `add` adds an element."""

    initial = ()

    def change(self, index: int, session: str, f: str, key: str, value: Value) -> Result:  # noqa: ARG002
        """Adds an element, if the set does not have it."""
        if f != "add":
            return Result(outcomes.UNSUPPORTED)
        elements = self.state.setdefault(key, [])
        if value not in elements:
            elements.append(value)
        return Result(outcomes.OK, value)

    def select(self, state: Any, selector: Value) -> Value:  # noqa: ARG002
        """Returns all elements, in the order of their adds."""
        return list(state)


class Logs(Machine):
    """Logs: `append` appends a value. Its offset is its position in the log of the key, from 0."""

    initial = ()

    def change(self, index: int, session: str, f: str, key: str, value: Value) -> Result:  # noqa: ARG002
        """Appends a value and returns its offset."""
        if f != "append":
            return Result(outcomes.UNSUPPORTED)
        values = self.state.setdefault(key, [])
        values.append(value)
        return Result(outcomes.OK, len(values) - 1)

    def select(self, state: Any, selector: Value) -> Value:
        """Returns the value at an offset, or None; or all offsets and values of a range."""
        if isinstance(selector, int):
            return state[selector] if 0 <= selector < len(state) else None
        first, last = selector
        return [[offset, state[offset]] for offset in range(max(0, first), min(last + 1, len(state)))]


class Locks(Machine):
    """Locks: `acquire` takes a free lock, `release` frees one's own. The token is the index of the entry of the acquire."""

    def change(self, index: int, session: str, f: str, key: str, value: Value) -> Result:
        """Acquires the lock and returns its token, or releases it."""
        holder = self.state.get(key)
        if f == "acquire":
            if holder is not None:
                return Result(outcomes.LOCK_HELD)
            self.state[key] = [session, index]
            return Result(outcomes.OK, index)
        if f == "release":
            if holder is None or holder[0] != session or value not in {None, holder[1]}:
                return Result(outcomes.NOT_HOLDER)
            del self.state[key]
            return Result(outcomes.OK, value)
        return Result(outcomes.UNSUPPORTED)

    def closed(self, session: str) -> None:
        """Frees the locks of a client that closed its session."""
        for key in [key for key, holder in self.state.items() if holder[0] == session]:
            del self.state[key]


class Counters(Machine):
    """Counters: `add` adds an amount."""

    initial = 0

    def change(self, index: int, session: str, f: str, key: str, value: Value) -> Result:  # noqa: ARG002
        """Adds an amount, which may be negative."""
        if f != "add":
            return Result(outcomes.UNSUPPORTED)
        self.state[key] = self.state.get(key, 0) + value
        return Result(outcomes.OK, value)


MACHINES: Mapping[str, type[Machine]] = MappingProxyType(
    {"register": Registers, "set": Sets, "log": Logs, "lock": Locks, "counter": Counters}
)
