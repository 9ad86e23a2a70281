"""Targets: sizes, roles, names."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.targets import ByLeader, Lead, Named
from nemesis import targets
from nemesis.errors import PlanError

NODES = [f"n{i}" for i in range(1, 10)]


@given(st.integers(1, 9), st.integers())
def test_counted_targets_have_exact_sizes(count: int, seed: int) -> None:
    """The sizes of all specs; a majority is the smallest one, and `random` is never empty."""
    nodes = NODES[:count]
    rng = random.Random(seed)
    assert len(targets.draw(targets.ONE, nodes, rng)) == 1
    assert targets.draw(targets.ALL, nodes, rng) == tuple(nodes)
    assert len(targets.draw(targets.MAJORITY, nodes, rng)) == count // 2 + 1
    assert 1 <= len(targets.draw(targets.RANDOM, nodes, rng)) <= count
    assert len(targets.draw(targets.RANDOM, nodes, rng, at_most=1)) == 1


@pytest.mark.parametrize(("count", "size"), [(3, 1), (4, 1), (5, 2), (6, 2), (7, 3)])
def test_a_minority_is_less_than_half(count: int, size: int) -> None:
    """Two of four nodes are not a minority."""
    assert len(targets.draw(targets.MINORITY, NODES[:count], random.Random(1))) == size


def test_two_nodes_have_no_minority() -> None:
    """A target without nodes is an error."""
    with pytest.raises(PlanError, match="2 nodes have no minority"):
        targets.draw(targets.MINORITY, NODES[:2], random.Random(1))


@given(st.integers(2, 9), st.data())
def test_roles_follow_from_the_leader_and_the_order(count: int, data: st.DataObject) -> None:
    """The same order and leader give the same nodes; the spec determines whether the leader is among them."""
    nodes = NODES[:count]
    order = data.draw(st.permutations(nodes))
    leader = data.draw(st.sampled_from(nodes))
    resolved = {str(lead): targets.resolve(ByLeader(lead), nodes, order=order, leader=leader) for lead in Lead}
    assert resolved["leader"] == (leader,)
    assert resolved["leader+minority"][0] == leader
    assert len(resolved["leader+minority"]) == max(1, (count - 1) // 2)
    assert len(resolved["follower"]) == 1
    assert leader not in resolved["follower"]
    assert set(resolved["followers"]) == set(nodes) - {leader}
    assert all(len(set(names)) == len(names) for names in resolved.values())


def test_a_role_without_a_leader_is_an_error() -> None:
    """Without a leader there is an error, and no other node is the target."""
    with pytest.raises(PlanError, match="needs a leader"):
        targets.resolve(targets.LEADER, NODES[:3], order=NODES[:3], leader=None)


@pytest.mark.parametrize(
    ("text", "expected"), [("leader", targets.LEADER), ("minority", targets.MINORITY), ("n2+n1", Named(("n2", "n1")))]
)
def test_a_target_is_a_spec_or_names(text: str, expected: object) -> None:
    """Names are joined by a plus sign and keep their order."""
    assert targets.parse_target(text, NODES[:3]) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("minorty", "Did you mean 'minority'"),
        ("n1+n1", "twice"),
        ("n1+n7", "unknown target 'n7'"),
        ("", "unknown target"),
    ],
)
def test_unknown_targets_are_refused_with_a_suggestion(text: str, message: str) -> None:
    """A misspelled target is an error with a suggestion."""
    with pytest.raises(PlanError, match=message):
        targets.parse_target(text, NODES[:3])
