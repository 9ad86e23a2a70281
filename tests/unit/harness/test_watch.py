"""The watch records states and how long they lasted, and claims nothing about times without a poll."""

from __future__ import annotations

import asyncio
import contextlib
from itertools import pairwise
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from harness import watch as module
from harness.clock import Clock, run_virtual
from harness.declare import NoOptions
from harness.node import Node
from harness.service import NodeStatus
from harness.system import OneServiceSystem
from harness.units import NS_PER_S as S
from harness.watch import INTERVAL_S, TIMEOUT_S, Sighting, Watch

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from harness.cluster import Cluster
    from harness.daemon import Daemon

NODES = (Node(name="n1", address="192.0.2.1"), Node(name="n2", address="192.0.2.2"))


class Reporting(OneServiceSystem):
    """Nodes whose status is a function of node and time; None is silence."""

    name = role = "reporting"

    def __init__(self, report: Callable[[str, float], tuple[str, int, int | None] | None]) -> None:
        super().__init__(cast("Cluster", SimpleNamespace(nodes=NODES)), NoOptions(), "none")
        self.report = report

    def install(self, node: Node) -> None:
        """Has nothing to install."""

    def client(self, process: int, node: Node, *, pinned: bool = False) -> Any:
        """Has no clients."""
        raise NotImplementedError

    def daemon(self, node: Node) -> Daemon:
        """Has no process."""
        raise NotImplementedError

    async def until_ready(self, nodes: Sequence[Node], timeout_s: float) -> None:
        """Is ready at once."""

    async def statuses(self, node: Node, timeout_s: float) -> Sequence[NodeStatus]:
        """Answers in 10 ms, or not at all."""
        state = self.report(node.name, asyncio.get_running_loop().time())
        await asyncio.sleep(timeout_s if state is None else 0.01)
        if state is None:
            return ()
        role, term, applied = state
        return (NodeStatus(node=node.name, role=role, term=term, applied_index=applied),)


def watched(seconds: float, report: Callable[[str, float], tuple[str, int, int | None] | None]) -> Watch:
    """Watches for some seconds of virtual time."""

    async def go() -> Watch:
        watch = Watch(system=Reporting(report), clock=Clock(asyncio.get_running_loop()))
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(watch.run(), seconds)
        return watch

    return run_virtual(go())


def test_a_sighting_lasts_until_the_last_poll_that_saw_it() -> None:
    """Between two states is the time of one poll, without a state. A state of a single poll has no length."""

    def report(node: str, at_s: float) -> tuple[str, int, int | None] | None:
        if node == "n2":
            return ("follower", 1, None)
        return ("candidate", 2, None) if 2.5 < at_s < 3.5 else ("leader", 1 if at_s < 2.5 else 3, None)

    watch = watched(5.5, report)
    own = [seen for seen in watch.sightings if seen.node == "n1"]
    assert [(seen.role, seen.time_ns // S, seen.last_ns // S) for seen in own] == [
        ("leader", 0, 2),
        ("candidate", 3, 3),
        ("leader", 4, 5),
    ]
    assert own[1].time_ns == own[1].until_ns
    for before, after in pairwise(own):
        assert before.last_ns < after.time_ns <= before.last_ns + (INTERVAL_S + 0.001) * S
    assert watch.leader() == ("n1", 3)


def test_a_poll_has_one_time_without_the_wait_for_silent_nodes() -> None:
    """All nodes of a poll have the time of its last answer."""
    watch = watched(3.5, lambda node, at_s: None if node == "n1" and at_s > 1.5 else ("leader", 1, None))
    first = {seen.node: seen.time_ns for seen in watch.sightings if seen.time_ns < S}
    assert first["n1"] == first["n2"]
    (silent,) = [seen for seen in watch.sightings if seen.role is None]
    assert silent.time_ns < 2 * S + TIMEOUT_S * S / 2


def test_positions_have_one_index_for_each_poll_and_node() -> None:
    """It is None if the node did not answer, or reported none."""
    watch = watched(2.9, lambda node, at_s: None if node == "n1" and at_s > 0.5 else ("leader", 1, round(at_s) + 7))
    assert [time_ns // S for time_ns in watch.positions.time_ns] == [0, 1, 2]
    assert watch.positions.applied == {"n1": [7, None, None], "n2": [7, 8, 9]}


@pytest.mark.parametrize("seconds", [7.5, 8.5, 16.5, 29.5, 100.5])
def test_positions_stay_bounded_and_evenly_spread(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """A long run has at most `MAX_POSITIONS`, from its beginning to its end, at equal distances."""
    monkeypatch.setattr(module, "MAX_POSITIONS", 8)
    positions = watched(seconds, lambda _, at_s: ("leader", 1, round(at_s))).positions
    times = [time_ns // S for time_ns in positions.time_ns]
    (step,) = {later - earlier for earlier, later in pairwise(times)}
    assert min(8, seconds) // 2 < len(times) <= 8
    assert times[0] == 0
    assert times[-1] + step > seconds - 1
    assert list(positions.applied["n1"]) == times


def test_a_sighting_of_one_poll_ends_where_it_begins() -> None:
    """No later poll is known to have seen it."""
    assert Sighting(time_ns=5, node="n1", role="leader").last_ns == 5
