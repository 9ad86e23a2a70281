"""RocketMQ's brokers as a system: outcomes, routes, clients against scripted brokers, configuration, readiness."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from clusters.kit.answers import InDoubt, NotDone
from clusters.kit.stored import entry_body
from clusters.systems.rocketmq import broker_outcomes, brokers, name_servers, queue_client, routes
from clusters.systems.rocketmq.broker_options import Flush, RocketMQOptions
from clusters.systems.rocketmq.broker_outcomes import NAMES, REFUSED, refusal
from clusters.systems.rocketmq.brokers import Brokers
from clusters.systems.rocketmq.controller_service import KnownBrokers
from clusters.systems.rocketmq.log_client import RocketMQLogs
from clusters.systems.rocketmq.options import Consensus
from clusters.systems.rocketmq.producer import Producer
from clusters.systems.rocketmq.queue_client import Consumer, RocketMQQueues, Topic
from clusters.systems.rocketmq.routes import Routes
from clusters.systems.rocketmq.system import RocketMQSystem
from clusters.systems.rocketmq.tests.unit.test_rocketmq_records import record
from harness.cluster import Paper
from harness.errors import InputError
from harness.node import Node
from harness.op import Fail, Info, Invocation, Ok
from harness.service import NodeStatus
from tests.artifacts import unbuilt
from tests.unit.clusters.remoting_script import frame, scripted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness.cluster import Cluster
    from harness.op import Outcome, Value

NAME_SERVER = Node(name="n1", address="127.0.0.1")
MASTER = Node(name="n2", address="127.0.0.2")
SLAVE = Node(name="n3", address="127.0.0.3")
REJECTED = "[REJECTREQUEST]system busy, start flow control for a while"


@dataclass
class Group:
    """A name server, a master and a slave with one log; the slave gives consumers the first `visible` messages.

    Attributes:
        log: The bodies of the messages.
        master: The address that the name server gives to clients; None for none.
        answers: The code and the remark of the next sends, instead of an offset.
        damaged: The messages that the logs lack, although the queue has their places.
        routes: How often the name server was asked.
        committed: The offset that the consumers committed.
        forgets: Whether a commit is answered with an error, and forgotten.
        silent: Whether a commit gets no answer.
        pulls: The first offset of each pull.
    """

    port: int = 0
    log: list[bytes] = field(default_factory=list)
    master: str | None = "127.0.0.2"
    visible: int = 1000
    answers: list[tuple[int, str]] = field(default_factory=list)
    damaged: set[int] = field(default_factory=set)
    routes: int = 0
    committed: int | None = None
    forgets: bool = False
    silent: bool = False
    pulls: list[int] = field(default_factory=list)

    def at(self, node: Node) -> Any:
        """Returns the script of a process."""
        return lambda header, body: self._answer(node, header, body)

    def _answer(self, node: Node, header: Mapping[str, Any], body: Any) -> bytes:  # noqa: PLR0911 - one for each request
        asked, fields = header["code"], header["extFields"]
        end = len(self.log) if node == MASTER else min(self.visible, len(self.log))
        match asked:
            case 105:
                self.routes += 1
                addresses = {} if self.master is None else {"0": f"{self.master}:{self.port}"}
                route = {"brokerDatas": [{"brokerName": "broker", "brokerAddrs": addresses | {"2": "127.0.0.3:1"}}]}
                return _framed(header, 0, {}, json.dumps(route).encode())
            case 310 if self.answers:
                code, remark = self.answers.pop(0)
                return _framed(header, code, {}, remark=remark)
            case 310 if node == SLAVE:
                return _framed(header, 2, {}, remark=REJECTED)
            case 310:
                self.log.append(json.dumps(body).encode())
                return _framed(header, 0, {"queueId": "0", "queueOffset": str(len(self.log) - 1)})
            case 30:
                return _framed(header, 0, {"offset": str(end)})
            case 11:
                self.pulls.append(int(fields["queueOffset"]))
                first, most = int(fields["queueOffset"]), int(fields["maxMsgNums"])
                places = [offset for offset in range(first, min(end, first + most)) if offset not in self.damaged]
                data = b"".join(record(self.log[offset], offset=offset) for offset in places)
                return _framed(header, 0 if places else 19, {"maxOffset": str(end)}, data)
        return self._committed(header, fields)

    def _committed(self, header: Mapping[str, Any], fields: Mapping[str, str]) -> bytes:
        match header["code"]:
            case 14 if self.committed is None:
                return _framed(header, 22, {}, remark="Not found")
            case 14:
                return _framed(header, 0, {"offset": str(self.committed)})
            case 15 if self.silent:
                return b""
            case 15 if self.forgets:
                return _framed(header, 1, {}, remark="an error")
            case 15:
                self.committed = int(fields["commitOffset"])
                return _framed(header, 0, {})
        raise AssertionError(f"request {header['code']}")


def _framed(
    header: Mapping[str, Any], code: int, fields: Mapping[str, str], body: bytes = b"", *, remark: str = ""
) -> bytes:
    head = {"code": code, "opaque": header["opaque"], "flag": 1, "extFields": dict(fields), "remark": remark}
    return frame(json.dumps(head).encode(), body)


def ask(
    monkeypatch: pytest.MonkeyPatch,
    group: Group,
    *operations: tuple[str, Value],
    node: Node = SLAVE,
    interval_s: float = 3600,
    follows: bool = True,
    whole: bool = False,
) -> list[Outcome]:
    """Carries out operations by one client, one after the other."""

    async def main() -> list[Outcome]:
        async with (
            scripted(group.at(MASTER), MASTER.address) as one,
            scripted(group.at(SLAVE), SLAVE.address, one.port),
            scripted(group.at(NAME_SERVER), NAME_SERVER.address) as names,
        ):
            group.port = one.port
            for module in (brokers, routes):
                monkeypatch.setattr(module, "PORT", one.port)
            monkeypatch.setattr(name_servers, "NAME_SERVER_PORT", names.port)
            both = [MASTER, SLAVE]
            route = Routes(name_servers=[NAME_SERVER], brokers=both, topic="labrys", interval_s=interval_s)
            producer = Producer(node=node, routes=route, follows=follows)
            client = RocketMQLogs(node=node, producer=producer, topic="labrys", whole=whole)
            outcomes = [await client.invoke(Invocation(f, value, "l0")) for f, value in operations]
            await client.close()
            return outcomes

    return asyncio.run(main())


@pytest.mark.parametrize("code", sorted(REFUSED))
def test_a_refusal_is_certain_only_with_its_remark(code: int) -> None:
    """The same code with another remark is `info`."""
    for remark in REFUSED[code]:
        certain = refusal(code, f"{remark} and more")
        assert type(certain) is NotDone
        assert certain.code == NAMES[code]
    assert type(refusal(code, "an error of next year")) is InDoubt
    assert type(refusal(code, "")) is InDoubt


@pytest.mark.parametrize("code", [1, 3, 10, 11, 12, 13, 99, -1])
def test_every_other_code_leaves_the_send_open(code: int) -> None:
    """The message may be in the log, whatever the remark says."""
    for remark in (REJECTED, "in-sync replicas not enough", ""):
        assert type(refusal(code, remark)) is InDoubt


def test_a_client_that_follows_appends_at_the_master(monkeypatch: pytest.MonkeyPatch) -> None:
    """The offsets are the orders; a read of a range has only the entries of its key."""
    group = Group(log=[entry_body("other", 0)])
    outcomes = ask(monkeypatch, group, ("append", "a"), ("append", 7), ("read", [0, 9]), ("read", 2), ("read", 5))
    assert outcomes == [Ok(1, order=1), Ok(2, order=2), Ok([[1, "a"], [2, 7]]), Ok(7), Ok(None)]


def test_a_route_is_asked_for_again_after_the_interval_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """A refusal does not change the route, as in RocketMQ's own clients."""
    group = Group(answers=[(2, REJECTED), (1, "in-sync replicas not enough")])
    outcomes = ask(monkeypatch, group, ("append", 1), ("append", 2), ("append", 3))
    assert outcomes == [
        Fail(f"system-busy: {REJECTED}"),
        Info("system-error: in-sync replicas not enough"),
        Ok(0, order=0),
    ]
    assert group.routes == 1
    ask(monkeypatch, group, ("append", 4), ("append", 5), interval_s=0)
    assert group.routes == 3


