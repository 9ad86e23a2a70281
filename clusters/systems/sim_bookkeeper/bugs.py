"""The planted bugs: deliberate mistakes of the system. A run has at most one.

A bug changes a line or two of the correct code, in the part where a real system would have it. `TABLE` names real systems with
the same mistake, and their issues.
"""

from __future__ import annotations

import enum
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from clusters.sim.planted import Planted
from harness.declare import Needs

if TYPE_CHECKING:
    from collections.abc import Mapping


class Bug(enum.StrEnum):
    """A planted bug; `none` is the correct version."""

    NONE = "none"
    CAS_LEFT_OUT = "cas-left-out"
    RECOVERY_READS_DO_NOT_FENCE = "recovery-reads-do-not-fence"
    UNKNOWN_LEDGER_NOT_FENCED = "unknown-ledger-not-fenced"
    FENCE_NOT_JOURNALLED = "fence-not-journalled"
    ADDS_NOT_FENCED = "adds-not-fenced"
    ACKNOWLEDGED_BEFORE_SYNC = "acknowledged-before-sync"
    ACKNOWLEDGED_OUT_OF_ORDER = "acknowledged-out-of-order"
    ONE_ABSENCE_ENDS_RECOVERY = "one-absence-ends-recovery"
    RECOVERED_NOT_WRITTEN_BACK = "recovered-not-written-back"
    TRUNCATE_KEEPS_LATER = "truncate-keeps-later"
    TRUNCATES_AGAIN = "truncates-again"
    FENCED_IS_FAIL = "fenced-is-fail"
    UNCONFIRMED_READS = "unconfirmed-reads"
    READS_WITHOUT_ASKING = "reads-without-asking"
    ANSWERS_OF_REPLACED_COUNT = "answers-of-replaced-count"
    METADATA_CHANGED_IN_RECOVERY = "metadata-changed-in-recovery"
    PINNED_ARE_REPLACED = "pinned-are-replaced"
    REFUSED_IS_TIMEOUT = "refused-is-timeout"
    ID_GIVEN_AGAIN = "id-given-again"
    CONFIRMED_GOES_BACK = "confirmed-goes-back"
    RECOVERIES_CONFIRM = "recoveries-confirm"
    FAILED_SYNC_TRUSTED = "failed-sync-trusted"


_TERMS: Final = MappingProxyType({"protocol": ("terms",)})
# Three bookies of four are the ensemble.
_SPARE: Final = MappingProxyType({"nodes": 7, "ensemble": 3})
_TWO_SPARES: Final = MappingProxyType({"nodes": 8, "ensemble": 3})
# Faults after which a bookie starts again from its disk.
_RESTARTS: Final = ("kill", "leaders-kill", "crash", "power-loss", "file-truncate", "file-bitflip")

TABLE: Final[Mapping[Bug, Planted]] = MappingProxyType(
    {
        Bug.CAS_LEFT_OUT: Planted(
            does="The metadata store accepts every change, whatever version it was made from. So two writers get one term.",
        ),
        Bug.RECOVERY_READS_DO_NOT_FENCE: Planted(
            does="Only the first requests of a recovery fence, and its reads do not.",
            seen="BookKeeper before 4.14 (apache/bookkeeper#2614)",
        ),
        Bug.UNKNOWN_LEDGER_NOT_FENCED: Planted(
            does="A bookie without entries of a ledger forgets the fence or the term of a request that adds nothing.",
            seen="BookKeeper before 4.17.4, in a race (apache/bookkeeper#4701)",
        ),
        Bug.FENCE_NOT_JOURNALLED: Planted(
            does="A bookie keeps the fence or the term in memory only.",
            seen="BookKeeper without a journal, as BP-46 describes",
            needs=Needs(faults=_RESTARTS),
        ),
        Bug.ADDS_NOT_FENCED: Planted(
            does="A bookie accepts the adds of a writer that was fenced, or that has an old term."
        ),
        Bug.ACKNOWLEDGED_BEFORE_SYNC: Planted(
            does="A bookie acknowledges entries when they are written, before they are synced.",
            seen="BookKeeper with `journalSyncData=false`, as documented",
            needs=Needs(faults=("power-loss",)),
        ),
        Bug.ACKNOWLEDGED_OUT_OF_ORDER: Planted(
            does="A writer acknowledges an entry before the entries below it are acknowledged."
        ),
        Bug.ONE_ABSENCE_ENDS_RECOVERY: Planted(
            does="A recovery takes the first bookie without an entry as the end of the log.",
        ),
        Bug.RECOVERED_NOT_WRITTEN_BACK: Planted(
            does="A recovery keeps the entries that it finds, and does not write them to the other bookies."
        ),
        Bug.TRUNCATE_KEEPS_LATER: Planted(
            does="The entry that ends a recovery replaces one entry of a bookie, and deletes no later ones.",
            needs=Needs(options=_TERMS),
        ),
        Bug.TRUNCATES_AGAIN: Planted(
            does="A bookie that gets the entry that ends a recovery again deletes all later entries again.",
            needs=Needs(options=_TERMS),
        ),
        Bug.FENCED_IS_FAIL: Planted(
            does="A fenced writer answers its waiting appends as refused, though the recovery may find them.",
        ),
        Bug.UNCONFIRMED_READS: Planted(
            does="A writer answers reads of entries that are not acknowledged yet.",
        ),
        Bug.READS_WITHOUT_ASKING: Planted(
            does="A writer answers reads at once, without asking the metadata store whether it is still the writer.",
        ),
        Bug.ANSWERS_OF_REPLACED_COUNT: Planted(
            does="A writer goes on acknowledging while it changes the ensemble, and counts the bookies that it replaces.",
            seen="BookKeeper 4.17.3, in a race (apache/bookkeeper#4097)",
            needs=Needs(at_least=_SPARE),
        ),
        Bug.METADATA_CHANGED_IN_RECOVERY: Planted(
            does="A recovery that replaces a bookie changes the metadata at once, and not when it ends.",
            needs=Needs(at_least=_SPARE),
        ),
        Bug.PINNED_ARE_REPLACED: Planted(
            does="A writer replaces bookies without which an acknowledged entry has too few copies in the new ensemble.",
            needs=Needs(options=_TERMS, at_least=_SPARE),
        ),
        Bug.REFUSED_IS_TIMEOUT: Planted(
            does="A writer takes a refused term for a bookie without an answer: it replaces the bookie. It changes the "
            "metadata whenever they are open, whatever their term is.",
            needs=Needs(options=_TERMS, at_least=_TWO_SPARES),
        ),
        Bug.ID_GIVEN_AGAIN: Planted(
            does="A writer gives up its last entry when it has repeated it, and gives its id to the next one.",
        ),
        Bug.CONFIRMED_GOES_BACK: Planted(
            does="A writer that repeats an entry goes back to the last add confirmed with which it first sent the entry.",
        ),
        Bug.RECOVERIES_CONFIRM: Planted(
            does="A recovery confirms what it has written again before it closes the ledger, though another one can end it "
            "earlier.",
            seen="BookKeeper 4.17.3",
            needs=Needs(workloads=("ledger",)),
        ),
        Bug.FAILED_SYNC_TRUSTED: Planted(
            does="A bookie acknowledges an entry although its sync has failed.",
            needs=Needs(faults=("disk-error",)),
        ),
    }
)
