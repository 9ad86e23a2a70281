"""The leader is the node that claims to lead in the highest term."""

from __future__ import annotations

from harness.leaders import leader_of, leaders_by_term
from harness.system import NodeStatus


def status(node: str, role: str, term: int | None) -> NodeStatus:
    """Returns the report of a node."""
    return NodeStatus(node=node, role=role, term=term)


def test_the_highest_term_leads() -> None:
    """A deposed leader still claims its old term, and a follower may know a later one."""
    reports = [status("n1", "leader", 3), status("n2", "leader", 5), status("n3", "follower", 9)]
    found = leader_of(reports)
    assert found is not None
    assert found.node == "n2"
    assert [each.node for each in leaders_by_term(reports)] == ["n2", "n1"]


def test_a_missing_term_is_the_lowest_and_equal_terms_keep_their_order() -> None:
    """Term 0 is higher than a missing term."""
    reports = [status("n1", "leader", None), status("n2", "leader", 0), status("n3", "leader", 0)]
    assert [each.node for each in leaders_by_term(reports)] == ["n2", "n3", "n1"]


def test_without_a_claim_there_is_no_leader() -> None:
    """A candidate is not a leader."""
    assert leader_of([status("n1", "candidate", 4)]) is None
    assert leader_of([]) is None
