"""Of those who say they lead, the one in the highest term does."""

from __future__ import annotations

from harness.leaders import leader_of, leaders_by_term
from harness.system import NodeStatus


def status(node: str, role: str, term: int | None) -> NodeStatus:
    """Returns what a node says."""
    return NodeStatus(node=node, role=role, term=term)


def test_the_highest_term_leads() -> None:
    """A deposed leader still claims its old term, and a follower may know a later one."""
    told = [status("n1", "leader", 3), status("n2", "leader", 5), status("n3", "follower", 9)]
    found = leader_of(told)
    assert found is not None
    assert found.node == "n2"
    assert [each.node for each in leaders_by_term(told)] == ["n2", "n1"]


def test_no_term_is_lower_than_any_and_the_first_of_one_term_comes_first() -> None:
    """Term 0 is a term."""
    told = [status("n1", "leader", None), status("n2", "leader", 0), status("n3", "leader", 0)]
    assert [each.node for each in leaders_by_term(told)] == ["n2", "n3", "n1"]


def test_nobody_leads() -> None:
    """Where none says so, none does."""
    assert leader_of([status("n1", "candidate", 4)]) is None
    assert leader_of([]) is None
