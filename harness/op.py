"""The vocabulary of a history: operations as events (`Op`) and as intervals (`Operation`), and outcomes.

The soundness of every verdict depends on the meaning of the four types:

- `invoke`: a process is about to send a request; its time is taken before the request can leave;
- `ok`: the operation happened, with this value; its time is taken after the answer was read;
- `fail`: it certainly did not happen, and never will;
- `info`: it may have happened, or may still happen at any later time. Its process never works again.

A value is JSON: null, booleans, integers, floats, strings, lists and maps with string keys. The register
workload uses: read `None -> int | None`, write `int`, cas `[expected, new]`.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

Value: TypeAlias = Any  # None | bool | int | float | str | list[Value] | dict[str, Value]
Process: TypeAlias = int | str

NEMESIS = "nemesis"
NO_KEY: str | None = None
ONLY_KEY = "only"  # the name in a system of the object of a workload that has one and no keys
FINAL_PHASE = "final"
RECOVERY_PHASE = "recovery"
RESOURCE_PHASE = "resource"


class OpType(enum.StrEnum):
    """The type of an event."""

    INVOKE = "invoke"
    OK = "ok"
    FAIL = "fail"
    INFO = "info"


class Op(NamedTuple):
    """One event of a history.

    A tuple, not a dataclass: a run makes two for every operation, and this is several times cheaper.

    Attributes:
        index: The position in the history, from 0.
        time_ns: Nanoseconds on the control node's monotonic clock since the run's start.
        type: See `OpType`.
        process: A client's number, or `"nemesis"`.
        f: The function, e.g. `read`, `write`, `cas`, or a fault's kind.
        value: The argument (invoke, fail, info) or the result (ok).
        key: The independent key; None if there is only one object.
        node: The node of the client; None for the nemesis.
        error: The cause of a `fail` or `info`: `code` or `code: text`.
        scheduled_ns: The due time of an open-loop arrival; None in a closed loop.
        phase: None for the workload itself; `RECOVERY_PHASE` for its operations after healing, by which a run sees whether
            clients are served; `FINAL_PHASE` for the reads after that; `RESOURCE_PHASE` for operations that never reach the
            system.
        via: On a completion: the node that the client contacted, if the client chooses its node (it follows the leader); None
            for a client that stays at `node`.
        order: On a completion: the number that the system gave to the operation; see `Ok`.
    """

    index: int  # type: ignore[assignment]  # hides tuple.index
    time_ns: int
    type: OpType
    process: Process
    f: str
    value: Value = None
    key: str | None = NO_KEY
    node: str | None = None
    error: str | None = None
    scheduled_ns: int | None = None
    phase: str | None = None
    via: str | None = None
    order: int | None = None


class Invocation(NamedTuple):
    """An operation for a worker, as a generator returns it.

    Attributes:
        f: The function.
        value: The argument.
        key: The independent key, or None.
        phase: As in `Op`.
        scheduled_ns: As in `Op`.
    """

    f: str
    value: Value = None
    key: str | None = NO_KEY
    phase: str | None = None
    scheduled_ns: int | None = None


@dataclass(frozen=True, slots=True)
class Ok:
    """The operation happened.

    Attributes:
        value: The result; for writes and cas the argument itself.
        order: The number that the system gave to the operation among those on its key, from -2^63 to 2^63 - 1: a
            revision, the index of a log's entry, an offset. A read has the number of the last change that it saw.
            None: the system gives no number. `checker.decide.hints` describes its use.
    """

    value: Value = None
    order: int | None = None


@dataclass(frozen=True, slots=True)
class Fail:
    """The operation certainly did not happen. A client returns it only for causes on its whitelist.

    Attributes:
        error: A short code, e.g. `not-leader`, with an optional text after a colon.
    """

    error: str


@dataclass(frozen=True, slots=True)
class Info:
    """The operation may have happened, or may still happen.

    Attributes:
        error: A short code, e.g. `timeout`, with an optional text after a colon.
    """

    error: str


Outcome: TypeAlias = Ok | Fail | Info


class Contact(NamedTuple):
    """The node that an operation reached.

    Attributes:
        node: The name of the node.
        answered: Whether the history says that this node answered. If not, the operation was sent to it, and the history does
            not say who answered.
    """

    node: str
    answered: bool

    def __str__(self) -> str:
        return f"answered by {self.node}" if self.answered else f"sent to {self.node}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One operation as an interval: an invoke joined with its completion.

    Attributes:
        process: The process.
        f: The function.
        value: The argument as invoked.
        result: The completion's value if `type` is ok, else None.
        type: `ok`, `fail` or `info`; an operation that never completed is `info`.
        start_ns: The invoke's time.
        end_ns: The completion's time; None if there is no completion event.
        invoke_index: The invoke's index in the history.
        complete_index: The completion's index; None if there is none.
        key: The independent key, or None.
        node: The node of the client.
        error: The completion's error.
        scheduled_ns: As in `Op`.
        phase: As in `Op`.
        via: As in `Op`; None if there is no completion event.
        order: As in `Op`; None if there is no completion event.
    """

    process: Process
    f: str
    value: Value
    result: Value
    type: OpType
    start_ns: int
    end_ns: int | None
    invoke_index: int
    complete_index: int | None
    key: str | None = NO_KEY
    node: str | None = None
    error: str | None = None
    scheduled_ns: int | None = None
    phase: str | None = None
    via: str | None = None
    order: int | None = None

    @property
    def last_ns(self) -> int:
        """Returns the time of its last event: its end, or its start if it has no end."""
        return self.start_ns if self.end_ns is None else self.end_ns

    @property
    def contact(self) -> Contact | None:
        """Returns the node that answered, else the node that the operation was sent to; None if it has none."""
        if self.phase == RESOURCE_PHASE:
            return None
        node = self.node if self.via is None else self.via
        return None if node is None else Contact(node, self.via is not None and self.type is OpType.OK)
