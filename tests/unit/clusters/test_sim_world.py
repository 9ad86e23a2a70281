"""A simulated world: messages, timers, pauses, deaths and clocks, in the order of virtual time."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from clusters.sim.errors import Broken, Refused
from clusters.sim.host import Reply, Request
from clusters.sim.machine import EPOCH_NS
from clusters.sim.world import SimWorld
from harness.units import NS_PER_MS, NS_PER_S
from harness.world import Disturbance

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from clusters.sim.host import Host

EVEN = 6  # a seed whose links are all fast


class Echo:
    """Answers requests with their body, forwards texts to the next node, and counts timers."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.heard: list[Any] = []
        self.ticks = 0

    def start(self) -> None:
        """Starts a timer that fires each tenth of a second."""
        self.host.after(100 * NS_PER_MS, self.tick)

    def tick(self) -> None:
        """Counts, and sets the timer again."""
        self.ticks += 1
        self.start()

    def receive(self, sender: str, message: Any) -> None:
        """Answers, ignores the message, or raises."""
        if not isinstance(message, Request):
            self.heard.append((sender, message))
        elif message.body == "die":
            raise ValueError("as told")
        elif message.body != "silence":
            self.host.send(sender, Reply(message.id, message.body))


def lived(story: Callable[[SimWorld, dict[str, Echo]], Coroutine[Any, Any, None]]) -> SimWorld:
    """Runs a coroutine in a world of three echoing nodes."""
    world, echoes = SimWorld(("n1", "n2", "n3"), seed=EVEN), {}
    for name, machine in world.machines.items():

        def made(host: Host, name: str = name) -> Echo:
            echoes[name] = Echo(host)
            return echoes[name]

        machine.start(made)
    world.run(story(world, echoes))
    return world


def test_a_request_is_answered_after_two_ways() -> None:
    """Time passes only while the client waits, and only for the latency of the network."""

    async def story(world: SimWorld, echoes: dict[str, Echo]) -> None:
        assert await world.ask("c", "n1", Request(1, "hello")) == "hello"
        assert 400_000 <= world.now_ns <= 1_600_000
        assert asyncio.get_running_loop().time() == pytest.approx(world.now_ns / NS_PER_S)

    lived(story)


def test_a_dead_process_refuses_and_one_that_dies_breaks_off() -> None:
    """`Refused` means no effect, `Broken` an unknown effect. The node's log has the traceback."""

    async def story(world: SimWorld, echoes: dict[str, Echo]) -> None:
        with pytest.raises(Broken, match="n1"):
            await world.ask("c", "n1", Request(1, "die"))
        with pytest.raises(Refused, match="nobody listens on n1"):
            await world.ask("c", "n1", Request(2, "hello"))
        ticks = echoes["n1"].ticks
        await asyncio.sleep(1)
        assert echoes["n1"].ticks == ticks

    world = lived(story)
    assert any("FATAL ValueError: as told" in line for line in world.machines["n1"].lines)
    assert any("Traceback" in line for line in world.machines["n1"].lines)


def test_a_killed_process_takes_its_requests_and_timers_with_it() -> None:
    """An unanswered request fails with `Broken` when the process is killed; a new process has no memory."""

    async def story(world: SimWorld, echoes: dict[str, Echo]) -> None:
        waiting = asyncio.create_task(world.ask("c", "n2", Request(1, "silence")))
        await asyncio.sleep(0.45)
        before = echoes["n2"]
        world.machines["n2"].kill()
        with pytest.raises(Broken):
            await waiting
        world.machines["n2"].start(Echo)
        await asyncio.sleep(0.5)
        assert before.ticks == 4

    lived(story)


def test_what_reaches_a_paused_process_waits_in_order() -> None:
    """A paused process handles nothing; messages and due timers come after the pause."""

    async def story(world: SimWorld, echoes: dict[str, Echo]) -> None:
        machine = world.machines["n1"]
        machine.pause()
        handled = world.handled("n1")
        for number in range(3):
            echoes["n2"].host.send("n1", number)
            await asyncio.sleep(0.2)
        assert (echoes["n1"].heard, echoes["n1"].ticks, world.handled("n1")) == ([], 0, handled)
        machine.resume()
        await asyncio.sleep(0.05)
        assert echoes["n1"].heard == [("n2", 0), ("n2", 1), ("n2", 2)]
        assert echoes["n1"].ticks == 1

    lived(story)


