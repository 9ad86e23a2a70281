"""What Labrys' BookKeeper promises to the clients of each workload; README.md has the runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from harness.promise import Promise

if TYPE_CHECKING:
    from collections.abc import Mapping

SPECIFICATION: Final = "Labrys, the specification of sim-bookkeeper, clusters/systems/sim_bookkeeper/README.md"


def promises() -> Mapping[str, Promise]:
    """Returns the promise to each workload."""
    stays = "An acknowledged entry stays while fewer bookies than the ack quorum are lost"
    return {
        "log": Promise(
            sentence=f"{stays}, and a read is linearizable, since the writer asks whether it still is the writer.",
            source=SPECIFICATION,
        ),
        "ledger": Promise(
            sentence=f"{stays}. After a recovery or a close, the ledger never changes, and all clients find the same end.",
            source=SPECIFICATION,
        ),
    }
