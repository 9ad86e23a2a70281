"""The clock of a simulated node: it never runs back, and no wait is shorter than on it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from clusters.sim.node_clock import NodeClock

TIMES = st.integers(min_value=0, max_value=10**12)
SPEEDS = st.floats(min_value=0.01, max_value=100)


@given(st.lists(st.tuples(TIMES, SPEEDS), max_size=8), TIMES)
def test_it_never_runs_back_and_changes_of_speed_do_not_move_it(changes: list[tuple[int, float]], more_ns: int) -> None:
    """Whatever the speeds, the clock before and after a change of speed is the same."""
    clock, now_ns = NodeClock(), 0
    for wait_ns, speed in changes:
        before_ns, now_ns = clock.passed_ns(now_ns), now_ns + wait_ns
        shown_ns = clock.passed_ns(now_ns)
        clock.set_speed(now_ns, speed)
        assert clock.passed_ns(now_ns) == shown_ns >= before_ns
    assert clock.passed_ns(now_ns + more_ns) >= clock.passed_ns(now_ns)


@given(TIMES, SPEEDS, TIMES)
def test_a_wait_takes_its_time_on_the_clock(now_ns: int, speed: float, wait_ns: int) -> None:
    """It is at most one nanosecond too short, by rounding, and no longer than one of the clock's ticks more."""
    clock = NodeClock()
    clock.set_speed(now_ns, speed)
    passed_ns = clock.passed_ns(now_ns + clock.length_ns(wait_ns)) - clock.passed_ns(now_ns)
    assert wait_ns <= passed_ns <= wait_ns + speed + 1