def test_a_cut_works_in_the_direction_of_its_grudge() -> None:
    """n1 drops packets of n2, and n2 still receives those of n1; `mend` ends the cut, and drops are counted."""

    async def story(world: SimWorld, echoes: dict[str, Echo]) -> None:
        world.cut(0, {"n1": frozenset({"n2"}), "n2": frozenset(), "n3": frozenset()})
        echoes["n2"].host.send("n1", "lost")
        echoes["n1"].host.send("n2", "heard")
        await asyncio.sleep(0.1)
        world.mend(0)
        echoes["n2"].host.send("n1", "again")
        await asyncio.sleep(0.1)
        assert (echoes["n1"].heard, echoes["n2"].heard) == ([("n2", "again")], [("n1", "heard")])
        assert world.dropped(0) == {("n2", "n1"): 1}

    lived(story)


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        (Disturbance(lose=1.0), []),
        (Disturbance(duplicate=1.0), ["x", "x"]),
        (Disturbance(damage=1.0), []),
        (Disturbance(delay_ns=50 * NS_PER_MS), []),
    ],
)
def test_disturbed_packets(how: Disturbance, expected: list[str]) -> None:
    """Packets are lost, doubled, damaged or late; traffic of clients is not affected."""

    async def story(world: SimWorld, echoes: dict[str, Echo]) -> None:
        world.disturb(0, "n1", how, arriving=False)
        echoes["n1"].host.send("n2", "x")
        echoes["n3"].host.send("n2", "whole")
        await asyncio.sleep(0.01)
        assert sorted(text for _, text in echoes["n2"].heard) == sorted([*expected, "whole"])
        assert await world.ask("c", "n1", Request(1, "hello")) == "hello"

    lived(story)


def test_wall_clocks_are_set_aside_and_to_and_fro() -> None:
    """A fault changes the wall clock and not the monotonic one; `heal` corrects the wall clock."""

    async def story(world: SimWorld, echoes: dict[str, Echo]) -> None:
        host = echoes["n1"].host
        world.set_clock("n1", ahead_ns=NS_PER_S)
        assert host.wall_ns() - EPOCH_NS - host.monotonic_ns() == NS_PER_S
        world.set_clock("n1", ahead_ns=NS_PER_S, period_ns=NS_PER_MS)
        seen = []
        for _ in range(4):
            seen.append(world.ahead_ns("n1") // NS_PER_S)
            await asyncio.sleep(0.001)
        assert seen == [1, 0, 1, 0]
        world.heal()
        assert world.ahead_ns("n1") == 0

    lived(story)


def test_a_world_where_nothing_can_happen_says_so() -> None:
    """A task that would wait for ever is an error."""

    async def story() -> None:
        await asyncio.get_running_loop().create_future()

    with pytest.raises(RuntimeError, match="virtual time stands still"):
        SimWorld(("n1",), seed=1).run(story())

    async def beside_ticks(world: SimWorld, echoes: dict[str, Echo]) -> None:
        await story()

    with pytest.raises(RuntimeError, match="virtual time stands still"):
        lived(beside_ticks)


def test_processes_whose_messages_multiply_die(monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes that answer each message with two die with a line in their logs, so the run comes to its end."""
    monkeypatch.setattr("clusters.sim.world.MAX_EVENTS", 1000)

    class Storm(Echo):
        """Sends each message back twice."""

        def receive(self, sender: str, message: Any) -> None:
            """Sends the message back twice."""
            for _ in range(2):
                self.host.send(sender, message)

    world = SimWorld(("n1", "n2"), seed=EVEN)
    for machine in world.machines.values():
        machine.start(Storm)

    async def story() -> None:
        world.send(world.machines["n1"], "n2", "hello")
        await asyncio.sleep(10)

    world.run(story())
    for machine in world.machines.values():
        assert not machine.runs
        assert machine.lines[-1].endswith(
            "FATAL more than 1,000 messages and timers wait; does each message cause several others?"
        )
