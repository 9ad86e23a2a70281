"""The outcome of an operation by the answer of a client process. Every verdict depends on this table.

An append is `fail` only if the process gave no entry to BookKeeper. Each code of BookKeeper itself is `info`: bookies may have
the entry, and a recovery can then make it part of the ledger. This holds for `LedgerFencedException` too. So does
`LedgerClosedException`: a writer whose change of the ensemble finds a closed ledger gives it to entries that it has sent.

Before an append, a take-over recovers the last ledger, creates the next one and changes the list of the log. It appends
nothing, so an append whose take-over failed is `fail`, whatever the code.

Source: BookKeeper 4.17.3, `LedgerHandle.doAsyncAddEntry`, `PendingAddOp`, `BKException.Code`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

NO_HANDLE: Final = "no-handle"  # the process does not write the ledger, e.g. because it started again
LIST_CHANGED: Final = "list-changed"  # another client took the log over meanwhile
NOT_WRITER: Final = "not-writer"  # another process writes the log
NO_LEDGER: Final = "no-ledger"  # nobody has created it yet
REFUSALS: Final = (NO_HANDLE, LIST_CHANGED, NO_LEDGER, NOT_WRITER)

ABSENT: Final = (-13, -7)  # a bookie has no such entry, or no such ledger

NAMES: Final[Mapping[int, str]] = {
    -1: "read",
    -2: "quorum",
    -3: "no-bookie-available",
    -5: "digest-match",
    -6: "not-enough-bookies",
    -7: "no-such-ledger",
    -8: "bookie-not-available",
    -9: "zookeeper",
    -10: "ledger-recovery",
    -11: "ledger-closed",
    -12: "write",
    -13: "no-such-entry",
    -17: "metadata-version",
    -19: "client-closed",
    -21: "add-quorum-timeout",
    -23: "timeout",
    -101: "ledger-fenced",
}


def name_of(code: int) -> str:
    """Returns the code of an error in the history."""
    return NAMES.get(code, f"code{code}")
