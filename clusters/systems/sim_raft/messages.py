"""The messages between nodes, and the requests and answers of clients.

Terms, indexes and rounds are integers from 0; index 0 is before the first entry of the log. Source of the messages between
nodes: Ongaro, "Consensus: bridging theory and practice" (2014), figures 3.1 (votes, appends), 5.3 (snapshots), sections 3.10
(transfer), 9.6 (pre-vote).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from harness.op import Value


class Entry(NamedTuple):
    """An entry of the log.

    Attributes:
        term: The term of the leader that made it.
        body: A command as JSON; empty for a leader's first entry of a term.
    """

    term: int
    body: bytes


class Snapshot(NamedTuple):
    """The state machine and its sessions after an entry.

    Attributes:
        index: The index of the last entry that it contains.
        term: The term of that entry.
        body: The state; see `service.Service.saved`.
    """

    index: int  # type: ignore[assignment]  # hides tuple.index, which nothing uses
    term: int
    body: bytes


class AskVote(NamedTuple):
    """A candidate's request for a vote, or for a pre-vote (`pre`). For a pre-vote, `term` is the term that would begin."""

    term: int
    last_index: int
    last_term: int
    pre: bool
    transfer: bool


class Vote(NamedTuple):
    """The answer to `AskVote`. `term` is the term of the request if the vote is granted, otherwise the voter's term."""

    term: int
    granted: bool
    pre: bool


class Append(NamedTuple):
    """A leader's entries after `prev_index`, or a heartbeat without entries.

    Attributes:
        term: The leader's term.
        prev_index: The index before the entries.
        prev_term: The term of the leader's entry at `prev_index`.
        entries: The entries, in order.
        commit: The leader's commit index.
        round: The number of the leader's round, which the answer repeats; see `replication`.
        number: The number of the message to this follower, which the answer repeats.
        resets: Set only by a planted bug: the receiver drops all entries after `prev_index`.
    """

    term: int
    prev_index: int
    prev_term: int
    entries: tuple[Entry, ...]
    commit: int
    round: int
    number: int
    resets: bool = False


class Install(NamedTuple):
    """A leader's snapshot, for a follower that lacks entries which the leader's log has dropped."""

    term: int
    snapshot: Snapshot
    round: int
    number: int


class Appended(NamedTuple):
    """The answer to `Append` and `Install`.

    Attributes:
        term: The follower's term.
        ok: Whether the follower's log now has the entries or the snapshot.
        index: The last entry that is certainly equal to the leader's; if not ok, the index after which the leader should try.
        round: The round of the request.
        number: The number of the request.
    """

    term: int
    ok: bool
    index: int  # type: ignore[assignment]  # hides tuple.index, which nothing uses
    round: int
    number: int


class TimeoutNow(NamedTuple):
    """A leader's request that a follower begins an election at once (3.10)."""

    term: int


class Command(NamedTuple):
    """A client's request for an entry in the log. Every repetition of it has the same `session` and `sequence`."""

    session: str
    sequence: int
    f: str
    key: str
    value: Value


class Query(NamedTuple):
    """A client's read."""

    f: str
    key: str
    value: Value


class AskDump(NamedTuple):
    """A request for a node's whole state."""


class AskTransfer(NamedTuple):
    """A request that a leader transfers its leadership to another node."""

    to: str


class Answer(NamedTuple):
    """A node's answer to a client.

    Attributes:
        code: `outcomes.OK`, or another code of `outcomes`.
        value: The result, if there is one.
        order: The index of the last entry that changed the object before or in this operation; None if the operation failed.
        leader: The leader, if the node refuses and knows it.
    """

    code: str
    value: Value = None
    order: int | None = None
    leader: str | None = None


class Status(NamedTuple):
    """A node's status. `serving`: whether it leads and has committed an entry of its own term."""

    role: str
    term: int
    leader: str | None
    applied: int
    committed: int
    last: int
    snapshot: int
    serving: bool
    repairing: bool


class Dump(NamedTuple):
    """A node's whole state, and its log index."""

    applied: int
    state: dict[str, Value]
