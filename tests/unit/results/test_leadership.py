"""Leaders and terms, counted from what nodes said; never more than was seen."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from harness.watch import Sighting
from results.leadership import Elections, Leadership, leaders


def seen(second: int, node: str, role: str | None, term: int | None) -> Sighting:
    """Returns what a node said."""
    return Sighting(time_ns=second, node=node, role=role, term=term)


# n1 leads; n2 deposes it and falls silent; n1 steps down at last; n3 tries, n1 wins.
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
    """A deposed leader that still claims an old term does not lead, and is not forgotten when the new one falls silent."""
    assert leaders(STORY[:5]) == [(0, "n1", 1), (5, "n2", 2), (7, "n1", 1), (8, None, None)]


def test_a_change_is_a_leader_in_a_later_term() -> None:
    """The old leader that is visible again while the new one is silent is no change; a candidate's term is a term seen."""
    assert Elections(STORY).within() == Leadership(changes=2, leaders=["n1", "n2", "n1"], terms=[1, 2, 5, 6])


def test_a_window_begins_with_what_was_there() -> None:
    """Who led before a fault is not a change in it, and what came after it is not counted."""
    elections = Elections(STORY)
    assert elections.within(4, 9) == Leadership(changes=1, leaders=["n1", "n2"], terms=[1, 2])
    assert elections.within(9, 12) == Leadership(changes=0, leaders=["n2"], terms=[2, 5])
    assert elections.within(12, 20) == Leadership(changes=1, leaders=["n2", "n1"], terms=[5, 6])


def test_without_terms_another_name_is_a_change() -> None:
    """A system that tells no terms has leaders even so; one that leads again after silence was there all the time."""
    told = [
        seen(1, "a", "leader", None),
        seen(2, "a", None, None),
        seen(3, "a", "leader", None),
        seen(4, "a", None, None),
    ]
    assert Elections(told).within() == Leadership(changes=0, leaders=["a"], terms=[])
    assert Elections([*told, seen(5, "b", "leader", None)]).within().changes == 1


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
def test_windows_add_up(told: list[Sighting], cut: int) -> None:
    """What is counted before and after a moment is what is counted in all."""
    elections = Elections(told)
    first, second = elections.within(0, cut), elections.within(cut, 100)
    whole = elections.within(0, 100)
    assert first.changes + second.changes == whole.changes
    assert set(first.terms) | set(second.terms) == set(whole.terms)
