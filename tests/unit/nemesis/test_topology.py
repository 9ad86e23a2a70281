"""The description of a grudge."""

from __future__ import annotations

from nemesis import grudges
from nemesis.topology import describe

NODES = ["n1", "n2", "n3", "n4", "n5"]


def test_halves_are_shown_side_by_side() -> None:
    """The text of a partition into fully connected components is the list of components."""
    told = describe(grudges.split(NODES, ["n2", "n4"]))
    assert told["sentence"] == "n1 n3 n5 | n2 n4"
    assert told["components"] == [["n1", "n3", "n5"], ["n2", "n4"]]
    assert told["bridges"] == []


def test_a_bridge_is_named() -> None:
    """The bridge is the articulation point of the network."""
    told = describe(grudges.bridge(NODES))
    assert told["bridges"] == ["n3"]
    assert told["components"] == [NODES]
    assert "n1 talks with n2 n3" in told["sentence"]


def test_one_way_links_are_told_with_their_direction() -> None:
    """A muted node receives packets of the others, but they do not receive its packets."""
    told = describe(grudges.one_way(NODES[:3], ["n1"]))
    assert told["one_way"] == [["n2", "n1"], ["n3", "n1"]]
    assert told["sentence"] == "n2 n3 | n1; one way only: n2 to n1, n3 to n1"


def test_a_ring_tells_who_talks_with_whom() -> None:
    """A ring of five keeps each node's two neighbours."""
    told = describe(grudges.majorities_ring(NODES))
    assert told["links"] == [["n1", "n2"], ["n1", "n5"], ["n2", "n3"], ["n3", "n4"], ["n4", "n5"]]
