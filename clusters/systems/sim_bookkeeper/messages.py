"""The messages between nodes, and the requests and answers of clients.

Terms and versions are integers from 1, offsets are integers from 0. Each request to a bookie or to the metadata store names the
log by its key. Source of the messages to bookies: apache/bookkeeper, docs/development/protocol.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from harness.op import Value


class Entry(NamedTuple):
    """An entry of a ledger.

    Attributes:
        value: The appended value; None for an entry that ends a recovery.
        truncates: 0, or the term of the recovery that this entry ends. A bookie deletes all later entries when it gets it.
    """

    value: Value
    truncates: int = 0


class Fragment(NamedTuple):
    """A part of a segment with one ensemble.

    Attributes:
        first: The first offset. The fragment ends where the next one begins, or with the segment.
        bookies: The ensemble: the bookies that get its entries.
    """

    first: int
    bookies: tuple[str, ...]


class Segment(NamedTuple):
    """A ledger, or with `term-ids` the part of the ledger that one term wrote.

    Attributes:
        number: The number that the ids of its entries have, beside the offset.
        first: The first offset.
        last: The last offset; None while it is not closed.
        fragments: Its fragments, in order; at least one.
    """

    number: int
    first: int
    last: int | None
    fragments: tuple[Fragment, ...]


class Meta(NamedTuple):
    """The metadata of a log.

    Attributes:
        version: Its version; each change adds 1.
        term: The number of the last writer or recoverer.
        is_open: Whether this client node may write; False during its recovery.
        owner: The client node.
        segments: The ledgers of the log, in order.
    """

    version: int
    term: int
    is_open: bool
    owner: str
    segments: tuple[Segment, ...]


class Put(NamedTuple):
    """A change of the metadata from the version before `meta.version`, by compare-and-set."""

    key: str
    meta: Meta


class Get(NamedTuple):
    """A request for the metadata. The answer repeats the number."""

    key: str
    number: int


class MetaIs(NamedTuple):
    """The metadata after `Put` (number 0) or `Get`."""

    key: str
    number: int
    meta: Meta


class Add(NamedTuple):
    """An entry for a bookie.

    Attributes:
        key: The key of the log.
        term: The term of the writer or recoverer.
        segment: The number of the segment.
        offset: The offset of the entry.
        entry: The entry.
        lac: The last add confirmed: the writer has acknowledged all entries up to this offset.
        recovery: Whether a recovery writes the entry. With ledgers, it passes the fence.
    """

    key: str
    term: int
    segment: int
    offset: int
    entry: Entry
    lac: int
    recovery: bool


class Added(NamedTuple):
    """A bookie has stored the entry of an `Add`."""

    key: str
    term: int
    offset: int


class Fence(NamedTuple):
    """A recoverer's first request: the bookie stops earlier writers, and tells the last add confirmed that it knows."""

    key: str
    term: int
    segment: int


class Fenced(NamedTuple):
    """The answer to `Fence`. `lac` is -1 if the bookie has no entry of the segment."""

    key: str
    term: int
    lac: int


class Join(NamedTuple):
    """A writer's request to a bookie that is to join its ensemble: the bookie deletes its entries from `first` on.

    `version` is the version of the metadata that will name the bookie. The bookie deletes once for each version.
    """

    key: str
    term: int
    segment: int
    first: int
    version: int


class Joined(NamedTuple):
    """The answer to `Join`."""

    key: str
    term: int
    version: int


class ReadNext(NamedTuple):
    """A recoverer's read of one entry. It stops earlier writers as `Fence` does, unless a planted bug clears `fences`."""

    key: str
    term: int
    segment: int
    offset: int
    fences: bool


class NextRead(NamedTuple):
    """The answer to `ReadNext`. `entry` is None if the bookie does not have it."""

    key: str
    term: int
    offset: int
    entry: Entry | None


class Refused(NamedTuple):
    """A bookie refuses a request of the term `term`: the ledger is fenced, or the bookie knows a higher term."""

    key: str
    term: int


class Fetch(NamedTuple):
    """An ordinary read of a range of offsets. The answer repeats the number, the segment and the first offset."""

    key: str
    number: int
    segment: int
    first: int
    last: int


class Fetched(NamedTuple):
    """The entries that a bookie has in the range of a `Fetch`, by offset, and the offsets whose files are damaged."""

    key: str
    number: int
    segment: int
    first: int
    entries: tuple[tuple[int, Entry], ...]
    damaged: tuple[int, ...]


class Append(NamedTuple):
    """A client's append. With `takes_over`, a client node that is not the writer becomes the writer first."""

    key: str
    value: Value
    takes_over: bool


class Query(NamedTuple):
    """A client's read of the offsets from `first` to `last`. With `single`, the answer is the value at `first`."""

    key: str
    first: int
    last: int
    single: bool
    takes_over: bool


class Answer(NamedTuple):
    """A node's answer to a client.

    Attributes:
        code: `outcomes.OK`, or another code of `outcomes`.
        value: The result, if there is one.
        writer: The client node that is the writer, if the node refuses and knows another one.
    """

    code: str
    value: Value = None
    writer: str | None = None


class Status(NamedTuple):
    """A node's status.

    Attributes:
        role: Its part.
        term: The highest term that it knows.
        leader: The writer that it knows.
        confirmed: The last add confirmed of a writer.
        ledgers: The key, the last add confirmed and the last entry sent of each ledger that it writes (workload `ledger`).
    """

    role: str
    term: int | None
    leader: str | None
    confirmed: int | None
    ledgers: tuple[tuple[str, int, int], ...] = ()
