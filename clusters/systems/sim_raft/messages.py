"""What nodes send each other, and what clients ask and are answered.

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
        body: A command as JSON; empty for the entry with which a leader begins its term.
    """

    term: int
    body: bytes


class Snapshot(NamedTuple):
    """A state machine with its sessions, after all entries up to one.

    Attributes:
        index: The last entry that it contains.
        term: The term of that entry.
        body: The state, as `service.Service.saved` gives it.
    """

    index: int  # type: ignore[assignment]  # hides tuple.index, which no one needs here
    term: int
    body: bytes


class AskVote(NamedTuple):
    """A candidate asks for a vote, or whether it would get one (`pre`: then `term` is the one that it would begin)."""

    term: int
    last_index: int
    last_term: int
    pre: bool
    transfer: bool


class Vote(NamedTuple):
    """The answer to `AskVote`. `term` is that of the question if the vote is granted, else the voter's."""

    term: int
    granted: bool
    pre: bool


class Append(NamedTuple):
    """A leader's entries behind `prev_index`, or a heartbeat without any.

    Attributes:
        term: The leader's.
        prev_index: The index in front of the entries.
        prev_term: The term of the leader's entry there.
        entries: In order.
        commit: How far the leader's log is committed.
        round: The leader's round of messages, which the answer repeats; see `replication.Rounds`.
        resets: Set only by a planted bug: the receiver drops whatever follows `prev_index`.
    """

    term: int
    prev_index: int
    prev_term: int
    entries: tuple[Entry, ...]
    commit: int
    round: int
    resets: bool = False


class Install(NamedTuple):
    """A leader's snapshot, for a follower that lacks entries which the leader's log has no more."""

    term: int
    snapshot: Snapshot
    round: int


class Appended(NamedTuple):
    """The answer to `Append` and `Install`.

    Attributes:
        term: The follower's.
        ok: Whether its log now has what was sent.
        index: The last entry that certainly is the leader's; if not ok, where the leader should try next.
        round: The round of the question.
    """

    term: int
    ok: bool
    index: int  # type: ignore[assignment]  # likewise
    round: int


class TimeoutNow(NamedTuple):
    """A leader asks a follower to begin an election at once (3.10)."""

    term: int


class Command(NamedTuple):
    """A client asks for an entry in the log. `session` and `sequence` are the same in each repetition of one request."""

    session: str
    sequence: int
    f: str
    key: str
    value: Value


class Query(NamedTuple):
    """A client reads."""

    f: str
    key: str
    value: Value


class AskStatus(NamedTuple):
    """Asks a node for its own view."""


class AskDump(NamedTuple):
    """Asks a node for its whole state."""


class AskTransfer(NamedTuple):
    """Asks a leader to hand its leadership to another node."""

    to: str


class Answer(NamedTuple):
    """What a node answers to a client.

    Attributes:
        code: `outcomes.OK`, or another of its codes.
        value: The result, where there is one.
        order: The index of the last entry that changed the object, as far as the operation saw; None if it failed.
        leader: The node to ask instead, if this one knows it.
    """

    code: str
    value: Value = None
    order: int | None = None
    leader: str | None = None


class Status(NamedTuple):
    """What a node says about itself; `serving` is whether it has committed an entry of its own term."""

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
    """A node's whole state, and the index that it belongs to."""

    applied: int
    state: dict[str, Value]
