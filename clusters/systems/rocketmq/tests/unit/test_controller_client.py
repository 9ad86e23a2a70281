"""The client of RocketMQ's controllers: every row of its tables, in real frames."""

from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from clusters.kit.answers import InDoubt, NoAnswer, NotDone, NotSent
from clusters.systems.dledger.remoting import Answer
from clusters.systems.rocketmq import outcomes
from clusters.systems.rocketmq.client import ControllerClient, Controllers, value_of
from clusters.systems.rocketmq.controller import RocketMQController
from clusters.systems.rocketmq.heartbeats import accepted
from clusters.systems.rocketmq.options import ControllerOptions
from clusters.systems.rocketmq.outcomes import TABLE, Meaning
from clusters.systems.rocketmq.requests import REQUESTS, metadata
from clusters.systems.rocketmq.workloads.group import FUNCTIONS, READS
from harness.node import Node
from harness.op import Fail, Info, Invocation, Ok
from tests.unit.clusters.remoting_script import frame, scripted

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping

    from clusters.systems.rocketmq.heartbeats import Said
    from harness.op import Outcome, Value

HOST = "127.0.0.1"
SOME: Mapping[type, Any] = {int: 1, str: "a:1;7", bool: False, list: [1]}
ARGUMENTS = {f: {name: SOME[kind] for name, kind in fields.items()} or None for f, fields in FUNCTIONS.items()}


def run(main: Coroutine[Any, Any, None]) -> None:
    """Runs a test's coroutine, for at most ten seconds."""

    async def bounded() -> None:
        async with asyncio.timeout(10):
            await main

    asyncio.run(bounded())


def reply(header: Mapping[str, Any], code: int, *, fields: Mapping[str, str] | None = None, body: bytes = b"") -> bytes:
    """The frame of a controller's answer."""
    said = {"code": code, "language": "JAVA", "opaque": header["opaque"], "flag": 1, "remark": "so it is"}
    return frame(json.dumps(said | ({"extFields": fields} if fields is not None else {})).encode(), body)


def said(code: int, fields: Mapping[str, str] | None = None, body: Mapping[str, Any] | None = None) -> Answer:
    """A controller's answer."""
    return Answer(status=code, remark="", body=body or {}, extension=fields or {})


def value(f: str, answer: Answer, name: str = "b0") -> Any:
    """The client's outcome for an answer."""
    return REQUESTS[f].value(name, answer)


def test_each_function_of_the_model_has_a_request() -> None:
    """The workload and the requests agree on which functions are reads."""
    assert set(REQUESTS) == set(FUNCTIONS) - {"leave"}
    assert {f for f, request in REQUESTS.items() if request.is_read} == READS


CODES = {
    "heartbeat": 904,
    "alter": 1001,
    "elect": 1002,
    "register": 1003,
    "replica": 1004,
    "state": 1006,
    "clean": 1011,
    "next": 1012,
    "apply": 1013,
}


