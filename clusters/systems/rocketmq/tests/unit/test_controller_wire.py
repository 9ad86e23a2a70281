"""A controller that follows the specification, with real frames: the client returns the specified answers."""

from __future__ import annotations

import asyncio
import json
import random
from typing import TYPE_CHECKING, Any

import pytest

from clusters.kit.answers import NotSent
from clusters.systems.dledger.remoting import Answer
from clusters.systems.rocketmq.client import ControllerClient, Controllers
from clusters.systems.rocketmq.heartbeats import Heartbeats
from clusters.systems.rocketmq.tests.catches.controllers import request
from clusters.systems.rocketmq.workloads.group import Group, Live, respond
from harness.node import Node
from harness.op import Invocation, Ok
from tests.unit.clusters.remoting_script import frame, scripted

if TYPE_CHECKING:
    from collections.abc import Mapping

NODE = Node(name="n1", address="127.0.0.1")
HEADER = {
    "next": "nextBrokerId",
    "master": "masterBrokerId",
    "address": "masterAddress",
    "master_epoch": "masterEpoch",
}


class WireController:
    """Serves the requests of `clusters.systems.rocketmq.requests` in the format of a real controller.

    Attributes:
        groups: The state of each broker group.
    """

    def __init__(self) -> None:
        self.groups: dict[str, Group] = {}

    def __call__(self, header: Mapping[str, Any], body: Any) -> bytes:
        """Answers one request."""
        fields = header["extFields"]
        f, argument = self._asked(header["code"], fields, body)
        name = body[0] if f == "state" else fields["brokerName"]
        self.groups[name], said = respond(self.groups.get(name, Group()), f, argument)
        known = {HEADER[key]: str(value) for key, value in said.items() if key in HEADER}
        if f == "alter":
            known["newSyncStateSetEpoch"] = str(said.get("sync_epoch", 0))
        if f == "elect" and "sync_epoch" in said:
            known["syncStateSetEpoch"] = str(said["sync_epoch"])
        top = {"code": said["code"], "opaque": header["opaque"], "flag": 1, "extFields": known}
        return frame(json.dumps(top).encode(), self._body(f, name, said).encode())

    @staticmethod
    def _asked(code: int, it: Mapping[str, str], body: Any) -> tuple[str, Any]:  # noqa: PLR0911 - one for each request
        match code:
            case 1012:
                return "next", None
            case 1013:
                return "apply", {"id": int(it["appliedBrokerId"]), "check": it["registerCheckCode"]}
            case 1003:
                return "register", {"id": int(it["brokerId"]), "address": it["brokerAddress"]}
            case 1002:
                return "elect", {"id": int(it["brokerId"]), "designate": it["designateElect"] == "true"}
            case 1001:
                epochs = {"master_epoch": int(it["masterEpoch"]), "sync_epoch": body["syncStateSetEpoch"]}
                return "alter", {"master": int(it["masterBrokerId"]), "sync_set": body["syncStateSet"], **epochs}
            case 1011:
                ids = [int(word) for word in it["brokerControllerIdsToClean"].split(";") if word]
                return "clean", {"ids": ids, "living": it["isCleanLivingBroker"] == "true"}
            case 904:
                figures = {"max_offset": int(it["maxOffset"]), "priority": int(it["electionPriority"])}
                return "heartbeat", {"id": int(it["brokerId"]), "epoch": int(it["epoch"]), **figures}
        return {1004: "replica", 1006: "state"}[code], None

    @staticmethod
    def _body(f: str, name: str, said: Mapping[str, Any]) -> str:
        if f == "state":
            if not said["known"]:
                return '{"replicasInfoTable":{}}'
            replicas = {
                theirs: [
                    {"brokerName": name, "brokerId": i, "brokerAddress": a, "alive": alive}
                    for i, a, alive in said[ours]
                ]
                for ours, theirs in (("in_sync", "inSyncReplicas"), ("not_in_sync", "notInSyncReplicas"))
            }
            table = {"masterEpoch": said["master_epoch"], "syncStateSetEpoch": said["sync_epoch"], **replicas}
            table |= {"masterBrokerId": said.get("master"), "masterAddress": said.get("address")}
            return json.dumps({"replicasInfoTable": {name: table}})
        if "sync_set" not in said:
            return ""
        sets = f'"syncStateSet":{json.dumps(said["sync_set"])},"syncStateSetEpoch":{said["sync_epoch"]}'
        if "members" not in said:
            return f"{{{sets}}}"
        members = ",".join(f"{broker}:{json.dumps(address)}" for broker, address in said["members"])
        return f'{{"brokerMemberGroup":{{"brokerAddrs":{{{members}}},"brokerName":"{name}"}},{sets}}}'


@pytest.mark.parametrize("seed", range(3))
def test_the_client_reads_what_the_specification_says(seed: int) -> None:
    """For four hundred requests of all kinds, on groups with and without masters."""
    draws = random.Random(seed)

    async def main() -> None:
        async with scripted(WireController()) as node, asyncio.timeout(30):
            controllers = Controllers(nodes=[NODE], port=node.port)
            client = ControllerClient(controllers=controllers, node=NODE, follows=False)
            heartbeats = Heartbeats(controllers)
            for number in range(10):
                name, group = f"b{number}", Group()
                for _ in range(40):
                    f, argument = request(draws, group)
                    if draws.random() < 0.05:
                        f, argument = "clean", {"ids": draws.sample([1, 2, 3], draws.randint(0, 2)), "living": False}
                    group, expected = respond(group, f, argument)
                    if f == "heartbeat":
                        answer = (await heartbeats.beat(name, argument, 5))["n1"]
                        assert isinstance(answer, Answer), answer
                        assert answer.status == 0
                    else:
                        assert await client.invoke(Invocation(f, argument, name)) == Ok(expected), (f, argument)
                await heartbeats.leave(name)
            await client.close()

    asyncio.run(main())


def test_heartbeats_have_connections_of_their_own() -> None:
    """Each broker has one connection until it leaves; an unreachable controller is an error."""

    async def main() -> None:
        controller = WireController()
        async with scripted(controller) as node, asyncio.timeout(30):
            controllers = Controllers(nodes=[NODE], port=node.port)
            heartbeats = Heartbeats(controllers)
            beat = {"epoch": 0, "max_offset": 3, "priority": 1}
            for broker in (1, 2, 1, 2, 1):
                await heartbeats.beat("b0", {"id": broker, **beat}, 5)
            assert node.connections == 2
            assert controller.groups["b0"].live == (Live(1, 0, 3, 1), Live(2, 0, 3, 1))
            await heartbeats.leave("b0")
            await heartbeats.beat("b0", {"id": 1, **beat}, 5)
            assert node.connections == 3
            await heartbeats.close()
        # No process listens there any more.
        assert isinstance((await heartbeats.beat("b0", {"id": 1, **beat}, 5))["n1"], NotSent)

    asyncio.run(main())
