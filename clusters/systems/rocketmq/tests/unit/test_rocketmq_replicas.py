"""RocketMQ's brokers compared with each other: planted differences in messages and epochs are found, and nothing else is."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from clusters.systems.rocketmq import brokers, controllers
from clusters.systems.rocketmq.brokers import SHORT_S, Brokers
from clusters.systems.rocketmq.controller_service import ControllerService, KnownBrokers
from clusters.systems.rocketmq.controllers import ControllerProcesses
from clusters.systems.rocketmq.options import ControllerOptions
from clusters.systems.rocketmq.replica import GONE
from clusters.systems.rocketmq.tests.unit.test_rocketmq import made
from clusters.systems.rocketmq.tests.unit.test_rocketmq_records import record
from harness.node import Node
from harness.replicas import Dumps
from harness.service import NodeStatus
from harness.states import one_leader_per_term, replicas_equal
from harness.verdict import Verdict
from harness.watch import Sighting
from tests.unit.clusters.remoting_script import frame, scripted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness.service import ReplicaState
    from harness.verdict import Part

NODES = [Node(name=f"n{number}", address=f"127.0.0.{number}") for number in (4, 5, 6)]
BODIES = (b"one", b"two", b"three")


@dataclass
class Broker:
    """A broker with the messages of one queue.

    Attributes:
        bodies: The bodies of its messages.
        shown: How many of them it gives to consumers.
        epochs: The number and the start of each epoch, for each answer in turn; the last one stays.
        ids: Its id, for each answer in turn; the last one stays. 0 is a master.
        grows: The bytes by which its log grows with each answer about its end.
        gone: The messages whose places the queue has, but not the log.
    """

    bodies: Sequence[bytes] = BODIES
    shown: int = 100
    epochs: list[list[tuple[int, int]]] = field(default_factory=lambda: [[(1, 0)]])
    ids: list[int] = field(default_factory=lambda: [2])
    grows: int = 0
    gone: frozenset[int] = frozenset()
    grown: int = 0

    def answer(self, header: Mapping[str, Any], _: Any) -> bytes:
        """Answers a request."""
        match header["code"]:
            case 1007:
                self.grown += self.grows
                epochs = self.epochs.pop(0) if len(self.epochs) > 1 else self.epochs[0]
                id_ = self.ids.pop(0) if len(self.ids) > 1 else self.ids[0]
                listed = [{"epoch": epoch, "startOffset": start} for epoch, start in epochs]
                end = sum(map(len, self._records())) + self.grown
                return _framed(header, 0, {}, json.dumps({"brokerId": id_, "epochList": listed, "maxOffset": end}))
            case 907:
                return _framed(header, 0, {}, json.dumps({"master": self.ids[0] == 0, "inSyncSlaveNums": 2}))
            case 11:
                first = int(header["extFields"]["queueOffset"])
                given = itertools.takewhile(lambda offset: offset not in self.gone, range(first, len(self.bodies)))
                data = b"".join(self._records()[offset] for offset in given if offset < self.shown)
                places = {"maxOffset": str(min(self.shown, len(self.bodies)))}
                return _framed(header, 0 if data else 19, places, data)
        raise AssertionError(f"request {header['code']}")

    def _records(self) -> list[bytes]:
        records: list[bytes] = []
        for offset, body in enumerate(self.bodies):
            records.append(record(body, offset=offset, place=sum(map(len, records))))
        return records


def _framed(header: Mapping[str, Any], code: int, fields: Mapping[str, str], body: str | bytes) -> bytes:
    head = {"code": code, "opaque": header["opaque"], "flag": 1, "extFields": dict(fields), "remark": ""}
    return frame(json.dumps(head).encode(), body.encode() if isinstance(body, str) else body)


@contextlib.asynccontextmanager
async def running(monkeypatch: pytest.MonkeyPatch, group: Sequence[Broker], in_sync: str = "456") -> Any:
    """Yields the service of some brokers; `in_sync` has the numbers of the nodes in the sync set."""
    async with contextlib.AsyncExitStack() as stack:
        port = 0
        for node, broker in zip(NODES, group, strict=False):
            port = (await stack.enter_async_context(scripted(broker.answer, node.address, port))).port
        monkeypatch.setattr(brokers, "PORT", port)

        async def known() -> KnownBrokers:
            return KnownBrokers(
                master=f"127.0.0.4:{port}", epoch=1, in_sync=[f"127.0.0.{digit}:{port}" for digit in in_sync]
            )

        yield Brokers(made(), NODES, cast("Any", SimpleNamespace(brokers=known)))


def dumped(
    monkeypatch: pytest.MonkeyPatch, *group: Broker, in_sync: str = "456", after_s: Sequence[float] = (0.0,)
) -> list[ReplicaState | None]:
    """Dumps each broker at these times, and returns the last dumps."""

    async def main() -> list[ReplicaState | None]:
        now = {"s": 0.0}
        monkeypatch.setattr(brokers, "loop_s", lambda: now["s"])
        async with running(monkeypatch, group, in_sync) as service:
            for now["s"] in after_s:
                states = [await service.replica(node, 5.0) for node in NODES[: len(group)]]
            return states

    return asyncio.run(main())


def compared(dumps: Sequence[ReplicaState | None]) -> Part:
    """Returns the part about these dumps."""
    all_dumps = Dumps()
    for dump in dumps:
        if dump is not None:
            all_dumps.add(dump)
    return replicas_equal(all_dumps.compared([node.name for node in NODES], seconds=1.0))


def test_equal_brokers_are_equal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Messages and epochs with messages count. An epoch that only one broker knows, and that has no message, does not."""
    end = 3 * 4096  # beyond the log
    part = compared(dumped(monkeypatch, Broker(), Broker(epochs=[[(1, 0), (2, end)]]), Broker()))
    assert (part.verdict, part.reason[:39]) == (Verdict.VALID, "3 replicas have the same 4 keys at appl")