@pytest.mark.parametrize(
    ("f", "argument", "fields", "body"),
    [
        ("next", None, {"clusterName": "labrys", "brokerName": "b0"}, None),
        ("replica", None, {"clusterName": "labrys", "brokerName": "b0"}, None),
        ("state", None, {}, ["b0"]),
        (
            "apply",
            {"id": 2, "check": "a:1;7"},
            {"clusterName": "labrys", "brokerName": "b0", "appliedBrokerId": "2", "registerCheckCode": "a:1;7"},
            None,
        ),
        (
            "register",
            {"id": 2, "address": "a:1"},
            {"clusterName": "labrys", "brokerName": "b0", "brokerId": "2", "brokerAddress": "a:1", "invokeTime": "0"},
            None,
        ),
        (
            "elect",
            {"id": -1, "designate": True},
            {
                "clusterName": "labrys",
                "brokerName": "b0",
                "brokerId": "-1",
                "designateElect": "true",
                "invokeTime": "0",
            },
            None,
        ),
        (
            "alter",
            {"master": 1, "master_epoch": 2, "sync_set": [1, 3], "sync_epoch": 4},
            {"brokerName": "b0", "masterBrokerId": "1", "masterEpoch": "2", "invokeTime": "0"},
            {"syncStateSet": [1, 3], "syncStateSetEpoch": 4},
        ),
        (
            "clean",
            {"ids": [1, 3], "living": False},
            {
                "clusterName": "labrys",
                "brokerName": "b0",
                "brokerControllerIdsToClean": "1;3",
                "isCleanLivingBroker": "false",
                "invokeTime": "0",
            },
            None,
        ),
        (
            "heartbeat",
            {"id": 3, "epoch": 1, "max_offset": 9, "priority": 2},
            {
                "clusterName": "labrys",
                "brokerName": "b0",
                "brokerAddr": "broker-3:1",
                "brokerId": "3",
                "epoch": "1",
                "maxOffset": "9",
                "confirmOffset": "9",
                "heartbeatTimeoutMills": "86400000",
                "electionPriority": "2",
            },
            None,
        ),
    ],
)
def test_what_is_sent(f: str, argument: Any, fields: Mapping[str, str], body: Any) -> None:
    """The code, the header's fields and the body of each request."""

    async def main() -> None:
        async with scripted(lambda header, _: reply(header, 0)) as node:
            connection = await Controllers(nodes=[Node(name="n1", address=HOST)], port=node.port).connect(
                Node(name="n1", address=HOST)
            )
            await REQUESTS[f].ask(connection, "b0", argument)
            await connection.close()
            [(header, sent)] = node.requests
            assert (header["code"], header["extFields"], sent) == (CODES[f], fields, body)

    run(main())


MASTER = {"masterBrokerId": "1", "masterAddress": "a:1", "masterEpoch": "2"}
LED = {"master": 1, "address": "a:1", "master_epoch": 2}
SET = {"syncStateSet": [2, 1], "syncStateSetEpoch": 4}
IN_SET = {"sync_set": [1, 2], "sync_epoch": 4}


@pytest.mark.parametrize(
    ("f", "answer", "expected"),
    [
        ("next", said(0, {"nextBrokerId": "3", "brokerName": "b0"}), {"next": 3}),
        ("apply", said(0), {}),
        ("apply", said(2014), {}),
        ("register", said(0, MASTER | {"syncStateSetEpoch": "4"}, SET), IN_SET | LED),
        ("register", said(0, {"masterEpoch": "0"}, SET), IN_SET),
        ("register", said(2010), {}),
        ("elect", said(2011, MASTER | {"syncStateSetEpoch": "4"}, SET), IN_SET | LED),
        ("elect", said(2012, {"masterEpoch": "0"}), {}),
        ("elect", said(2004), {}),
        (
            "elect",
            said(
                0,
                {"masterBrokerId": "7", "masterEpoch": "1", "syncStateSetEpoch": "1"},
                {"syncStateSet": [7], "brokerMemberGroup": {"brokerAddrs": {"10": "c", "2": "b"}}},
            ),
            {"sync_set": [7], "sync_epoch": 1, "members": [[2, "b"], [10, "c"]], "master": 7, "master_epoch": 1},
        ),
        ("alter", said(0, {"newSyncStateSetEpoch": "5"}), {"sync_epoch": 5}),
        ("alter", said(2001, {"newSyncStateSetEpoch": "0"}), {}),
        ("replica", said(0, MASTER, SET), IN_SET | LED),
        ("replica", said(0, {"masterEpoch": "2"}, SET), IN_SET | {"master_epoch": 2}),
        ("replica", said(2008), {}),
        ("clean", said(2009), {}),
        ("state", said(0, {}, {"replicasInfoTable": {}}), {"known": False}),
        (
            "state",
            said(
                0,
                {},
                {
                    "replicasInfoTable": {
                        "b0": {
                            "masterEpoch": 2,
                            "syncStateSetEpoch": 4,
                            "masterBrokerId": 1,
                            "masterAddress": "a:1",
                            "inSyncReplicas": [{"brokerId": 1, "brokerAddress": "a:1", "alive": True}],
                            "notInSyncReplicas": [
                                {"brokerId": 3, "brokerAddress": "c:1", "alive": False},
                                {"brokerId": 2, "brokerAddress": "b:1", "alive": False},
                            ],
                        }
                    }
                },
            ),
            {
                "known": True,
                "sync_epoch": 4,
                "in_sync": [[1, "a:1", True]],
                "not_in_sync": [[2, "b:1", False], [3, "c:1", False]],
                **LED,
            },
        ),
    ],
)
def test_what_is_read(f: str, answer: Answer, expected: Mapping[str, Any]) -> None:
    """An answer becomes the map of the model; a refusal has only its code."""
    assert value(f, answer) == {"code": answer.status, **expected}


