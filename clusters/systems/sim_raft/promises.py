"""What Labrys' Raft promises to the clients of each workload; README.md has the runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from harness.promise import Promise

if TYPE_CHECKING:
    from collections.abc import Mapping

SPECIFICATION: Final = "Labrys, the specification of sim-raft, clusters/systems/sim_raft/README.md"


def promises() -> Mapping[str, Promise]:
    """Returns the promise to each workload."""
    promise = Promise(
        sentence="An acknowledged change is in the log of a majority, and operations are linearizable.",
        source=SPECIFICATION,
    )
    lock = Promise(
        sentence="One client holds a lock until it releases it, or until its session is closed; a later holder has a higher "
        "token.",
        source=SPECIFICATION,
    )
    return {**dict.fromkeys(("register", "set", "log", "counter"), promise), "lock": lock}