def test_a_route_without_a_master_sends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both are certain: no message was sent."""
    group = Group(master=None)
    append, read = ask(monkeypatch, group, ("append", 1), ("read", 0))
    assert append == read == Fail("no-master: the route has no master")
    assert not group.log


def test_a_pinned_client_stays_at_its_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    """A slave refuses messages, which is no outage, and answers reads from its own log."""
    group = Group(log=[entry_body("l0", index) for index in range(3)], visible=2)
    append, read = ask(monkeypatch, group, ("append", 1), ("read", [0, 9]), follows=False)
    assert append == Fail(f"not-master: system-busy: {REJECTED}")
    assert read == Ok([[0, 0], [1, 1]])
    assert group.routes == 0


@pytest.mark.parametrize("visible", [2, 3])
def test_a_final_read_waits_until_the_replica_has_everything(monkeypatch: pytest.MonkeyPatch, visible: int) -> None:
    """A replica that lags is not read: what it lacks is not lost yet."""
    group = Group(log=[entry_body("l0", index) for index in range(3)], visible=visible)
    [read] = ask(monkeypatch, group, ("read", [0, 9]), follows=False, whole=True)
    if visible == 3:
        assert read == Ok([[0, 0], [1, 1], [2, 2]])
    else:
        assert read == Fail("no-answer: the replica has 2 of 3 messages")


@pytest.mark.parametrize("damaged", [0, 1])
def test_a_message_that_the_log_lacks_is_no_end(monkeypatch: pytest.MonkeyPatch, damaged: int) -> None:
    """A place in the queue without its message makes the read fail. It must not look like the end of the log."""
    group = Group(log=[entry_body("l0", index) for index in range(3)], damaged={damaged})
    [read] = ask(monkeypatch, group, ("read", [damaged, damaged + 1]))
    assert isinstance(read, Fail)


def test_a_message_of_nobody_is_an_element(monkeypatch: pytest.MonkeyPatch) -> None:
    """The checker then finds an entry that no operation appended."""
    [read] = ask(monkeypatch, Group(log=[b'"strange"']), ("read", 0))
    assert read == Ok("not an entry of this test: b'\"strange\"'")


def test_without_brokers(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection that is refused sends nothing."""
    group = Group(master="127.0.0.3")
    [append] = ask(monkeypatch, group, ("append", 1), node=Node(name="n9", address="127.0.0.9"), follows=False)
    assert isinstance(append, Fail)
    assert append.error.startswith("not-connected: 127.0.0.9:")


