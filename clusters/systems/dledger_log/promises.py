"""What the log of DLedger promises to the clients of each workload; README.md has the runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from clusters.systems.dledger.promises import DLEDGER
from clusters.systems.dledger_log.options import DLedgerLogOptions, LogRead
from harness.promise import Promise

if TYPE_CHECKING:
    from collections.abc import Mapping

GET: Final = (
    " A read without a barrier promises nothing about its age; the test asks for linearizable reads all the same, as a "
    "negative control."
)


def promises(options: DLedgerLogOptions) -> Mapping[str, Promise]:
    """Returns the promise to each workload."""
    unsafe = GET if options.log_read is LogRead.GET else ""
    sentence = (
        f"An acknowledged entry is committed, and stays at its index; a read behind a barrier is linearizable.{unsafe}"
    )
    return dict.fromkeys(("set", "log"), Promise(sentence=sentence, source=DLEDGER))
