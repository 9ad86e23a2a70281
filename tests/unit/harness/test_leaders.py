"""The leader is the node that claims to lead in the highest term; two in one term are rivals."""

from __future__ import annotations

from harness.leaders import leader_of, leaders_by_term, rivals
from harness.service import NodeStatus
from harness.units import NS_PER_S as S
from harness.watch import Sighting


def status(node: str, role: str, term: int | None) -> NodeStatus:
    """Returns the report of a node."""
    return NodeStatus(node=node, role=role, term=term)


def test_the_highest_term_leads() -> None:
    """A deposed leader still claims its old term, and a follower may know a later one."""
    reports = [status("n1", "leader", 3), status("n2", "leader", 5), status("n3", "follower", 9)]
    leader = leader_of(reports)
    assert leader is not None
    assert leader.node == "n2"
    assert [report.node for report in leaders_by_term(reports)] == ["n2", "n1"]


def test_a_missing_term_is_the_lowest_and_equal_terms_keep_their_order() -> None:
    """Term 0 is higher than a missing term."""
    reports = [status("n1", "leader", None), status("n2", "leader", 0), status("n3", "leader", 0)]
    assert [report.node for report in leaders_by_term(reports)] == ["n2", "n3", "n1"]


def test_without_a_claim_there_is_no_leader() -> None:
    """A candidate is not a leader."""
    assert leader_of([status("n1", "candidate", 4)]) is None
    assert leader_of([]) is None


def claim(node: str, term: int | None, *, role: str = "leader", from_s: int = 1, to_s: int = 2) -> Sighting:
    """Returns what a node reported about itself in the polls of a stretch."""
    return Sighting(time_ns=from_s * S, node=node, role=role, term=term, until_ns=to_s * S)


def test_two_leaders_in_one_term_are_noticed() -> None:
    """They need not lead at the same time. Term 0 counts."""
    all_rivals = rivals([claim("n2", 0, from_s=9, to_s=9), claim("n1", 0, from_s=3, to_s=5), claim("n3", 7)])
    assert [(rival.term, [seen.node for seen in rival.claims]) for rival in all_rivals] == [(0, ["n1", "n2"])]
    assert str(all_rivals[0]) == (
        "2 nodes reported that they led in term 0: n1 in the polls from 3.000 s to 5.000 s, n2 in the poll at 9.000 s."
    )


def test_only_reports_of_nodes_about_themselves_make_rivals() -> None:
    """One leader in two stretches, a follower's view, an old leader in its old term, and missing terms accuse nobody."""
    assert rivals([claim("n1", 3), claim("n1", 3, from_s=5, to_s=6)]) == []
    follower = Sighting(time_ns=S, node="n2", role="follower", term=3, leader="n3")
    assert rivals([claim("n1", 3), follower, claim("n2", 3, role="candidate")]) == []
    assert rivals([claim("n1", 3), claim("n2", 4)]) == []
    assert rivals([claim("n1", None), claim("n2", None)]) == []


def test_a_sentence_about_many_rivals_is_short() -> None:
    """It names the first five, and has the number of all."""
    (rivals_of_term,) = rivals([claim(f"n{number}", 2) for number in range(9)])
    assert str(rivals_of_term).startswith("9 nodes reported")
    assert str(rivals_of_term).endswith(", and 4 more.")
