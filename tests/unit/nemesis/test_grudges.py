"""The properties of grudges, for 3 to 9 nodes in any order."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nemesis import grudges
from nemesis.errors import PlanError

NAMES = [f"n{i}" for i in range(1, 10)]
orders = st.integers(3, 9).flatmap(lambda count: st.permutations(NAMES[:count]))


def is_symmetric(grudge: grudges.Grudge) -> bool:
    """Returns whether each drop is mutual."""
    return all(node in grudge[other] for node, dropped in grudge.items() for other in dropped)


def assert_sane(grudge: grudges.Grudge, order: list[str]) -> None:
    """Every node is a key; no node drops its own packets or those of unknown nodes."""
    assert set(grudge) == set(order)
    assert all(node not in dropped and dropped <= set(order) for node, dropped in grudge.items())


@given(orders)
def test_halves_are_halves(order: list[str]) -> None:
    """The halves are disjoint, cover all nodes, differ by at most one in size, and exchange no packets."""
    small, large = grudges.halves(order)
    assert [*small, *large] == order
    assert 0 <= len(large) - len(small) <= 1
    grudge = grudges.complete([small, large])
    assert_sane(grudge, order)
    assert is_symmetric(grudge)
    assert all(grudges.talks(grudge, node) == set(small) for node in small)
    assert all(grudges.talks(grudge, node) == set(large) for node in large)


@given(orders)
def test_a_bridge_keeps_exactly_one_node_in_touch_with_both_sides(order: list[str]) -> None:
    """One node reaches all; without it, the rest splits into two groups of almost the same size."""
    grudge = grudges.bridge(order)
    assert_sane(grudge, order)
    assert is_symmetric(grudge)
    whole = [node for node in order if grudges.talks(grudge, node) == set(order)]
    assert len(whole) == 1
    sides = {grudges.talks(grudge, node) - set(whole) for node in order if node not in whole}
    assert len(sides) == 2
    assert not frozenset.intersection(*sides)
    assert set().union(*sides, whole) == set(order)
    sizes = sorted(len(side) for side in sides)
    assert sizes[1] - sizes[0] <= 1


@given(st.integers(3, 31).flatmap(lambda count: st.permutations([f"n{i}" for i in range(count)])))
def test_a_majorities_ring_gives_each_node_its_own_majority(order: list[str]) -> None:
    """It is symmetric; every node reaches a majority, no two the same, and at most one node reaches more than needed."""
    grudge = grudges.majorities_ring(order)
    assert_sane(grudge, order)
    assert is_symmetric(grudge)
    views = {node: grudges.hears(grudge, node) for node in order}
    least = grudges.majority(len(order))
    assert all(len(view) >= least for view in views.values())
    assert all(views[a] != views[b] for a, b in combinations(order, 2))
    assert sum(len(view) > least for view in views.values()) <= 1


def test_a_ring_of_three_is_the_bridge() -> None:
    """With three nodes the ring and the bridge are the same chain of two links."""
    ring = grudges.majorities_ring(["n1", "n2", "n3"])
    assert sorted(len(dropped) for dropped in ring.values()) == [0, 1, 1]
    bridge = grudges.bridge(["n2", "n1", "n3"])
    assert bridge == ring


@given(orders, st.data())
def test_a_split_cuts_both_ways_and_a_one_way_cut_only_one(order: list[str], data: st.DataObject) -> None:
    """Both cut the same links; in the one-way cut, the muted nodes still receive all packets."""
    side = data.draw(st.lists(st.sampled_from(order), min_size=1, max_size=len(order) - 1, unique=True))
    both = grudges.split(order, side)
    one = grudges.one_way(order, side)
    assert_sane(both, order)
    assert_sane(one, order)
    assert is_symmetric(both)
    assert all(not one[node] for node in side)
    assert all(one[node] == set(side) == both[node] for node in order if node not in side)
    assert all(grudges.talks(one, node) == grudges.talks(both, node) for node in order)


@given(orders)
def test_sizes_of_minority_and_majority_are_exact(order: list[str]) -> None:
    """A minority is the largest set smaller than half, a majority the smallest larger than half."""
    count = len(order)
    assert 2 * grudges.minority(count) < count <= 2 * (grudges.minority(count) + 1)
    assert 2 * grudges.majority(count) > count >= 2 * (grudges.majority(count) - 1)


@given(orders, st.data())
def test_a_quorum_is_a_node_in_touch_with_a_majority(order: list[str], data: st.DataObject) -> None:
    """It agrees with a search over all sets of nodes, for random drops and dead nodes."""
    pairs = [(a, b) for a in order for b in order if a != b]
    dropped = data.draw(st.sets(st.sampled_from(pairs)))
    down = data.draw(st.sets(st.sampled_from(order)))
    grudge = {node: frozenset(b for a, b in dropped if a == node) for node in order}

    def serves(leader: str) -> bool:
        peers = [
            node
            for node in order
            if node not in down
            and (node == leader or ((leader, node) not in dropped and (node, leader) not in dropped))
        ]
        return leader not in down and 2 * len(peers) > len(order)

    assert grudges.has_quorum(grudge, down) == any(serves(node) for node in order)


def test_a_union_drops_what_either_drops() -> None:
    """Two partitions at once cut every link that one of them cuts."""
    nodes = ["n1", "n2", "n3"]
    together = grudges.union(nodes, [grudges.split(nodes, ["n1"]), grudges.split(nodes, ["n2"])])
    assert together == {"n1": {"n2", "n3"}, "n2": {"n1", "n3"}, "n3": {"n1", "n2"}}


@pytest.mark.parametrize("make", [grudges.bridge, grudges.majorities_ring])
def test_too_few_nodes_are_refused(make: object) -> None:
    """Two nodes have neither a bridge nor a ring; the error has the required number."""
    with pytest.raises(PlanError, match="needs at least 3 nodes, and the cluster has 2"):
        make(["n1", "n2"])  # type: ignore[operator]


@pytest.mark.parametrize("side", [[], ["n1", "n2"], ["n9"]])
def test_a_split_needs_both_sides(side: list[str]) -> None:
    """An empty side or an unknown node is an error."""
    with pytest.raises(PlanError):
        grudges.split(["n1", "n2"], side)