@pytest.mark.parametrize(
    ("f", "answer"),
    [
        ("next", said(0)),
        ("next", said(0, {"nextBrokerId": ""})),
        ("next", said(0, {"nextBrokerId": "٣"})),
        ("next", said(0, {"nextBrokerId": "9" * 5000})),
        ("next", said(0, {"nextBrokerId": "9" * 19})),
        ("replica", said(0, MASTER)),
        ("replica", said(0, MASTER, {"syncStateSet": [True], "syncStateSetEpoch": 1})),
        ("replica", said(0, MASTER, {"syncStateSet": [1], "syncStateSetEpoch": "1"})),
        ("replica", said(0, {}, SET)),
        ("replica", said(0, MASTER | {"masterAddress": "a" * 2000}, SET)),
        ("elect", said(0, MASTER | {"syncStateSetEpoch": "1"}, {"syncStateSet": [1]})),
        (
            "elect",
            said(0, MASTER | {"syncStateSetEpoch": "1"}, {**SET, "brokerMemberGroup": {"brokerAddrs": {"x": "a"}}}),
        ),
        ("state", said(0, {}, {"replicasInfoTable": []})),
        ("state", said(0, {}, {"replicasInfoTable": {"b0": 7}})),
        (
            "state",
            said(
                0,
                {},
                {
                    "replicasInfoTable": {
                        "b0": {"masterEpoch": 1, "syncStateSetEpoch": 1, "inSyncReplicas": [1], "notInSyncReplicas": []}
                    }
                },
            ),
        ),
        ("alter", said(0)),
    ],
)
def test_what_cannot_be_understood(f: str, answer: Answer) -> None:
    """A bad answer is info, and a fail for a read."""
    with pytest.raises(NoAnswer):
        value(f, answer)
    assert isinstance(outcome_of(f, answer), Fail if f in READS else Info)


class Answered(ControllerClient):
    """A client whose leader gives one answer."""

    def __init__(self, answer: Answer) -> None:
        """Takes the answer."""
        node = Node(name="n1", address=HOST)
        super().__init__(controllers=Controllers(nodes=[node], port=1), node=node, follows=False)
        self.answer = answer

    async def operate(self, key: str, f: str, value: Value) -> Outcome:
        """Reads it."""
        return Ok(value_of(REQUESTS[f], key, self.answer))


def outcome_of(f: str, answer: Answer) -> Outcome:
    """Returns what an operation becomes that a leader answered."""
    return asyncio.run(Answered(answer).invoke(Invocation(f, None, "b0")))


@pytest.mark.parametrize("code", [*TABLE, -1, 4, 200, 1999, 2017])
@pytest.mark.parametrize("f", ["apply", "next"])
def test_the_table_of_outcomes(f: str, code: int) -> None:
    """Each code means an answer, no effect, or an unknown effect; a read without an answer is a fail."""
    answer = said(code, {"nextBrokerId": "1"})
    outcome = outcome_of(f, answer)
    meaning = TABLE[code][1] if code in TABLE else Meaning.UNKNOWN
    if meaning is Meaning.ANSWER:
        assert isinstance(outcome, Ok)
        assert outcome.value["code"] == code
    else:
        assert isinstance(outcome, Info if meaning is Meaning.UNKNOWN and f == "apply" else Fail)
        assert outcome.error == (TABLE[code][0] if code in TABLE else f"code-{code}")