def consume(
    monkeypatch: pytest.MonkeyPatch, group: Group, *operations: tuple[str, Value], start: int | None = None
) -> list[Outcome]:
    """Carries out operations of one client for queues, one after the other, with one message queue."""

    async def main() -> list[Outcome]:
        async with (
            scripted(group.at(MASTER), MASTER.address) as one,
            scripted(group.at(NAME_SERVER), NAME_SERVER.address) as names,
        ):
            group.port = one.port
            for module in (brokers, routes):
                monkeypatch.setattr(module, "PORT", one.port)
            monkeypatch.setattr(name_servers, "NAME_SERVER_PORT", names.port)
            route = Routes(name_servers=[NAME_SERVER], brokers=[MASTER], topic="labrys", interval_s=3600)
            producer = Producer(node=MASTER, routes=route, follows=True)
            consumer = Consumer(topic="labrys", queue=0, producer=Producer(node=MASTER, routes=route, follows=True))
            consumer._place = start
            topics = {"q0": Topic(name="labrys", consumers=[consumer])}
            client = RocketMQQueues(process=3, node=MASTER, producer=producer, topics=topics)
            outcomes = [await client.invoke(Invocation(f, value, "q0")) for f, value in operations]
            await client.close()
            return outcomes

    return asyncio.run(main())