def test_another_message_at_the_same_offset_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both logs have the same length, and the explanation has the queue, the offset and both bodies."""
    part = compared(dumped(monkeypatch, Broker(), Broker(bodies=(b"one", b"TWO", b"three")), Broker()))
    assert part.verdict is Verdict.INVALID
    assert "labrys/0/1 at index " in part.reason
    assert "'two'], n5 has [" in part.reason
    assert "'TWO'], n6 has [" in part.reason


def test_long_bodies_that_differ_at_their_end_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The state has their digests."""
    part = compared(dumped(monkeypatch, Broker(bodies=[b"x" * 900 + b"1"]), Broker(bodies=[b"x" * 900 + b"2"])))
    assert part.verdict is Verdict.INVALID
    assert "sha256" in part.reason


@pytest.mark.parametrize(("own", "text"), [([(1, 0), (2, 60)], "epoch 2"), ([(3, 0)], "epoch 1")])
def test_epochs_that_disagree_are_found(monkeypatch: pytest.MonkeyPatch, own: list[tuple[int, int]], text: str) -> None:
    """An epoch starts at another place, or one broker lacks it; the messages are the same."""
    group = [Broker(epochs=[[(1, 0), (2, 90)]]), Broker(epochs=[own]), Broker(epochs=[[(1, 0), (2, 90)]])]
    part = compared(dumped(monkeypatch, *group))
    assert part.verdict is Verdict.INVALID
    assert f"{text} at index " in part.reason


def test_a_broker_outside_the_sync_set_is_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is promised of it."""
    part = compared(dumped(monkeypatch, Broker(), Broker(bodies=(b"one", b"TWO", b"three")), Broker(), in_sync="46"))
    assert (part.verdict, part.reason.endswith("Not compared with them: n5 (no answer).")) == (Verdict.UNKNOWN, True)


def test_a_log_that_grows_is_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its messages would be those of another moment than its end."""
    assert dumped(monkeypatch, Broker(grows=7)) == [None]


@pytest.mark.parametrize("short", [Broker(shown=2), Broker(gone=frozenset({2}), shown=3)])
def test_messages_that_stay_away_are_found_and_late_ones_are_not(
    monkeypatch: pytest.MonkeyPatch, short: Broker
) -> None:
    """A slave gives messages to consumers later than it has them. After a while at rest, they are missing."""
    first, late = dumped(monkeypatch, Broker(), replace(short))
    assert first is not None
    assert late is None
    _, now = dumped(monkeypatch, Broker(), replace(short), after_s=(0.0, SHORT_S))
    part = compared([first, now])
    assert part.verdict is Verdict.INVALID
    assert "labrys/0/2 at index " in part.reason
    assert ("n5 lacks it" in part.reason) or (GONE in part.reason)


def test_pulls_that_stop_in_the_middle_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """The queue has a place whose message the log lacks."""
    [state] = dumped(monkeypatch, Broker(gone=frozenset({0})), after_s=(0.0, SHORT_S))
    assert state is not None
    assert state.state["labrys/0/0"] == GONE


def led(monkeypatch: pytest.MonkeyPatch, *group: Broker) -> list[NodeStatus]:
    """Returns the status of each broker."""

    async def main() -> list[NodeStatus]:
        async with running(monkeypatch, group) as service:
            return [status for node in NODES[: len(group)] for status in await service.statuses(node, 5.0)]

    return asyncio.run(main())


