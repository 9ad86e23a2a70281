"""Pictures of a cluster show exactly the links that a grudge leaves."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st

from harness.faults import FaultRecord, PlannedFault
from harness.targets import AllNodes
from results.circumstances.grudges import groups
from results.page.topology import picture, sentence

NODES = ("n1", "n2", "n3", "n4", "n5")


def fault(grudge: object, *targets: str) -> FaultRecord:
    """Returns a partition."""
    planned = PlannedFault(id=3, kind="partition", target=AllNodes(), start_s=0, end_s=1)
    details = {} if grudge is None else {"grudge": grudge}
    return FaultRecord(planned=planned, targets=targets, start_ns=0, end_ns=1, proof=None, details=details)


@given(st.dictionaries(st.sampled_from(NODES), st.lists(st.sampled_from(NODES), unique=True)))
def test_links_are_those_the_grudge_leaves(grudge: dict[str, list[str]]) -> None:
    """A line for each pair with both directions, an arrow for each with one, nothing for the others."""
    root = ET.fromstring(str(picture(fault(grudge), NODES, None)))  # noqa: S314 - our own drawing
    drawn = [line.get("class") for line in root.iter("line")]
    pairs = [(a, b) for i, a in enumerate(NODES) for b in NODES[i + 1 :]]
    heard = [(a not in grudge.get(b, ())) + (b not in grudge.get(a, ())) for a, b in pairs]
    assert (drawn.count("both"), drawn.count("one-way")) == (heard.count(2), heard.count(1))
    assert sum(len(group) for group in groups(NODES, grudge)) == len(NODES)


def test_a_partition_is_said_in_words() -> None:
    """The groups are side by side, with the leader."""
    halves = {"n1": ["n3"], "n2": ["n3"], "n3": ["n1", "n2"]}
    assert sentence(fault(halves, "n3"), ("n1", "n2", "n3"), "n1") == "n1 n2 | n3; n1 led when it began"
    assert "one way only: n2 to n1" in sentence(fault({"n2": ["n1"]}), ("n1", "n2"), None)
    assert sentence(fault(None, "n3"), NODES, None) == "partition hit n3"


def test_nodes_that_were_hit_and_the_leader_are_marked() -> None:
    """Colours are classes, so the page sets them. Names are escaped."""
    svg = str(picture(fault(None, "n2", "<b>"), ("n1", "n2", "<b>"), "n1"))
    assert svg.count('class="hit"') == 2
    assert svg.count('class="leads"') == 1
    assert "<b>" not in svg
    ET.fromstring(svg)  # noqa: S314 - our own drawing


def test_a_grudge_that_is_none_is_not_drawn() -> None:
    """For a damaged record, the links of the unaffected nodes are drawn. Without nodes, nothing is drawn."""
    for odd in ("x", 7, {"n1": "n2"}):
        assert str(picture(fault(odd), NODES, None)).count("<line") == 10
        assert str(picture(fault(odd, "n1", "n2"), NODES, None)).count("<line") == 3
    assert "<line" not in str(picture(fault(None), (), None))
