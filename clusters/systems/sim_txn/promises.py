"""What Labrys' transactional store promises to the clients of each workload; README.md has the runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from clusters.kit.transactions import LIST_APPEND, RW_REGISTER
from clusters.systems.sim_txn.options import Isolation, ReadsFrom, SimTxnOptions
from harness.promise import Promise

if TYPE_CHECKING:
    from collections.abc import Mapping

SPECIFICATION: Final = "Labrys, the specification of sim-txn, clusters/systems/sim_txn/README.md"
LEVELS: Final = {
    Isolation.SERIALIZABLE: "strict-serializable",
    Isolation.SNAPSHOT: "snapshot-isolation",
    Isolation.READ_COMMITTED: "read-committed",
}


def promises(options: SimTxnOptions) -> Mapping[str, Promise]:
    """Returns the promise to each workload."""
    level = LEVELS[options.isolation]
    if options.reads_from is ReadsFrom.REPLICA and options.isolation is Isolation.SERIALIZABLE:
        level = "serializable"
    promise = Promise(
        sentence=f"Transactions of the level {options.isolation}, with reads from the {options.reads_from}, are {level}.",
        source=SPECIFICATION,
        options={"consistency_model": level},
    )
    return dict.fromkeys((LIST_APPEND, RW_REGISTER), promise)