@pytest.mark.parametrize(
    ("code", "meaning"),
    [(1, Meaning.UNKNOWN), (2, Meaning.NEVER), (3, Meaning.NEVER), (2005, Meaning.UNKNOWN), (2007, Meaning.NEVER)]
    + [(2015, Meaning.UNKNOWN), (2016, Meaning.UNKNOWN)]
    + [(code, Meaning.ANSWER) for code in (0, 2000, 2001, 2002, 2003, 2004, 2006, *range(2008, 2015))],
)
def test_what_the_codes_mean(code: int, meaning: Meaning) -> None:
    """With 2015 and the remoting layer's 1, the effect is unknown; 2007 means no effect."""
    assert outcomes.meaning_of(code) is meaning
    assert code in TABLE


class Cluster:
    """Two controllers on one port of two loopback addresses; both name `leads` as the leader.

    Attributes:
        leads: The address of the leader; None if the controllers know none.
    """

    def __init__(self) -> None:
        self.nodes = [Node(name="n1", address="127.0.0.1"), Node(name="n2", address="127.0.0.2")]
        self.leads: str | None = "127.0.0.2"
        self.port = 0
        self.asked: list[tuple[str, int]] = []

    def at(self, address: str) -> Any:
        """The answer of the controller at an address."""

        def script(header: Mapping[str, Any], _: Any) -> bytes:
            self.asked.append((address, header["code"]))
            leads = address == self.leads
            if header["code"] == 1005:
                fields = {"isLeader": str(leads).lower(), "controllerLeaderAddress": f"{self.leads or ''}:{self.port}"}
                return reply(header, 0, fields=fields if self.leads else None)
            return reply(header, 0, fields={"nextBrokerId": "1"}) if leads else reply(header, 2007)

        return script

    async def ask(self, *functions: str, follows: bool) -> list[Outcome]:
        """The outcomes of a client at the first node."""
        async with scripted(self.at("127.0.0.1")) as one, scripted(self.at("127.0.0.2"), "127.0.0.2", one.port):
            self.port = one.port
            controllers = Controllers(nodes=self.nodes, port=self.port)
            client = ControllerClient(controllers=controllers, node=self.nodes[0], follows=follows)
            results = [await client.invoke(Invocation(f, ARGUMENTS.get(f), "b0")) for f in functions]
            await client.close()
            return results


def test_a_following_client_goes_to_the_leader() -> None:
    """A refusal names the leader; the next request goes there."""

    async def main() -> None:
        results = await Cluster().ask("next", "next", "apply", follows=True)
        assert results == [Fail("not-leader: n2 leads"), Ok({"code": 0, "next": 1}), Ok({"code": 0})]

    run(main())


def test_a_pinned_client_stays() -> None:
    """A pinned client is refused each time, and the refusal names the leader."""

    async def main() -> None:
        assert await Cluster().ask("next", "apply", follows=False) == [Fail("not-leader: n2 leads")] * 2

    run(main())


def test_a_split_client_reads_at_its_node() -> None:
    """Reads go to the client's own node; changes go to the leader, once it is known."""
    cluster = Cluster()

    async def main() -> None:
        async with scripted(cluster.at("127.0.0.1")) as one, scripted(cluster.at("127.0.0.2"), "127.0.0.2", one.port):
            cluster.port = one.port
            nodes = [Node(name="n1", address=HOST), Node(name="n2", address="127.0.0.2")]
            system = SimpleNamespace(nodes=nodes, remote=None)
            made = RocketMQController(cast("Any", system), ControllerOptions(pinned_reads=True), "broker-id")
            made.controllers = Controllers(nodes=nodes, port=one.port)
            client = made.client(0, nodes[0])
            refused = Fail("not-leader: n2 leads")
            asked = ("apply", "apply", "next", "next")
            results = [await client.invoke(Invocation(f, ARGUMENTS.get(f), "b0")) for f in asked]
            assert results == [refused, Ok({"code": 0}), refused, refused]
            assert client.via is None
            assert isinstance(made.client(0, nodes[0], pinned=True), ControllerClient)
            await client.close()

    run(main())


def test_where_nobody_leads() -> None:
    """If the controller knows no leader, or has no metadata, the refusal names none."""

    async def main() -> None:
        cluster = Cluster()
        cluster.leads = None
        assert await cluster.ask("next", "next", follows=True) == [Fail("no-leader")] * 2
        assert ("127.0.0.2", 1012) in cluster.asked, "it asks the next one"

    run(main())