def test_a_dequeue_takes_the_next_message_and_commits_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """Values come out in their order, and a drain takes the rest. Then the queue is empty."""
    group = Group()
    put = [("enqueue", value) for value in (5, "six", [7])]
    outcomes = consume(monkeypatch, group, *put, ("dequeue", None), ("drain", None), ("dequeue", None), ("drain", None))
    assert outcomes[:5] == [Ok(5), Ok("six"), Ok([7]), Ok(5), Ok(["six", [7]])]
    assert isinstance(outcomes[5], Fail)
    assert outcomes[5].error.startswith("nothing-came: ")
    assert outcomes[6] == Ok([])
    assert group.committed == 3


def test_a_consumer_goes_on_at_the_committed_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """So a value whose commit failed comes out again, and none is left out."""
    group = Group(log=[entry_body("q0", index) for index in range(3)], committed=1, forgets=True)
    assert consume(monkeypatch, group, ("dequeue", None), ("dequeue", None)) == [Ok(1), Ok(1)]
    group.forgets = False
    assert consume(monkeypatch, group, ("dequeue", None), ("dequeue", None)) == [Ok(1), Ok(2)]


def test_a_log_that_became_shorter_moves_the_place_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the consumer would leave out the next messages, and a loss would look like one of the queue."""
    group = Group(log=[entry_body("q0", 0)])
    outcomes = consume(monkeypatch, group, ("dequeue", None), ("enqueue", 8), ("dequeue", None), start=9)
    assert isinstance(outcomes[0], Fail)
    assert outcomes[1:] == [Ok(8), Ok(8)]


def test_a_drain_that_cannot_read_everything_takes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """It fails, and commits nothing."""
    group = Group(log=[entry_body("q0", index) for index in range(3)], damaged={2})
    [drained] = consume(monkeypatch, group, ("drain", None))
    assert isinstance(drained, Fail)
    assert group.committed is None


def test_a_commit_without_an_answer_loses_no_value(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time limit of a dequeue ends before it takes a value. Else it would fail, and have the value."""
    monkeypatch.setattr(queue_client, "DEQUEUE_S", 0.3)
    monkeypatch.setattr(queue_client, "COMMIT_S", 0.6)
    group = Group(log=[entry_body("q0", index) for index in range(2)], silent=True)
    assert consume(monkeypatch, group, ("dequeue", None)) == [Ok(0)]


def test_a_message_of_nobody_comes_out_of_a_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    """The checker then finds a value that no operation put in."""
    group = Group(log=[entry_body("q1", 0)])
    [taken] = consume(monkeypatch, group, ("dequeue", None))
    assert isinstance(taken, Ok)
    assert str(taken.value).startswith("not an entry of this queue: ")


def made(count: int = 6, **options: Any) -> RocketMQSystem:
    """RocketMQ on nodes that do not exist, at 192.0.2.1 and so on."""
    paper = Paper([f"n{number}" for number in range(1, count + 1)])
    return unbuilt(RocketMQSystem(cast("Cluster", paper), RocketMQOptions(**options), "log"), "rocketmq-jars")


@pytest.mark.parametrize(
    ("count", "names", "controllers", "group"),
    [(6, "12", "123", "456"), (5, "12", "123", "345"), (3, "12", "123", "123"), (1, "1", "1", "1")],
)
def test_the_nodes_of_each_service(count: int, names: str, controllers: str, group: str) -> None:
    """With six nodes, no node has both a controller and a broker."""
    by_role = {service.role: "".join(node.name[1:] for node in service.nodes) for service in made(count).services()}
    assert by_role == {"namesrv": names, "controller": controllers, "broker": group}


