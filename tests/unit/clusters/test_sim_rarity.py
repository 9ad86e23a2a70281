"""Rare messages in a simulated world: the faults that wait for one are on before a node can react to it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from clusters.sim.host import Request
from clusters.sim.rarity import FEW, HELD_NS
from clusters.sim.world import SimWorld
from harness.units import NS_PER_S
from tests.examples import SIMULATED
from tests.trials import TOY, trial

if TYPE_CHECKING:
    from harness.world import RareMessage

NAMES = ("n1", "n2", "n3")
SEEDS = range(40)


class Beat(NamedTuple):
    """A message between nodes."""

    number: int
    entries: tuple[int, ...] = ()


class Node:
    """Sends a message when a client asks for it, and records the times of arrival."""

    def __init__(self, host: Any, arrived: list[tuple[str, Any, int]]) -> None:
        self._host = host
        self._arrived = arrived

    def start(self) -> None:
        """Does nothing."""

    def receive(self, sender: str, message: Any) -> None:
        """Sends the messages of a request to n2, or records a message."""
        if isinstance(message, Request):
            for body in message.body:
                self._host.send("n2", body)
        else:
            self._arrived.append((sender, message, self._host.monotonic_ns()))


class Story:
    """A world of three nodes, in which clients make n1 send messages to n2."""

    def __init__(self, seed: int) -> None:
        self.world = SimWorld(NAMES, seed)
        self.arrived: list[tuple[str, Any, int]] = []
        self.world.count_messages()
        for machine in self.world.machines.values():
            machine.start(lambda host: Node(host, self.arrived))

    async def sends(self, *messages: Any) -> None:
        """Makes n1 send messages to n2 in one moment, without a wait for their arrival."""
        asking = asyncio.ensure_future(self.world.ask("c", "n1", Request(1, messages), 0.01))
        await asyncio.gather(asking, return_exceptions=True)

    def waits(self, *nodes: str, wait_s: float = 1.0) -> asyncio.Task[RareMessage | None]:
        """Waits for a rare message from or to one of the nodes."""
        return asyncio.ensure_future(self.world.rare_message(frozenset(nodes), wait_s))


def test_the_first_messages_of_a_shape_are_rare_and_many_are_not() -> None:
    """A shape is the type, with the flags and with whether sequences are empty."""
    story = Story(seed=1)

    async def main() -> None:
        await story.sends(*[Beat(number) for number in range(100 * FEW)])
        first = story.waits("n2")
        await asyncio.sleep(0)
        await story.sends(*[Beat(number) for number in range(3)])
        assert not first.done()
        await story.sends(Beat(7, entries=(1,)))
        rare = await first
        assert rare is not None
        assert (rare.kind, rare.source, rare.target) == ("Beat", "n1", "n2")

    story.world.run(main())


def test_a_wait_ends_without_a_message() -> None:
    """Messages between other nodes do not count, nor do those after the wait."""
    story = Story(seed=1)

    async def main() -> None:
        before_ns = story.world.now_ns
        waits = story.waits("n3", wait_s=0.5)
        await asyncio.sleep(0)
        await story.sends(Beat(1))
        assert await waits is None
        assert story.world.now_ns - before_ns == pytest.approx(NS_PER_S / 2)
        await story.sends(Beat(2))

    story.world.run(main())
    assert [message for _, message, _ in story.arrived] == [Beat(1), Beat(2)]


def test_without_counting_no_message_is_rare() -> None:
    """Runs whose faults do not wait count nothing."""
    story = Story(seed=1)
    story.world.rarity.counts = False

    async def main() -> None:
        waits = story.waits("n2", wait_s=0.5)
        await asyncio.sleep(0)
        await story.sends(Beat(1))
        assert await waits is None

    story.world.run(main())


def test_the_network_holds_messages_until_the_faults_are_on() -> None:
    """A cut that begins with the message stops all later ones; the message itself passes in some runs and not in others."""
    passed = []
    for seed in SEEDS:
        story = Story(seed)

        async def main(story: Story = story) -> RareMessage | None:
            waits = story.waits("n1")
            await asyncio.sleep(0)
            sending = asyncio.ensure_future(story.sends(Beat(1), Beat(2), Beat(3)))
            rare = await waits
            story.world.cut(1, {"n2": frozenset({"n1"})})
            await sending
            await asyncio.sleep(2)
            return rare

        rare = story.world.run(main())
        assert rare is not None
        assert [message for _, message, _ in story.arrived] == ([] if rare.held else [Beat(1)])
        passed.append(not rare.held)
    assert 0 < sum(passed) < len(passed)


def test_held_messages_arrive_in_the_end() -> None:
    """Without a cut, all messages arrive, the held ones late."""
    story = Story(seed=6)

    async def main() -> None:
        waits = story.waits("n1")
        await asyncio.sleep(0)
        await story.sends(Beat(1), Beat(2))
        await waits
        await asyncio.sleep(1)

    story.world.run(main())
    assert {message for _, message, _ in story.arrived} == {Beat(1), Beat(2)}
    late_ns = next(time_ns for _, message, time_ns in story.arrived if message == Beat(2))
    assert late_ns > HELD_NS


def test_a_run_with_a_wait_has_the_message_in_its_records() -> None:
    """The record names the message, and the fault lasts as long as planned from there."""
    times = ("--fault-on", "0.5-1", "--fault-off", "0.2-0.4", "--fault-wait", "2", "--time-limit", "20")
    words = (*TOY, "--system", SIMULATED, "--nemesis", "pause", *times)
    records = trial(*words).result.faults
    assert all(record.fired is not None for record in records)
    began = [record for record in records if record.fired and " from " in record.fired.what]
    assert began
    for record in began:
        assert record.proof is not None
        assert record.proof.effective, record.proof.reason
        assert (record.end_ns - record.start_ns) / NS_PER_S == pytest.approx(record.planned.lasts_s, abs=0.05)
    assert trial(*words).result.faults == records
