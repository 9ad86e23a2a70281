"""The requests and messages of the workload `ledger`, beside those in `messages`."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from clusters.systems.sim_bookkeeper.messages import Entry, Meta
    from harness.op import Value


class LedgerRequest(NamedTuple):
    """A client's operation on the ledger of a key.

    Attributes:
        key: The key.
        f: `append`, `read`, `confirmed`, `recover` or `close`.
        value: The value of an append; the first and the last entry of a read.
    """

    key: str
    f: str
    value: Value = None


class AskConfirmed(NamedTuple):
    """A reader's request for the last add confirmed that a bookie knows. It does not fence. The answer repeats the number."""

    key: str
    number: int
    segment: int


class ConfirmedIs(NamedTuple):
    """The answer to `AskConfirmed`; -1 if the bookie has no entry of the ledger."""

    key: str
    number: int
    last: int


class AskHeld(NamedTuple):
    """A request of an observer for all that a node has of a ledger: a bookie its entries, the metadata store its metadata."""

    key: str


class Held(NamedTuple):
    """What a node has of a ledger.

    Attributes:
        entries: The entries of a bookie, by offset.
        damaged: The offsets whose files are damaged.
        meta: The metadata, of the metadata store.
    """

    entries: tuple[tuple[int, Entry], ...] = ()
    damaged: tuple[int, ...] = ()
    meta: Meta | None = None
