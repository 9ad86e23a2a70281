"""The rules that find the leader in the reports of the nodes, and terms with more than one."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from harness.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from harness.watch import Sighting

LEADER: Final = "leader"
OBSERVER: Final = "observer"  # a node outside the group that knows which node leads in which term, both of one moment


class Claim(Protocol):
    """The report of a node about itself, e.g. `harness.system.NodeStatus` or `harness.watch.Sighting`."""

    @property
    def role(self) -> str | None: ...  # noqa: D102 - as in `NodeStatus`

    @property
    def term(self) -> int | None: ...  # noqa: D102


T = TypeVar("T", bound=Claim)


def leaders_by_term(reports: Iterable[T]) -> list[T]:
    """Returns the reports of nodes that claim to lead, the highest term first.

    A deposed leader may claim its old term for a while. A missing term counts as the lowest. Equal terms keep their order.
    """
    leading = [report for report in reports if report.role == LEADER]
    return sorted(leading, key=lambda report: -1 if report.term is None else report.term, reverse=True)


def leader_of(reports: Iterable[T]) -> T | None:
    """Returns the report that claims to lead in the highest term; None if no node claims to lead."""
    return next(iter(leaders_by_term(reports)), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rivals:
    """Nodes that reported that they lead in one term, or were reported so by an observer.

    Attributes:
        term: The term.
        claims: The reports, in the order of time, each with the node that leads; of two nodes at least.
    """

    term: int
    claims: Sequence[Sighting]

    def __str__(self) -> str:
        """Returns a sentence, with the polls of each report."""
        nodes = list(dict.fromkeys(claim.node for claim in self.claims))
        first = {node: next(claim for claim in self.claims if claim.node == node) for node in nodes}
        polls = ", ".join(f"{node} {in_polls(claim)}" for node, claim in list(first.items())[:MAX_NAMED])
        more = f", and {len(nodes) - MAX_NAMED} more" if len(nodes) > MAX_NAMED else ""
        by_themselves = all(claim.role == LEADER for claim in self.claims)
        said = "reported that they led" if by_themselves else "were reported to lead"
        return f"{len(nodes)} nodes {said} in term {self.term}: {polls}{more}."


MAX_NAMED: Final = 5


def in_polls(claim: Sighting) -> str:
    """Returns the polls in which a node reported the same, e.g. `in the polls from 1.000 s to 3.000 s`."""
    if claim.last_ns == claim.time_ns:
        return f"in the poll at {claim.time_ns / NS_PER_S:.3f} s"
    return f"in the polls from {claim.time_ns / NS_PER_S:.3f} s to {claim.last_ns / NS_PER_S:.3f} s"


def claim_in(seen: Sighting) -> Sighting | None:
    """Returns a report with the node that leads by it: the node itself, or the one that an observer names; else None.

    What another node takes for the leader does not count, because it can be of another moment than its term.
    """
    if seen.role == LEADER:
        return seen
    return replace(seen, node=seen.leader) if seen.role == OBSERVER and seen.leader is not None else None


def claims(sightings: Iterable[Sighting]) -> list[Sighting]:
    """Returns the reports that a node leads in a term, each with this node; see `claim_in`."""
    return [claim for claim in map(claim_in, sightings) if claim is not None and claim.term is not None]


def rivals(sightings: Iterable[Sighting]) -> list[Rivals]:
    """Returns the terms in which more than one node leads by the reports, ascending.

    The reports may be of different times: a term has one leader for ever. A system without terms has no rivals.
    """
    by_term: defaultdict[int | None, list[Sighting]] = defaultdict(list)
    for claim in claims(sightings):
        by_term[claim.term].append(claim)
    return [
        Rivals(term=term, claims=tuple(sorted(claimed, key=lambda claim: claim.time_ns)))
        for term, claimed in sorted(by_term.items(), key=lambda item: item[0] or 0)
        if term is not None and len({claim.node for claim in claimed}) > 1
    ]
