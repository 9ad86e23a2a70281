"""The status of a plain server of DLedger, and what the system concludes from it."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from clusters.systems.dledger.members import Members
from clusters.systems.dledger.routing import Group
from clusters.systems.dledger_log.options import DLedgerLogOptions
from clusters.systems.dledger_log.system import DLedgerLogSystem
from harness.cluster import Paper
from harness.errors import InputError
from harness.node import Node
from harness.service import NodeStatus, first_status
from tests.artifacts import unbuilt
from tests.unit.clusters.remoting_script import answer, scripted
from workloads.log import LogWorkload

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from harness.cluster import Cluster

NODES = (Node(name="n1", address="127.0.0.1"), Node(name="n2", address="127.0.0.1"))
METADATA, APPEND, TRANSFER = 50000, 50001, 51005


class Server:
    """Answers in the form of a plain server. Each request for the term gets the next given term; the last one repeats."""

    def __init__(self, *terms: int, leader: str | None = "n1", appends: Any = None) -> None:
        self.terms = list(terms)
        self.leader = leader
        self.appends = appends or {"code": 200, "index": 0}
        self.asked: list[Mapping[str, Any]] = []

    def __call__(self, header: Mapping[str, Any], body: Mapping[str, Any]) -> bytes:
        """Answers with its leader, a refusal with its term, or the result of an append."""
        self.asked.append(body)
        match header["code"]:
            case 50000:
                said = {"code": 200, "group": "labrys", "term": -1}  # the term in this answer has no meaning
                return answer(header["opaque"], said | ({"leaderId": self.leader} if self.leader else {}))
            case 51005:
                term = self.terms.pop(0) if len(self.terms) > 1 else self.terms[0]
                return answer(header["opaque"], {"code": 411, "term": term})
        assert header["code"] == APPEND
        return answer(header["opaque"], self.appends)


def asked(
    script: Callable[[Mapping[str, Any], Mapping[str, Any]], bytes | None], question: Callable[[DLedgerLogSystem], Any]
) -> Any:
    """The status for these answers of the nodes."""

    async def main() -> Any:
        async with scripted(script) as node, asyncio.timeout(10):
            cluster = cast("Cluster", SimpleNamespace(nodes=NODES))
            system = DLedgerLogSystem(cluster, DLedgerLogOptions(), "set")
            members = Members(NODES, port=node.port, system="DLedger")
            system.group = Group(name="labrys", nodes=NODES, port=node.port, members=members)
            return await question(system)

    return asyncio.run(main())


@pytest.mark.parametrize(
    ("node", "leader", "role"), [(0, "n1", "leader"), (1, "n1", "follower"), (0, None, "candidate")]
)
def test_the_role_follows_from_the_leader_that_a_node_names(node: int, leader: str | None, role: str) -> None:
    """A node that names itself is the leader; the term comes from a refusal, since METADATA has none."""
    server = Server(7, leader=leader)
    status = asked(server, lambda system: first_status(system, NODES[node], 1.0))
    assert status == NodeStatus(node=NODES[node].name, role=role, term=7, leader=leader)
    assert {body["remoteId"] for body in server.asked} == {NODES[node].name}


def test_term_and_leader_are_of_one_moment() -> None:
    """If the term changes between the requests, the system requests leader and term again."""
    status = asked(Server(3, 4, 4), lambda system: first_status(system, NODES[0], 1.0))
    assert (status.leader, status.term) == ("n1", 4)


def test_a_request_for_the_term_can_move_no_leadership() -> None:
    """The request for the term names no real node, neither as the old leader nor as the new one."""
    server = Server(7)
    asked(server, lambda system: first_status(system, NODES[0], 1.0))
    transfers = [body for body in server.asked if "transferId" in body]
    assert transfers
    assert all(body["transferId"] == body["transfereeId"] == "" for body in transfers)


@pytest.mark.parametrize("said", [{"code": 200, "term": 7}, {"code": 411}, {"code": 411, "term": "7"}, {"code": 407}])
def test_a_node_that_answers_otherwise_tells_no_status(said: dict[str, Any]) -> None:
    """Without such a refusal, the system reports no term."""

    def script(header: Mapping[str, Any], _body: Mapping[str, Any]) -> bytes:
        return answer(header["opaque"], said)

    assert asked(script, lambda system: first_status(system, NODES[0], 1.0)) is None


@pytest.mark.parametrize(
    ("appends", "serves"),
    [({"code": 200, "index": 5}, True), ({"code": 502, "index": 5}, False), ({"code": 404, "leaderId": "n2"}, False)],
)
def test_a_leader_serves_when_it_commits(appends: dict[str, Any], serves: bool) -> None:
    """A leader serves only if it commits a marker, since an isolated leader names itself for a while."""
    status = NodeStatus(node="n1", role="leader", term=7, leader="n1")
    assert asked(Server(7, appends=appends), lambda system: system.is_serving(status)) is serves


def test_nodes_are_plain_servers() -> None:
    """The arguments turn off the state machine, and have no snapshot threshold."""
    cluster = cast("Cluster", Paper(["n1", "n2", "n3"]))
    system = unbuilt(DLedgerLogSystem(cluster, DLedgerLogOptions(heartbeat_ms=333, vote_ms=444), "log"), "node")
    (daemon,) = system.daemons(cluster.nodes[0])
    line = " ".join(daemon.argv)
    assert "--state-machine none" in line
    assert "--heartbeat-ms 333 --vote-ms 444" in line
    assert "--snapshot-threshold" not in line


def test_reads_that_follow_the_log_are_refused() -> None:
    """A client asks for many offsets at once, so its reads may skip an entry, which `--follow` forbids."""
    with pytest.raises(InputError, match="leave out --follow"):
        DLedgerLogSystem.made(
            cast("Cluster", Paper(["n1"])), DLedgerLogOptions(), "log", LogWorkload.Options(follow=True)
        )
