"""The clock, and the loop with virtual time."""

from __future__ import annotations

import asyncio
import gc
import time

import pytest

from harness.clock import VIRTUAL_WALL_START_S, Clock, run_virtual, wall_s
from harness.units import NS_PER_S


def test_an_hour_of_virtual_time_passes_at_once() -> None:
    """Virtual time jumps to the next timer instead of waiting for it."""

    async def main() -> float:
        clock = Clock(asyncio.get_running_loop())
        await asyncio.sleep(3600)
        return clock.now_s()

    began_s = time.monotonic()
    assert run_virtual(main()) == 3600
    assert time.monotonic() - began_s < 1


def test_virtual_time_stands_still_while_something_can_run() -> None:
    """Work takes no virtual time."""

    async def main() -> int:
        clock = Clock(asyncio.get_running_loop())
        for _ in range(1000):
            await asyncio.sleep(0)
        return clock.now_ns()

    assert run_virtual(main()) == 0


def test_timers_run_in_the_order_of_their_times() -> None:
    """Sleeping tasks wake in the order of their times, and not of their starts."""
    order = []

    async def sleeper(delay_s: float) -> None:
        await asyncio.sleep(delay_s)
        order.append(delay_s)

    async def main() -> None:
        await asyncio.gather(*(sleeper(delay_s) for delay_s in (3.0, 1.0, 2.0)))

    run_virtual(main())
    assert order == [1.0, 2.0, 3.0]


def test_a_wait_that_nothing_can_end_is_an_error() -> None:
    """A virtual run that would hang raises an error."""

    async def main() -> None:
        await asyncio.get_running_loop().create_future()

    with pytest.raises(RuntimeError, match="virtual time stands still"):
        run_virtual(main())


class Broken:
    """Events that fail at once."""

    def pass_until(self, deadline_s: float | None) -> float | None:
        """Fails."""
        raise OSError(f"gone before {deadline_s}")


def test_an_error_of_the_events_ends_all_tasks(caplog: pytest.LogCaptureFixture) -> None:
    """Each task is cancelled, so that its clean-up runs, and Python does not complain of tasks that wait."""
    ended = []

    async def wait(name: str) -> None:
        try:
            await asyncio.sleep(10.0)
        finally:
            await asyncio.sleep(0.5)
            ended.append(name)

    async def main() -> None:
        other = asyncio.create_task(wait("other"))
        await wait("main")
        await other

    with pytest.raises(OSError, match=r"gone before 10\.0"):
        run_virtual(main(), Broken())
    gc.collect()
    assert sorted(ended) == ["main", "other"]
    assert not caplog.records


def test_an_interruption_at_the_end_does_not_hide_the_error(caplog: pytest.LogCaptureFixture) -> None:
    """A run whose task is cancelled ends with a KeyboardInterrupt, as one that the user interrupts."""

    async def interrupted() -> None:
        try:
            await asyncio.sleep(1)
        except asyncio.CancelledError:
            raise KeyboardInterrupt from None

    with pytest.raises(OSError, match="gone before"):
        run_virtual(interrupted(), Broken())
    gc.collect()
    assert not caplog.records


def test_a_clock_counts_from_its_own_beginning() -> None:
    """A clock that is made later starts at zero, in nanoseconds and in seconds."""

    async def main() -> tuple[int, float]:
        await asyncio.sleep(7)
        clock = Clock(asyncio.get_running_loop())
        await asyncio.sleep(2)
        return clock.now_ns(), clock.now_s()

    assert run_virtual(main()) == (2 * NS_PER_S, 2.0)


def test_sleeping_until_a_time_that_has_passed_returns_at_once() -> None:
    """`sleep_until_s` waits for a point in time, not for a duration."""

    async def main() -> float:
        clock = Clock(asyncio.get_running_loop())
        await clock.sleep_until_s(5)
        await clock.sleep_until_s(3)
        await clock.sleep_until_s(5.5)
        return clock.now_s()

    assert run_virtual(main()) == 5.5


def test_threads_take_no_virtual_time() -> None:
    """The loop does the work of a thread itself, and its exception reaches the caller."""

    def fails() -> None:
        raise ValueError("no")

    async def main() -> tuple[int, int]:
        clock = Clock(asyncio.get_running_loop())
        result = await asyncio.to_thread(lambda: 42)
        with pytest.raises(ValueError, match="no"):
            await asyncio.to_thread(fails)
        return result, clock.now_ns()

    assert run_virtual(main()) == (42, 0)


def test_the_wall_clock_of_virtual_time_begins_with_the_run() -> None:
    """What a client writes into its requests is the same in each run."""

    async def read() -> tuple[float, float]:
        begin_s = wall_s()
        await asyncio.sleep(90)
        return begin_s, wall_s()

    assert run_virtual(read()) == (VIRTUAL_WALL_START_S, VIRTUAL_WALL_START_S + 90)

    async def real() -> float:
        return wall_s()

    before_s = time.time()
    assert before_s <= asyncio.run(real()) <= time.time()
