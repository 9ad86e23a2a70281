"""Simulated connections: bytes arrive once and in order, whatever the network does, and late after a cut."""

from __future__ import annotations

import asyncio

import pytest

from clusters.sim.streams import CLOSED, REFUSED, RESET, End
from clusters.sim.world import SimWorld
from harness.units import NS_PER_MS, NS_PER_S
from harness.world import Disturbance

EVEN = 6  # a seed whose links are all fast


class Side:
    """The owner of one end of a connection; notes what happens to it.

    Attributes:
        bytes: All bytes that have arrived.
        events: The other events.
    """

    def __init__(self) -> None:
        self.bytes = b""
        self.events: list[str] = []

    def opened(self, end: End) -> None:
        """Notes it."""
        self.events.append(f"opened {end.number}")

    def arrived(self, end: End, data: bytes) -> None:
        """Adds the bytes."""
        self.bytes += data

    def closed(self, end: End, why: str) -> None:
        """Notes why."""
        self.events.append(why)


class Pair:
    """A connection from n1 to n2 that is about to open.

    Attributes:
        accepts: Whether n2 accepts it.
    """

    def __init__(self, *, listens: bool = True) -> None:
        self.world = SimWorld(("n1", "n2"), seed=EVEN)
        self.here, self.there = Side(), Side()
        self.end = End(self.world, "n1", 1, self.here, to="n2")
        self.other = End(self.world, "n2", 2, self.there, to="n1")
        self.accepts = listens
        self.end.connect(lambda _: self.other if self.accepts else None)

    def live(self, seconds: float) -> None:
        """Lets time pass."""
        self.world.run(asyncio.sleep(seconds + self.world.now_ns / NS_PER_S))


def test_bytes_arrive_in_their_order() -> None:
    """Also if packets overtake each other, are doubled and are lost."""
    pair = Pair()
    pair.live(0.1)
    assert pair.here.events == ["opened 1"]
    disturbance = Disturbance(lose=0.3, duplicate=0.3, delay_ns=20 * NS_PER_MS, jitter_ns=20 * NS_PER_MS)
    pair.world.disturb(1, "n2", disturbance, arriving=True)
    sent = [b"%d," % number for number in range(200)]
    for piece in sent:
        pair.end.send(piece)
    pair.live(600.0)
    assert pair.there.bytes == b"".join(sent)


def test_a_cut_delays_bytes() -> None:
    """They arrive after it, at the next repetition, and the later ones with them."""
    pair = Pair()
    pair.live(0.1)
    pair.world.cut(1, {"n2": frozenset({"n1"})})
    pair.end.send(b"one ")
    pair.end.send(b"two")
    pair.live(1.0)
    assert pair.there.bytes == b""
    pair.world.mend(1)
    pair.live(0.1)
    assert pair.there.bytes == b"", "the sender does not know that the cut is over"
    pair.live(1.0)
    assert pair.there.bytes == b"one two"


def test_the_end_of_a_connection() -> None:
    """The peer gets all bytes, and then the end. What it sends afterwards is refused."""
    pair = Pair()
    pair.live(0.1)
    pair.end.send(b"last")
    pair.end.close()
    pair.live(0.1)
    assert (pair.there.bytes, pair.there.events) == (b"last", [CLOSED])


@pytest.mark.parametrize("listens", [True, False])
def test_who_does_not_listen_refuses(*, listens: bool) -> None:
    """A connection to a port without a listener is closed at once."""
    pair = Pair(listens=listens)
    pair.live(0.1)
    assert pair.here.events == (["opened 1"] if listens else [REFUSED])


def test_a_lost_end_is_found_out() -> None:
    """An end whose peer has vanished without a word, as behind a cut, learns of it when it sends."""
    pair = Pair()
    pair.live(0.1)
    pair.other.open = False
    pair.end.send(b"hello")
    pair.live(0.1)
    assert pair.here.events == ["opened 1", RESET]


@pytest.mark.parametrize("listens", [False, True])
def test_a_lost_refusal_is_no_end(listens: bool) -> None:
    """The packets of n2 do not arrive at n1 for a while. Then n1 learns that nobody listens, or is accepted."""
    pair = Pair(listens=False)
    pair.world.cut(1, {"n1": frozenset({"n2"})})
    pair.live(1.5)
    assert pair.here.events == []
    pair.accepts = listens
    pair.world.mend(1)
    pair.live(1.5)
    assert pair.here.events == (["opened 1"] if listens else [REFUSED])


def test_a_foreseen_packet_is_taken_in_its_order() -> None:
    """Bytes and the end of the connection can be foreseen. What is put back arrives as if nothing had happened."""
    pair = Pair()
    pair.live(0.1)
    pair.end.send(b"a")
    pair.end.send(b"b")
    pair.end.close()
    events = sorted(pair.world.queue, key=lambda event: event[3][0])
    first, second, last = (pair.end.foresee(*event[3]) for event in events)
    assert first is not None
    assert second is not None
    assert last is not None
    assert [first.content, second.content, last.content] == [b"a", b"b", CLOSED]
    assert first.receiver is pair.other
    assert pair.end.foresee(*events[0][3]) is None  # it is taken
    for _ in events:
        pair.end.put_back()
    assert pair.end.foresee(*events[1][3]) is None  # the one before it has to come first
    pair.live(0.1)
    assert pair.there.bytes == b"ab"
    assert pair.there.events == [CLOSED]
