"""The leaders and their terms, from the reports of the nodes.

Labrys polls the nodes about once a second. So it may miss a leader that led for less, and may see a change up to a second late:
the counts are lower bounds. A leader change is a leader in a later term than all before. If the system has no terms, it is a
leader with another name, also beside the one before. A deposed leader that still claims an old term is no change. A change
counts from the first report of the new term by any node, because a poll may reach the followers of a new leader before the
leader itself.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from msgspec import Struct

from harness.console.members import Whole  # noqa: TC001 - the members of a leadership are read by their annotations
from harness.leaders import LEADER, claim_in, leader_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.watch import Sighting


class Leadership(Struct, frozen=True, kw_only=True):
    """The leaders in one stretch of time, by what the nodes said when they were asked; `results.json` has its members.

    Attributes:
        changes: The number of leader changes. A change counts from the first time that any node told the new term. Where no
            terms are told, another leader counts when it was seen.
        leaders: The leader at the start, if it was known, and the leader of each change, in the order of time.
        terms: The highest term that any node had reported before the start, and each higher one since, ascending.
    """

    changes: Whole
    leaders: list[str]
    terms: list[int]


def leaders(sightings: Sequence[Sighting]) -> list[tuple[int, str | None, int | None]]:
    """Returns the leaders with the time of the first report: the node with the highest term (None: none), and the term."""
    claims: dict[str, Sighting] = {}
    changes: list[tuple[int, str | None, int | None]] = []
    have_led: list[str] = []  # without terms
    for seen in sorted(sightings, key=lambda sighting: sighting.time_ns):
        claim = claim_in(seen)
        if claim is not None:
            claims[seen.node] = replace(claim, role=LEADER)
        else:
            claims.pop(seen.node, None)
        leader = leader_of(claims.values())
        if leader is not None and leader.term is None:
            leader = _without_terms(list(claims.values()), have_led)
        name, term = (None, None) if leader is None else (leader.node, leader.term)
        if changes and changes[-1][0] == seen.time_ns:
            changes.pop()
        if not changes or changes[-1][1:] != (name, term):
            changes.append((seen.time_ns, name, term))
    return changes


def _without_terms(claims: Sequence[Sighting], have_led: list[str]) -> Sighting:
    """Returns the claim of a node that has not led before, else of the last one that has; adds the first to `have_led`."""
    new = next((claim for claim in claims if claim.node not in have_led), None)
    if new is not None:
        have_led.append(new.node)
        return new
    return max(claims, key=lambda claim: have_led.index(claim.node))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Won:
    """A leader in a later term than any before.

    Attributes:
        time_ns: The first report of its term by any node; without terms, its first report.
        node: Its name.
        change: Whether it followed another leader or a lower term; False for the first leader that a poll saw.
    """

    time_ns: int
    node: str
    change: bool


class Elections:
    """The leaders of a run, counted in any stretch of it."""

    def __init__(self, sightings: Sequence[Sighting]) -> None:
        self._risen = _risen(sightings)
        self._won: list[_Won] = []
        reported_ns = _first_reported(sightings)
        last: tuple[str, int | None] | None = None
        for seen_ns, name, term in leaders(sightings):
            if name is None or (last is not None and not _succeeds((name, term), last)):
                continue
            time_ns = seen_ns if term is None else reported_ns[term]
            lower = term is not None and any(known < term for at_ns, known in self._risen if at_ns < time_ns)
            if self._won:  # the order of elections is the order of their terms, not of the reports
                time_ns = max(time_ns, self._won[-1].time_ns)
            self._won.append(_Won(time_ns=time_ns, node=name, change=last is not None or lower))
            last = (name, term)

    def within(self, start_ns: int | None = None, end_ns: int | None = None) -> Leadership:
        """Counts from `start_ns` until before `end_ns`; None means no bound."""
        before = [won.node for won in self._won if start_ns is not None and won.time_ns < start_ns]
        won = [won for won in self._won if _lies(won.time_ns, start_ns, end_ns)]
        standing = [term for time_ns, term in self._risen if start_ns is not None and time_ns < start_ns]
        reported = [term for time_ns, term in self._risen if _lies(time_ns, start_ns, end_ns)]
        return Leadership(
            changes=sum(change.change for change in won),
            leaders=[*before[-1:], *(change.node for change in won)],
            terms=[*standing[-1:], *reported],
        )


def _first_reported(sightings: Sequence[Sighting]) -> dict[int, int]:
    """Returns each term with the time of the first report of it."""
    reported_ns: dict[int, int] = {}
    for seen in sightings:
        if seen.term is not None:
            reported_ns[seen.term] = min(seen.time_ns, reported_ns.get(seen.term, seen.time_ns))
    return reported_ns


def _risen(sightings: Sequence[Sighting]) -> list[tuple[int, int]]:
    """Returns each term that was higher than all terms reported before, with the time of its first report."""
    risen: list[tuple[int, int]] = []
    # Of the terms in one poll only the highest counts, so a node that lags behind does not make the term rise.
    for term, time_ns in sorted(_first_reported(sightings).items(), key=lambda item: (item[1], -item[0])):
        if not risen or term > risen[-1][1]:
            risen.append((time_ns, term))
    return risen


def _lies(time_ns: int, start_ns: int | None, end_ns: int | None) -> bool:
    return (start_ns is None or time_ns >= start_ns) and (end_ns is None or time_ns < end_ns)


def _succeeds(new: tuple[str, int | None], old: tuple[str, int | None]) -> bool:
    """Returns whether a claim is a later leader's: it has a later term, or without terms another name."""
    if new[1] is None or old[1] is None:
        return new[0] != old[0]
    return new[1] > old[1]
