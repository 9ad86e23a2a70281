"""Leaders and terms, counted from the nodes' answers, and never more than observed."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from harness.watch import Sighting
from results.measure.leadership import Elections, Leadership, leaders
from results.words.formatting import elections


def seen(second: int, node: str, role: str | None, term: int | None) -> Sighting:
    """Returns a node's answer."""
    return Sighting(time_ns=second, node=node, role=role, term=term)


# n1 leads. n2 deposes it and stops answering. n1 steps down. n3 is a candidate. n1 wins.
STORY = [
    seen(0, "n1", "leader", 1),
    seen(0, "n2", "follower", 1),
    seen(5, "n2", "leader", 2),
    seen(7, "n2", None, None),
    seen(8, "n1", "follower", 2),
    seen(9, "n3", "candidate", 5),
    seen(12, "n1", "leader", 6),
]


def test_the_leader_is_who_claims_it_in_the_highest_term() -> None:
    """A deposed leader with an old term does not lead, and it still counts when the new leader stops answering."""
    assert leaders(STORY[:5]) == [(0, "n1", 1), (5, "n2", 2), (7, "n1", 1), (8, None, None)]


def test_an_observer_names_the_leader() -> None:
    """The leader is the node that it names, also if another observer takes over."""
    story = [
        replace(seen(1, "n1", "observer", 1), leader="n4"),
        replace(seen(3, "n1", "observer", 2), leader=None),
        replace(seen(4, "n1", "observer", 3), leader="n5"),
        seen(6, "n1", None, None),
        replace(seen(6, "n2", "observer", 3), leader="n5"),
    ]
    assert leaders(story) == [(1, "n4", 1), (3, None, None), (4, "n5", 3)]
    assert Elections(story).within() == Leadership(changes=1, leaders=["n4", "n5"], terms=[1, 2, 3])


def test_a_change_is_a_leader_in_a_later_term() -> None:
    """The old leader, seen again while the new one is silent, is not a change. A candidate's term counts as seen."""
    assert Elections(STORY).within() == Leadership(changes=2, leaders=["n1", "n2", "n1"], terms=[1, 2, 5, 6])


def test_a_window_begins_with_what_was_there() -> None:
    """The leader before a fault is not a change in it, and later changes do not count."""
    elections = Elections(STORY)
    assert elections.within(4, 9) == Leadership(changes=1, leaders=["n1", "n2"], terms=[1, 2])
    assert elections.within(9, 12) == Leadership(changes=0, leaders=["n2"], terms=[2, 5])
    assert elections.within(12, 20) == Leadership(changes=1, leaders=["n2", "n1"], terms=[5, 6])


def test_without_terms_another_name_is_a_change() -> None:
    """A system without terms still has leaders. One that leads again after silence has led all the time."""
    sightings = [
        seen(1, "a", "leader", None),
        seen(2, "a", None, None),
        seen(3, "a", "leader", None),
        seen(4, "a", None, None),
    ]
    assert Elections(sightings).within() == Leadership(changes=0, leaders=["a"], terms=[])
    assert Elections([*sightings, seen(5, "b", "leader", None)]).within().changes == 1


def test_without_terms_a_leader_beside_another_is_a_change() -> None:
    """After a failover, an old master goes on to lead for a while. One that comes back is no change."""
    sightings = [
        seen(1, "a", "leader", None),
        seen(4, "b", "leader", None),
        seen(5, "a", None, None),
        seen(6, "a", "leader", None),
    ]
    assert leaders(sightings) == [(1, "a", None), (4, "b", None)]
    assert Elections(sightings).within() == Leadership(changes=1, leaders=["a", "b"], terms=[])


def test_a_new_leader_counts_from_when_its_term_was_first_told() -> None:
    """If followers report the new term during a fault, the election is in it, even if the leader is seen a poll later."""
    sightings = [
        seen(0, "n1", "leader", 2),
        seen(0, "n2", "follower", 2),
        seen(0, "n3", "follower", 2),
        seen(15, "n3", "follower", 3),
        seen(17, "n1", None, None),
        seen(21, "n2", "leader", 3),
    ]
    elections = Elections(sightings)
    assert elections.within(10, 20) == Leadership(changes=1, leaders=["n1", "n2"], terms=[2, 3])
    assert elections.within(20, 40) == Leadership(changes=0, leaders=["n2"], terms=[3])
    assert elections.within() == Leadership(changes=1, leaders=["n1", "n2"], terms=[2, 3])


def test_a_term_without_a_leader_is_no_change() -> None:
    """A candidate's term is shown, with the fact that no leader was seen in it."""
    sightings = [seen(0, "n1", "leader", 2), seen(5, "n2", "candidate", 3)]
    within = Elections(sightings).within(4, 9)
    assert within == Leadership(changes=0, leaders=["n1"], terms=[2, 3])
    text = elections({"changes": within.changes, "leaders": within.leaders, "terms": within.terms})
    assert text == "no new leader seen, term rose from 2 to 3"


def test_a_node_that_lags_does_not_make_the_term_rise() -> None:
    """An old term that arrives late, or in the same poll as a higher one, does not count."""
    sightings = [seen(0, "n1", "follower", 4), seen(0, "n2", "leader", 5), seen(7, "n3", "follower", 3)]
    assert Elections(sightings).within() == Leadership(changes=0, leaders=["n2"], terms=[5])
    assert Elections(sightings).within(6, 9) == Leadership(changes=0, leaders=["n2"], terms=[5])


def test_a_first_leader_after_lower_terms_is_a_change() -> None:
    """The run began without a leader, so the first one is a change."""
    sightings = [seen(0, "n1", "candidate", 1), seen(3, "n1", "leader", 2)]
    assert Elections(sightings).within() == Leadership(changes=1, leaders=["n1"], terms=[1, 2])


@given(
    st.lists(
        st.builds(
            seen,
            st.integers(0, 50),
            st.sampled_from("abc"),
            st.sampled_from(["leader", "follower", None]),
            st.integers(0, 9),
        )
    ),
    st.integers(0, 50),
)
def test_windows_add_up(sightings: list[Sighting], cut: int) -> None:
    """The counts before and after a moment add up to the total."""
    elections = Elections(sightings)
    first, second = elections.within(0, cut), elections.within(cut, 100)
    whole = elections.within(0, 100)
    assert first.changes + second.changes == whole.changes
    assert set(first.terms) | set(second.terms) == set(whole.terms)


@given(
    st.lists(
        st.builds(
            seen,
            st.integers(0, 50),
            st.sampled_from("abc"),
            st.sampled_from(["leader", "follower", None]),
            st.integers(0, 9),
        )
    ),
    st.integers(0, 50),
    st.integers(0, 50),
)
def test_no_change_is_never_said_beside_terms_that_rose(sightings: list[Sighting], start: int, length: int) -> None:
    """If the term rises without a leader, the sentence has both facts. The terms of a window always ascend."""
    within = Elections(sightings).within(start, start + length)
    assert list(within.terms) == sorted(set(within.terms))
    text = elections({"changes": within.changes, "leaders": within.leaders, "terms": within.terms})
    assert ("no change" in text) <= (len(within.terms) <= 1)
    assert ("rose" in text) == (not within.changes and len(within.terms) > 1)
