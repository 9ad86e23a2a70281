"""The trigger `packet`: which packets count, and what the fault then knows."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import pytest

from clusters.sim.host import Request
from clusters.sim.rarity import HELD_NS
from clusters.sim.world import SimWorld
from harness.capabilities import SIMULATED, SWITCH, Capabilities
from harness.clock import Clock, run_virtual
from harness.errors import InputError
from harness.faults import Sight
from harness.history import MemoryHistory
from harness.switch import Awaited, Passed, Seen
from nemesis.packets import HOLD_NS, PacketPassed
from nemesis.triggers import Subject, for_hunts, parse_trigger

if TYPE_CHECKING:
    from harness.faults import Fired
    from harness.world import Pair

NAMES = ("n1", "n2", "n3")


class Vote(NamedTuple):
    """A message between nodes."""

    term: int


class Node:
    """Sends the messages of a request, each to its node, and notes the times of arrival."""

    def __init__(self, host: Any, arrived: list[tuple[Any, int]]) -> None:
        self._host = host
        self._arrived = arrived

    def start(self) -> None:
        """Does nothing."""

    def receive(self, sender: str, message: Any) -> None:
        """Sends or notes."""
        if isinstance(message, Request):
            for target, each in message.body:
                self._host.send(target, each)
        else:
            self._arrived.append((message, self._host.monotonic_ns()))


def condition(text: str, world: Any, sight: Any, targets: tuple[str, ...] = NAMES, switch: Any = None) -> PacketPassed:
    """The condition of a trigger."""
    field = SimpleNamespace(names=NAMES, switch_on=lambda: switch)
    return PacketPassed(
        trigger=parse_trigger(text, 5.0), targets=targets, role=None, field=cast("Any", field), world=world, sight=sight
    )


def test_a_simulated_message_fires_it_and_later_ones_wait() -> None:
    """The second vote counts; it arrives as usual, and what is sent after it arrives after the world held it."""
    world = SimWorld(NAMES, 6)
    arrived: list[tuple[Any, int]] = []
    for machine in world.machines.values():
        machine.start(lambda host: Node(host, arrived))

    async def main() -> Fired | None:
        sight = Sight(clock=Clock(asyncio.get_running_loop()), history=MemoryHistory())
        waiting = asyncio.ensure_future(condition("packet:2:n1:any:Vote", world, sight).wait())
        await asyncio.sleep(0)
        sent = [("n2", Vote(1)), ("n3", "beat"), ("n3", Vote(2)), ("n2", Vote(3))]
        await asyncio.gather(world.ask("c", "n1", Request(1, sent), 0.5), return_exceptions=True)
        return await waiting

    fired = world.run(main())
    assert fired is not None
    assert fired.what == "right after packet 2 from n1 to n3: Vote(term=2)"
    assert fired.measured == {"node": "n1", "from": "n1", "to": "n3", "packet": 2, "bytes": 12}
    times = dict(arrived)
    assert times[Vote(2)] < HELD_NS
    assert times[Vote(3)] > HELD_NS


@pytest.mark.parametrize(
    ("text", "targets", "links"),
    [
        ("packet", ("n1",), {("n1", "n2"), ("n1", "n3"), ("n2", "n1"), ("n3", "n1")}),
        ("packet:1:n2", ("n1",), {("n2", "n1"), ("n2", "n3")}),
        ("packet:1:any:n2", ("n1",), {("n1", "n2"), ("n3", "n2")}),
        ("packet:1:n2:n3", ("n1",), {("n2", "n3")}),
    ],
)
def test_packets_count_on_the_links_of_the_targets_or_of_the_named_nodes(
    text: str, targets: tuple[str, ...], links: set[Pair]
) -> None:
    """A named end replaces the possible targets."""
    assert set(condition(text, None, None, targets).links()) == links


class Noted:
    """A switch that sees the packet at the third look."""

    def __init__(self) -> None:
        self.awaited: Awaited | None = None
        self.looks = 0
        self.ended: list[int] = []

    def wait_for(self, awaited: Awaited) -> int:
        """Notes it."""
        self.awaited = awaited
        return 7

    def seen(self, wait: int) -> Seen:
        """Counts the looks."""
        assert wait == 7
        self.looks += 1
        passed = Passed(link=("n2", "n1"), ports=(40_000, 2379), bytes=90, ago_ns=4_000_000) if self.looks > 2 else None
        return Seen(count=4, held=0, passed=passed)

    def end_wait(self, wait: int) -> None:
        """Notes it."""
        self.ended.append(wait)


def test_the_switch_tells_of_a_real_packet() -> None:
    """The trigger asks for what its parameters say, and its time is that of the packet."""
    switch = Noted()

    async def main() -> Fired | None:
        clock = Clock(asyncio.get_running_loop())
        sight = Sight(clock=clock, history=MemoryHistory())
        return await condition("packet:4:n2:n1:vote:2379:9", None, sight, switch=switch).wait()

    fired = run_virtual(main())
    assert switch.awaited == Awaited(
        links=(("n2", "n1"),), nth=4, port=2379, least_bytes=9, has=b"vote", hold_ns=HOLD_NS
    )
    assert fired is not None
    assert fired.what == "right after packet 4 from n2 to n1: 90 bytes, port 40000 to 2379"
    assert fired.node == "n2"
    assert fired.measured["counted"] == 4
    assert fired.time_ns == 16_000_000
    assert switch.ended == [7]


def test_what_no_run_can_wait_for_is_refused() -> None:
    """Nodes must be there, and simulated messages have neither ports nor sizes."""
    field = cast("Any", SimpleNamespace(names=NAMES))
    world = SimWorld(NAMES, 1)
    for text, among, message in [
        ("packet:1:n9", None, "waits for a packet of n9, and the nodes are: n1, n2, n3"),
        ("packet:1:n2:n2", None, "to itself"),
        ("packet:1:any:any:x:80", world, "has 'port', which the messages of simulated nodes do not"),
    ]:
        with pytest.raises(InputError, match=message):
            PacketPassed.prepare(parse_trigger(text, 1.0), field, among)
    PacketPassed.prepare(parse_trigger("packet:1:any:any:x:80", 1.0), field, None)


def test_nodes_without_a_switch_are_refused_and_hunts_never_draw_it() -> None:
    """The reason is that of the capability."""
    can = Capabilities
    assert PacketPassed.lacks("n1", can(available=frozenset({SWITCH}))) is None
    assert PacketPassed.lacks("n1", can(available=frozenset({SIMULATED}))) is None
    real = PacketPassed.lacks("n1", can(available=frozenset(), missing={SWITCH: "no tun"}))
    assert real == "no fault can wait for a packet of n1, because no tun"
    subject = Subject(system="toy", log_lines={}, workload="register", functions=("read",))
    drawn = for_hunts("all", subject, {"n1": can(available=frozenset({SIMULATED}))})
    assert "packet" not in {trigger.name for trigger in drawn}
