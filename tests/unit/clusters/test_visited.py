"""The visited states of a search: the matrix of messages agrees with the comparison one by one."""

from __future__ import annotations

from random import Random

import pytest

from clusters.sim.explore.found import Used
from clusters.sim.explore.state import State, dominates
from clusters.sim.explore.visited import Visited

STATES = 300


def drawn(random: Random) -> State:
    """Returns a state whose messages are on both sides of the end of a word of the matrix."""
    bag = random.getrandbits(10) << 59
    return State(
        nodes=(1, 2),
        history=0,
        bag=bag,
        used=Used(timers=random.randrange(2)),
        place=0,
        free=False,
        bag_before=0,
        number=0,
        duty=random.choice((-1, 0)),
        owed=bag & random.getrandbits(10) << 59,
        ends=random.random() < 0.2,
    )


@pytest.mark.parametrize("seed", range(5))
def test_a_dominated_state_is_recognized(seed: int) -> None:
    """States are added while others are asked about, as in a search. Another history is another group."""
    random, visited, states = Random(seed), Visited(), list[State]()
    found = set()
    for _ in range(STATES):
        state = drawn(random)
        expected = any(dominates(other, state) for other in states)
        found.add((expected, len(states) > STATES // 2))
        assert visited.dominate(state) == expected
        assert visited.have(state) == any((each.bag, each.used) == (state.bag, state.used) for each in states)
        assert not visited.dominate(state._replace(history=1))
        visited.add(state)
        states.append(state)
    assert len(found) == 4
