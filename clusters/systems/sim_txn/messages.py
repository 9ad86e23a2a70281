"""The messages of the simulated store. All are immutable, because a message and its copies are one object."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from harness.op import Value

Written: TypeAlias = "tuple[tuple[str, Value], ...]"


class Step(NamedTuple):
    """A client asks the leader for one micro-operation. The first one of a transaction begins it.

    Attributes:
        txn: The transaction, with a name that no other one has.
        epoch: The term of the leader at which it began; None in its first step.
        number: The number of the micro-operation, from 0.
        mop: The micro-operation `(function, key, value)`.
    """

    txn: str
    epoch: int | None
    number: int
    mop: tuple[str, str, Value]


class Commit(NamedTuple):
    """A client asks the leader to commit a transaction of so many steps."""

    txn: str
    epoch: int
    steps: int


class ReadOnly(NamedTuple):
    """A client asks a node for the values of keys, all of one state."""

    keys: tuple[str, ...]


class Record(NamedTuple):
    """A commit.

    Attributes:
        txn: Its transaction; empty for the first record of a leader.
        written: The new values of its keys.
        term: The term of the leader that made it.
    """

    txn: str
    written: Written
    term: int


class AskVote(NamedTuple):
    """A candidate asks for a vote.

    Attributes:
        term: Its term.
        last: The number of its last record, and the term of this record.
    """

    term: int
    last: tuple[int, int]


class Vote(NamedTuple):
    """The answer to a candidate of a term."""

    term: int
    granted: bool


class Append(NamedTuple):
    """A leader sends the records after a number.

    Attributes:
        term: The leader's term.
        before: The number of the record before them, and the term of this record.
        records: The records; none in a heartbeat.
        committed: The number of the last record that is on a majority of the nodes.
        round: The number of this sending, which the answer repeats.
    """

    term: int
    before: tuple[int, int]
    records: tuple[Record, ...]
    committed: int
    round: int


class Appended(NamedTuple):
    """The answer to a leader.

    Attributes:
        term: The follower's term.
        fits: Whether the follower has the record before those that it got.
        last: If so, the last record that it has like the leader; otherwise its last record.
        round: The number of the sending.
    """

    term: int
    fits: bool
    last: int
    round: int


class Status(NamedTuple):
    """What a node is, the leader that it knows, and the numbers of its last record and of the last committed one."""

    role: str
    term: int
    leader: str | None
    last: int
    committed: int


class Answer(NamedTuple):
    """An answer to a client.

    Attributes:
        code: What happened; see `clusters.systems.sim_txn.outcomes`.
        value: The result of a read, those of all keys of a replica, or the number of the record of a commit that wrote; else
            None.
        epoch: The term of the leader; only in the answer to a step.
        leader: The leader that a node knows which does not lead.
    """

    code: str
    value: Value = None
    epoch: int | None = None
    leader: str | None = None