def test_metadata_without_fields() -> None:
    """Early in its start, a controller on jraft answers without fields."""

    async def main() -> None:
        async with scripted(lambda header, _: reply(header, 0)) as node:
            connection = await Controllers(nodes=[], port=node.port).connect(Node(name="n1", address=HOST))
            answer = await metadata(connection)
            assert (answer.leads, answer.leader) == (False, None)
            await connection.close()

    run(main())


def test_what_is_lost() -> None:
    """Without a connection, the outcome is a fail; without an answer, it is info, and a fail for a read."""

    async def main() -> None:
        async with scripted(lambda _, __: None) as node:
            client = ControllerClient(
                controllers=Controllers(nodes=[Node(name="n1", address=HOST)], port=node.port),
                node=Node(name="n1", address=HOST),
                follows=False,
            )
            lost = [await client.invoke(Invocation(f, ARGUMENTS[f], "b0")) for f in ("apply", "next")]
        assert [type(outcome) for outcome in lost] == [Info, Fail]
        refused = await client.invoke(Invocation("apply", ARGUMENTS["apply"], "b0"))
        assert isinstance(refused, Fail)
        assert refused.error.startswith("not-connected")

    run(main())


def test_what_the_client_does_not_do() -> None:
    """An unknown function fails."""

    async def main() -> None:
        assert await Cluster().ask("read", follows=False) == [Fail("unsupported: read of None")]

    run(main())


def test_a_broker_comes_and_leaves() -> None:
    """A heartbeat uses a lasting connection to every controller; `leave` or another group closes them."""
    beats: list[tuple[str, int]] = []

    async def main() -> None:
        def at(host: str) -> Any:
            def answer(header: Mapping[str, Any], _: bytes) -> bytes:
                beats.append((host, header["code"]))
                return reply(header, 0)

            return answer

        async with scripted(at("127.0.0.1")) as one, scripted(at("127.0.0.2"), "127.0.0.2", one.port):
            nodes = [Node(name="n1", address=HOST), Node(name="n2", address="127.0.0.2")]
            client = ControllerClient(controllers=Controllers(nodes=nodes, port=one.port), node=nodes[0], follows=False)
            connections = client._heartbeats._connections
            assert await client.invoke(Invocation("heartbeat", ARGUMENTS["heartbeat"], "b0")) == Ok({"code": 0})
            before = dict(connections)
            assert set(before) == {("b0", 1, "n1"), ("b0", 1, "n2")}
            assert await client.invoke(Invocation("heartbeat", ARGUMENTS["heartbeat"], "b0")) == Ok({"code": 0})
            assert connections == before
            assert sorted(beats) == [("127.0.0.1", 904)] * 2 + [("127.0.0.2", 904)] * 2
            await client.invoke(Invocation("heartbeat", ARGUMENTS["heartbeat"], "b1"))
            assert {connection_key[0] for connection_key in connections} == {"b1"}
            assert await client.invoke(Invocation("leave", {"id": 1}, "b1")) == Ok({"code": 0})
            assert not connections
            assert all(connection.closed for connection in before.values())
            await client.close()
        refused = await client.invoke(Invocation("heartbeat", ARGUMENTS["heartbeat"], "b1"))
        assert isinstance(refused, Fail)

    run(main())


def test_what_becomes_of_a_heartbeat() -> None:
    """A heartbeat is ok if a controller accepted it, certainly not done if it was sent to none, and otherwise in doubt."""
    took, lost, unsent = said(0), NoAnswer("lost"), NotSent("refused")
    assert accepted({"n1": took, "n2": lost, "n3": unsent}) == {"code": 0}
    with pytest.raises(NotDone, match=r"^refused$") as none:
        accepted({"n1": unsent})
    assert (type(none.value), none.value.code) == (NotDone, "not-connected")
    in_doubt: dict[str, dict[str, Said]] = {"lost; refused": {"n1": lost, "n2": unsent}, "code 1": {"n1": said(1)}}
    for text, answers in in_doubt.items():
        with pytest.raises(InDoubt, match=rf"^{text}$") as open_:
            accepted(answers)
        assert open_.value.code == "no-answer"
