"""Who led, and in which terms, by what the nodes said about themselves.

The nodes are asked about once a second, so a leader that led for less may go unseen, and what is seen is up to a second late:
the counts are least ones. A leader change is a leader in a later term than any before; where a system tells no terms, another
name. A deposed leader that still claims an old term is none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.watch import Sighting


@dataclass(frozen=True, slots=True, kw_only=True)
class Leadership:
    """Who led in one stretch of time.

    Attributes:
        changes: How many times another leader, or one in a later term, was seen for the first time.
        leaders: The names of those, and before them who led at the start, in the order of time.
        terms: All terms that any node told, beginning with the highest one before the start, in ascending order.
    """

    changes: int
    leaders: Sequence[str]
    terms: Sequence[int]


def leaders(sightings: Sequence[Sighting]) -> list[tuple[int, str | None, int | None]]:
    """Returns who led, as seen: from when, the node that claimed it in the highest term (None: no one), and the term."""
    claims: dict[str, int | None] = {}
    changes: list[tuple[int, str | None, int | None]] = []
    for seen in sorted(sightings, key=lambda sighting: sighting.time_ns):
        if seen.role == "leader":
            claims[seen.node] = seen.term
        else:
            claims.pop(seen.node, None)
        name = max(claims, key=lambda node: -1 if claims[node] is None else claims[node] or 0, default=None)
        term = claims.get(name) if name is not None else None
        if changes and changes[-1][0] == seen.time_ns:
            changes.pop()
        if not changes or changes[-1][1:] != (name, term):
            changes.append((seen.time_ns, name, term))
    return changes


class Elections:
    """The leaders of a run, to be counted in any stretch of it."""

    def __init__(self, sightings: Sequence[Sighting]) -> None:
        self._terms = sorted((seen.time_ns, seen.term) for seen in sightings if seen.term is not None)
        self._won: list[tuple[int, str]] = []
        last: tuple[str, int | None] | None = None
        for time_ns, name, term in leaders(sightings):
            if name is None:
                continue
            if last is None or _succeeds((name, term), last):
                self._won.append((time_ns, name))
                last = (name, term)

    def within(self, start_ns: int | None = None, end_ns: int | None = None) -> Leadership:
        """Counts from `start_ns` until before `end_ns`; the whole run where they are not given."""
        before = [name for time_ns, name in self._won if start_ns is not None and time_ns < start_ns]
        won = [name for time_ns, name in self._won if _lies(time_ns, start_ns, end_ns)]
        standing = [term for time_ns, term in self._terms if start_ns is not None and time_ns < start_ns]
        told = {term for time_ns, term in self._terms if _lies(time_ns, start_ns, end_ns)}
        return Leadership(
            changes=len(won) if before else max(0, len(won) - 1),
            leaders=[*before[-1:], *won],
            terms=sorted(told | ({max(standing)} if standing else set())),
        )


def _lies(time_ns: int, start_ns: int | None, end_ns: int | None) -> bool:
    return (start_ns is None or time_ns >= start_ns) and (end_ns is None or time_ns < end_ns)


def _succeeds(new: tuple[str, int | None], old: tuple[str, int | None]) -> bool:
    """Says whether a claim is a later leader's: of a later term, or where terms are not told, of another name."""
    if new[1] is None or old[1] is None:
        return new[0] != old[0]
    return new[1] > old[1]