def judged(statuses: Sequence[NodeStatus]) -> Part:
    """Returns the part about masters and their epochs."""
    seen = [
        Sighting(time_ns=number, node=status.node, role=status.role, term=status.term, leader=status.leader)
        for number, status in enumerate(statuses)
    ]
    return one_leader_per_term(seen, Brokers.one_leader_per_term)


def test_two_masters_with_one_epoch_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second one was elected in a later epoch, and did not write it down."""
    part = judged(led(monkeypatch, Broker(ids=[0]), Broker(ids=[0])))
    assert part.verdict is Verdict.INVALID
    assert part.reason.startswith("2 nodes reported that they led in term 1: n4 ")


def test_masters_of_two_epochs_are_not_accused(monkeypatch: pytest.MonkeyPatch) -> None:
    """An old master keeps its epoch, and the new one has the next."""
    assert (
        judged(led(monkeypatch, Broker(ids=[0]), Broker(ids=[0], epochs=[[(1, 0), (2, 90)]]))).verdict is Verdict.VALID
    )


@pytest.mark.parametrize(
    "changing",
    [
        Broker(ids=[0, 2], epochs=[[(1, 0)], [(1, 0), (2, 90)]]),  # it becomes a slave
        Broker(ids=[2, 0], epochs=[[(1, 0)], [(1, 0), (2, 90)]]),  # it becomes a master
        Broker(ids=[0, 0], epochs=[[(1, 0)], [(1, 0), (2, 90)]]),  # it is elected again
    ],
)
def test_a_broker_that_changes_while_it_is_asked_does_not_lead(
    monkeypatch: pytest.MonkeyPatch, changing: Broker
) -> None:
    """Its epoch and its role may be of two moments."""
    [status] = led(monkeypatch, changing)
    assert status.role != "leader"


def observed(masters: Sequence[tuple[str | None, int]], role: str = "leader") -> list[Sighting]:
    """What a controller with this role reports of the masters and epochs that it knows, one poll after the other."""
    service = made().services()[1]
    assert isinstance(service, ControllerService)
    left = list(masters)

    async def status(node: Node, _: float) -> NodeStatus:
        return NodeStatus(node=node.name, role=role, term=9)

    async def known(*_: Any) -> KnownBrokers:
        master, epoch = left.pop(0)
        return KnownBrokers(master=None if master is None else f"{master}:10911", epoch=epoch, in_sync=[])

    patched = cast("Any", service)
    patched.processes = SimpleNamespace(status=status)
    patched._brokers_of = known
    polls = [asyncio.run(service.statuses(service.nodes[0], 1.0)) for _ in masters]
    return [
        Sighting(time_ns=number, node=status.node, role=status.role, term=status.term, leader=status.leader)
        for number, statuses in enumerate(polls)
        for status in statuses
        if status.group == "brokers"
    ]


def test_two_masters_in_one_epoch_of_the_controllers_are_found() -> None:
    """The leader of the controllers names the master of the brokers; a controller that does not lead names none."""
    seen = observed([("192.0.2.4", 1), (None, 2), ("192.0.2.5", 3), ("192.0.2.4", 4)])
    assert [(sighting.node, sighting.role, sighting.leader) for sighting in seen[:2]] == [
        ("n1", "observer", "n4"),
        ("n1", "observer", None),
    ]
    part = one_leader_per_term(seen, ControllerService.one_leader_per_term, "controller brokers")
    assert (part.verdict, part.details["terms"]) == (Verdict.VALID, 3)
    part = one_leader_per_term(observed([("192.0.2.4", 3), ("192.0.2.5", 3)]), "P.", "controller brokers")
    assert part.verdict is Verdict.INVALID
    assert part.reason.startswith("2 nodes were reported to lead in term 3: n4 ")
    assert observed([("192.0.2.4", 1)], role="follower") == []


@pytest.mark.parametrize(("terms", "role"), [((3, 3), "leader"), ((3, 4), "candidate")])
def test_a_controller_whose_term_changes_does_not_lead(
    monkeypatch: pytest.MonkeyPatch, terms: Sequence[int], role: str
) -> None:
    """Its term and its role may be of two moments."""
    left = list(terms)

    def answer(header: Mapping[str, Any], _: Any) -> bytes:
        if header["code"] == 1005:
            return _framed(header, 0, {"isLeader": "true"}, "")
        return _framed(header, 200, {}, json.dumps({"code": 411, "term": left.pop(0)}))

    async def main() -> NodeStatus | None:
        node = Node(name="n1", address="127.0.0.1")
        async with scripted(answer) as served:
            monkeypatch.setattr(controllers, "PORT", served.port)
            return await ControllerProcesses([node], ControllerOptions()).status(node, 2.0)

    status = asyncio.run(main())
    assert status is not None
    assert (status.role, status.term) == (role, terms[-1])
