"""The messages of the simulated store. All are immutable, because a message and its copies are one object."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from harness.op import Value

Written: TypeAlias = "tuple[tuple[str, Value], ...]"


class Step(NamedTuple):
    """A client asks the primary for one micro-operation. The first one of a transaction begins it.

    Attributes:
        txn: The transaction, with a name that no other one has.
        epoch: The start of the primary at which it began; None in its first step.
        number: The number of the micro-operation, from 0.
        mop: The micro-operation `(function, key, value)`.
    """

    txn: str
    epoch: int | None
    number: int
    mop: tuple[str, str, Value]


class Commit(NamedTuple):
    """A client asks the primary to commit a transaction of so many steps."""

    txn: str
    epoch: int
    steps: int


class ReadOnly(NamedTuple):
    """A client asks a replica for the values of keys, all of one state."""

    keys: tuple[str, ...]


class Fetch(NamedTuple):
    """A replica asks the primary for commits from a number on."""

    first: int


class Record(NamedTuple):
    """A commit: its transaction, and the new values of its keys."""

    txn: str
    written: Written


class Batch(NamedTuple):
    """The primary sends a replica commits from a number on."""

    first: int
    records: tuple[Record, ...]


class AskStatus(NamedTuple):
    """An observer asks a node what it is."""


class Status(NamedTuple):
    """What a node is, and the number of the last commit that it has."""

    role: str
    leader: str
    applied: int


class Answer(NamedTuple):
    """An answer to a client.

    Attributes:
        code: What happened; see `clusters.systems.sim_txn.outcomes`.
        value: The result of a read, or those of all keys of a replica; None for others.
        epoch: The start of the primary; only in the answer to a step.
    """

    code: str
    value: Value = None
    epoch: int | None = None