@pytest.mark.parametrize(
    ("options", "lines"),
    [
        ({}, {"flushDiskType": "ASYNC_FLUSH", "minInSyncReplicas": "2", "transientStorePoolEnable": "false"}),
        ({"flush": Flush.SYNC, "min_in_sync_replicas": 1}, {"flushDiskType": "SYNC_FLUSH", "minInSyncReplicas": "1"}),
        # With two buffers or less, a master rejects every message: both are in use.
        ({"transient_store_pool": True}, {"transientStorePoolEnable": "true", "transientStorePoolSize": "5"}),
    ],
)
def test_the_configuration_of_a_broker(options: Any, lines: dict[str, str]) -> None:
    """It has the addresses of the other services, and what the options say."""
    system = made(**options)
    [daemon] = system.daemons(system.cluster.nodes[5], "broker")
    [config] = daemon.config_files.values()
    settings = dict(line.split("=", 1) for line in config.splitlines())
    assert settings["controllerAddr"] == "192.0.2.1:9878;192.0.2.2:9878;192.0.2.3:9878"
    assert settings["namesrvAddr"] == "192.0.2.1:9876;192.0.2.2:9876"
    assert settings["brokerIP1"] == "192.0.2.6"
    assert {name: settings[name] for name in lines} == lines


def test_a_release_without_jraft() -> None:
    """The error of the controllers' options holds here too."""
    with pytest.raises(InputError, match="lacks jraft"):
        RocketMQOptions(consensus=Consensus.JRAFT, rocketmq_version="5.1.4")


def status(node: str, master: str | None, epoch: int = 3) -> NodeStatus:
    """A broker's status."""
    return NodeStatus(node=node, role="leader" if node == master else "follower", term=epoch, leader=master)


@pytest.mark.parametrize(
    ("known", "views", "missing"),
    [
        (("n4", "456"), ("n4", "n4", "n4"), {}),
        (("n4", "45"), ("n4", "n4", "n4"), {"n6": "is not in the sync set"}),
        (("n4", "456"), ("n4", None, "n4"), {"n5": "sees no master; the master of the controllers is n4"}),
        (("n4", "456"), ("n4", "n5", "n4"), {"n5": "sees n5; the master of the controllers is n4"}),
        (("n4", "456"), ("silent", "n4", "n4"), {"n4": "does not answer"}),
        ((None, "4"), ("n4", "n4", "n4"), dict.fromkeys(["n4", "n5", "n6"], "has no master that the controllers know")),
        (None, ("n4", "n4", "n4"), dict.fromkeys(["n4", "n5", "n6"], "has no master that the controllers know")),
    ],
)
def test_ready(known: tuple[str | None, str] | None, views: Sequence[str | None], missing: dict[str, str]) -> None:
    """Brokers are ready if all name the master of the controllers and are in its sync set; each lacks what is said."""
    system = made()
    address = {node.name: f"{node.address}:10911" for node in system.cluster.nodes}
    view = None
    if known is not None:
        in_sync = [address[f"n{digit}"] for digit in known[1]]
        view = KnownBrokers(master=None if known[0] is None else address[known[0]], epoch=3, in_sync=in_sync)

    async def brokers_known() -> KnownBrokers | None:
        return view

    service = Brokers(system, system.front().nodes, cast("Any", SimpleNamespace(brokers=brokers_known)))
    said = {f"n{number}": None if who == "silent" else status(f"n{number}", who) for number, who in enumerate(views, 4)}
    assert asyncio.run(service._lacking(said)) == missing


def test_a_sync_set_that_is_whole_for_a_moment_is_not_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    """It often changes while brokers start. Nothing may be lacking for two seconds."""
    system = made()
    members = [f"{node.address}:10911" for node in system.front().nodes]
    said = {name: status(name, "n4") for name in ("n4", "n5", "n6")}
    now = {"s": 0.0, "members": 3}

    async def brokers_known() -> KnownBrokers:
        return KnownBrokers(master=members[0], epoch=3, in_sync=members[: int(now["members"])])

    monkeypatch.setattr("clusters.systems.rocketmq.brokers.loop_s", lambda: now["s"])
    service = Brokers(system, system.front().nodes, cast("Any", SimpleNamespace(brokers=brokers_known)))
    whole = []
    for now["s"], now["members"] in [(10.0, 3), (11.0, 2), (12.0, 3), (13.5, 3), (14.0, 3)]:
        whole.append(not asyncio.run(service.lacking(said)))
    assert whole == [False, False, False, False, True]


def test_every_code_of_the_tables_has_a_name() -> None:
    """The history never has a bare number for a code that this module knows."""
    assert set(REFUSED) <= set(NAMES)
    assert broker_outcomes.NOT_MASTER in RocketMQSystem.refusals
