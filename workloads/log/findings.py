"""The contradictions in a log, by kind: the places, values or appends of each, in ascending order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from checker.formats.columns import NEVER

if TYPE_CHECKING:
    from collections.abc import Mapping

    from checker.formats.columns import Int64s
    from workloads.log.arrays import Bools
    from workloads.log.facts import Facts, Places


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """The contradictions in a log.

    Attributes:
        known_ns: For each place, the time at which its entry became known.
        value: For each place, the rank of the value that became known then.
        missing: For each place, whether a read lacks an entry that was known.
        lost: Places whose entry is missing in the last read that covers them. If reads need not be linearizable, this read must
            have begun after the last append ended, and after the event from which reads are whole.
        missed: Further such places, if reads need not be linearizable: a later read could have the entry.
        vanished: Appends that were acknowledged without an offset, and have no place.
        stale: Places whose entry was missing, and that a later read has again.
        conflict: Places with a conflict.
        changed: Places whose entry changed.
        duplicated: Ranks of duplicated values.
        unexpected: Ranks of unexpected values.
        reordered: Appends at a lower offset than an entry that was known before they began.
        of_reading: By kind, places that a read shows wrongly, if reads follow the log; None: they do not.
    """

    known_ns: Int64s
    value: Int64s
    missing: Bools
    lost: Int64s
    missed: Int64s
    vanished: Int64s
    stale: Int64s
    conflict: Int64s
    changed: Int64s
    duplicated: Int64s
    unexpected: Int64s
    reordered: Int64s
    of_reading: Mapping[str, Int64s] | None

    def totals(self) -> dict[str, int]:
        """Returns the number of contradictions of each kind."""
        return {
            "lost": len(self.lost) + len(self.vanished),
            "stale": len(self.stale),
            "conflict": len(self.conflict),
            "changed": len(self.changed),
            "duplicated": len(self.duplicated),
            "unexpected": len(self.unexpected),
            "reordered": len(self.reordered),
            **{kind: len(places) for kind, places in (self.of_reading or {}).items()},
        }


def findings_of(facts: Facts, *, linearizable: bool, follow: bool, whole_from: int = -1) -> Findings:
    """Applies the rules of `workloads.log.judge`.

    Args:
        facts: All facts about a log.
        linearizable: Whether each read must have all entries that were known before it began.
        follow: Whether reads follow the log.
        whole_from: The event after which a read has all entries, if reads need not be linearizable; -1: none is needed.
    """
    places, values, appends, claims = facts.places, facts.values, facts.appends, facts.claims
    history = facts.log.history
    missing = np.zeros(len(places.known), np.bool_)
    covered = np.flatnonzero(places.missed >= 0)
    missing[covered] = history.start[places.missed[covered]] > places.known[covered]
    again = places.seen > places.missed
    final = np.ones(len(places.known), np.bool_)
    if not linearizable:
        final = history.start[places.missed] > max(whole_from, _last_end(history.end[facts.log.append]))
    first = np.flatnonzero(claims.end == places.known[claims.place])
    known_ns = np.zeros(len(places.known), np.int64)
    known_ns[claims.place[first]] = history.end_ns[claims.row[first]]
    value = np.zeros(len(places.known), np.int64)
    value[claims.place[first]] = claims.value[first]
    return Findings(
        known_ns=known_ns,
        value=value,
        missing=missing,
        lost=np.flatnonzero(missing & ~again & final),
        missed=np.flatnonzero(missing & ~again & ~final),
        vanished=np.flatnonzero(appends.vanished),
        stale=np.flatnonzero(missing & again),
        conflict=np.flatnonzero(places.conflict),
        changed=np.flatnonzero(places.changed),
        duplicated=np.flatnonzero((values.tried > 0) & (values.offsets > values.tried)),
        unexpected=np.flatnonzero(values.unexpected),
        reordered=np.flatnonzero(appends.overtaken >= 0),
        of_reading=_of_reading(places, missing) if follow else None,
    )


def _last_end(ends: Int64s) -> int:
    """Returns the last of some events; -1 if there is none. Operations that never ended do not count."""
    ended = ends[ends < NEVER]
    return int(ended.max()) if len(ended) else -1


def _of_reading(places: Places, missing: Bools) -> dict[str, Int64s]:
    return {
        "skipped": np.flatnonzero((places.skipped >= 0) & ~missing),
        "repeated": np.flatnonzero(places.repeated >= 0),
        "disordered": np.flatnonzero(places.disordered >= 0),
        "outside": np.flatnonzero(places.outside >= 0),
    }
