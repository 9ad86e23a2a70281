"""Ensembles: which bookies replace others, and how a segment's fragments tell it.

A client node replaces a bookie that has not answered an entry after `PATIENCE` repetitions, if there is another one. The
fragment with the new ensemble begins at the first entry that the new bookies get. Source: apache/bookkeeper, LedgerHandle.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from clusters.systems.sim_bookkeeper.messages import Fragment, Meta, Segment

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from clusters.systems.sim_bookkeeper.setting import Setting

PATIENCE: Final = 2  # repetitions of an entry


def spares(setting: Setting, ensemble: Sequence[str]) -> list[str]:
    """Returns the bookies that are not in an ensemble."""
    return [bookie for bookie in setting.layout.bookies if bookie not in ensemble]


def replaced(
    setting: Setting,
    ensemble: Sequence[str],
    failed: Collection[str],
    *,
    doubtful: Collection[str] = (),
    without: Collection[str] = (),
) -> tuple[str, ...]:
    """Returns an ensemble with others in place of failed bookies, as many as there are.

    Args:
        setting: The setting.
        ensemble: The ensemble.
        failed: The bookies to replace.
        doubtful: The bookies to take last.
        without: The bookies not to take.
    """
    free = [bookie for bookie in spares(setting, ensemble) if bookie not in without]
    setting.host.random.shuffle(free)
    free.sort(key=lambda bookie: bookie in doubtful)
    return tuple(free.pop(0) if bookie in failed and free else bookie for bookie in ensemble)


def fragmented(segment: Segment, first: int, bookies: tuple[str, ...]) -> Segment:
    """Returns a segment whose entries from `first` on have another ensemble."""
    kept = [fragment for fragment in segment.fragments if fragment.first < first]
    return segment._replace(fragments=(*kept, Fragment(first, bookies)))


def changed(meta: Meta, first: int, bookies: tuple[str, ...]) -> Meta:
    """Returns the next version of metadata: the entries of the last segment from `first` on have another ensemble."""
    *earlier, last = meta.segments
    return meta._replace(version=meta.version + 1, segments=(*earlier, fragmented(last, first, bookies)))


def pieces(segment: Segment, first: int, last: int) -> list[tuple[int, int, int, tuple[str, ...]]]:
    """Returns a range of offsets of a segment by fragments: the segment's number, the offsets, and the ensemble of each."""
    parts = []
    ends = [following.first - 1 for following in segment.fragments[1:]]
    for fragment, end in zip(segment.fragments, [*ends, last], strict=True):
        begin, stop = max(first, fragment.first), min(last, end)
        if begin <= stop:
            parts.append((segment.number, begin, stop, fragment.bookies))
    return parts
