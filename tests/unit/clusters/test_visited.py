"""The visited states of a search: the matrix of messages agrees with the comparison one by one."""

from __future__ import annotations

from random import Random

import pytest

from clusters.sim.explore.found import Used
from clusters.sim.explore.orders import DOMINATED
from clusters.sim.explore.state import State, dominates, rest_of
from clusters.sim.explore.visited import Visited

STATES = 600


def drawn(random: Random) -> State:
    """Returns a state whose messages are on both sides of the end of a word of the matrix."""
    bag = random.getrandbits(14) << 57
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
        owed=bag & random.getrandbits(14) << 57,
        ends=random.random() < 0.2,
    )


@pytest.mark.parametrize("seed", range(5))
def test_a_dominated_state_is_recognized(seed: int) -> None:
    """Each state is compared with all before it that were new. Another history is another group."""
    random, visited, states = Random(seed), Visited(dominance=True), list[State]()
    cases = set()
    for number in range(STATES):
        state = random.choice(states) if states and random.random() < 0.2 else drawn(random)
        equal = [other.number for other in states if rest_of(other) == rest_of(state)]
        is_dominated = any(dominates(rest_of(other), rest_of(state)) for other in states)
        expected = equal[0] if equal else DOMINATED if is_dominated else None
        assert visited.known(state, number) == expected
        cases.add((expected is None, expected == DOMINATED, len(states) > STATES // 6))
        if expected is None:
            states.append(state._replace(number=number))
            assert visited.known(state._replace(history=number + 1), number) is None
    assert len(cases) == 6


def test_without_dominance_only_equal_states_are_known() -> None:
    """A state with fewer messages is new."""
    random, visited = Random(1), Visited(dominance=False)
    whole = drawn(random)
    assert visited.known(whole, 5) is None
    assert visited.known(whole, 6) == 5
    assert visited.known(whole._replace(bag=0), 6) is None
