"""What DLedger promises to the clients of each workload; README.md has the runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from clusters.systems.dledger.options import DLedgerOptions, ReadMode
from harness.promise import Promise

if TYPE_CHECKING:
    from collections.abc import Mapping

DLEDGER: Final = (
    "DLedger, a Raft library for a strongly consistent commit log, https://github.com/openmessaging/dledger; In Search of an "
    "Understandable Consensus Algorithm, https://raft.github.io/raft.pdf"
)
UNSAFE: Final = (
    " UNSAFE_READ promises nothing about the age of a read; the test asks for linearizable reads all the same, as a negative "
    "control."
)


def promises(options: DLedgerOptions) -> Mapping[str, Promise]:
    """Returns the promise to each workload."""
    unsafe = UNSAFE if options.read_mode is ReadMode.UNSAFE else ""
    sentence = f"An acknowledged write is committed, and operations are linearizable.{unsafe}"
    return {"register": Promise(sentence=sentence, source=DLEDGER)}
