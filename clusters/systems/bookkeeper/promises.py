"""What BookKeeper promises to the clients of each workload; README.md has the runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from harness.promise import Promise

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clusters.systems.bookkeeper.options import BookKeeperOptions

PROTOCOL: Final = (
    "Apache BookKeeper documentation, The BookKeeper protocol, https://bookkeeper.apache.org/docs/development/protocol"
)
UNSYNCED: Final = " Without a synced journal, a power loss may lose acknowledged entries."


def promises(options: BookKeeperOptions) -> Mapping[str, Promise]:
    """Returns the promise to each workload."""
    lost = "" if options.journal_sync and options.journal_data else UNSYNCED
    stays = f"An acknowledged entry stays while fewer bookies than the ack quorum are lost.{lost}"
    return {
        "log": Promise(
            sentence=f"{stays} Reads may lag, since an entry of an open ledger is confirmed with the next one.",
            source=PROTOCOL,
            options={"linearizable": False},
        ),
        "ledger": Promise(
            sentence=f"{stays} After a recovery or a close, the ledger never changes, and all clients find the same end.",
            source=PROTOCOL,
        ),
    }
