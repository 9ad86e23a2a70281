"""RocketMQ's brokers with a commit log on DLedger: configuration, status and readiness, against scripted brokers."""

from __future__ import annotations

import asyncio
import contextlib
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import pytest

from clusters.kit.answers import InDoubt, NoAnswer, NotDone
from clusters.systems.rocketmq import broker_requests, brokers, dledger_brokers
from clusters.systems.rocketmq.broker_options import Flush, Mode, RocketMQOptions
from clusters.systems.rocketmq.broker_outcomes import REFUSED_BY_DLEDGER, refusal
from clusters.systems.rocketmq.brokers import connect
from clusters.systems.rocketmq.dledger_brokers import DLedgerBrokers
from clusters.systems.rocketmq.options import Consensus
from clusters.systems.rocketmq.tests.unit.test_rocketmq import made
from clusters.systems.rocketmq.tests.unit.test_rocketmq_records import record
from harness.errors import InputError
from harness.node import Node
from harness.replicas import Dumps
from harness.service import NodeStatus
from harness.states import replicas_equal
from harness.verdict import Verdict
from tests.unit.clusters.remoting_script import frame, scripted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness.service import ReplicaState

NODES = [Node(name=f"n{number}", address=f"127.0.0.{number}") for number in (4, 5, 6)]
BODIES = (b"one", b"two")


@dataclass
class Broker:
    """A broker with its DLedger server.

    Attributes:
        leader: The id of the leader that it names; None for none.
        terms: Its term, for each answer in turn; the last one stays.
        id: Its id in the configuration; 0 is a master.
        bodies: The bodies of its messages.
        grows: The bytes by which its log grows with each answer about its end.
        table: The table of its answer to 28, instead of the end of the log.
    """

    leader: str | None = "n0"
    terms: list[int] = field(default_factory=lambda: [3])
    id: int = 2
    bodies: Sequence[bytes] = BODIES
    grows: int = 0
    table: Any = None
    grown: int = 0

    def answer(self, header: Mapping[str, Any], _: Any) -> bytes:
        """Answers a request to either port."""
        match header["code"]:
            case 50000:
                return _framed(header, 200, {"code": 200, "leaderId": self.leader})
            case 51005:
                term = self.terms.pop(0) if len(self.terms) > 1 else self.terms[0]
                return _framed(header, 200, {"code": 411, "term": term})
            case 26:
                return _framed(header, 0, f"brokerName=broker\nbrokerId={self.id}\nbrokerRole=SLAVE\n".encode())
            case 28:
                self.grown += self.grows
                end = sum(map(len, self._records())) + self.grown
                return _framed(header, 0, {"table": self.table or {"commitLogMaxOffset": str(end)}})
            case 11:
                first = int(header["extFields"]["queueOffset"])
                data = b"".join(self._records()[first:])
                return _framed(header, 0 if data else 19, data, {"maxOffset": str(len(self.bodies))})
        raise AssertionError(f"request {header['code']}")

    def _records(self) -> list[bytes]:
        records: list[bytes] = []
        for offset, body in enumerate(self.bodies):
            records.append(record(body, offset=offset, place=sum(map(len, records))))
        return records


def _framed(header: Mapping[str, Any], code: int, body: Any, fields: Mapping[str, str] | None = None) -> bytes:
    head = {"code": code, "opaque": header["opaque"], "flag": 1, "extFields": fields or {}, "remark": ""}
    return frame(json.dumps(head).encode(), body if isinstance(body, bytes) else json.dumps(body).encode())


@contextlib.asynccontextmanager
async def running(monkeypatch: pytest.MonkeyPatch, group: Sequence[Broker]) -> Any:
    """Yields the service of some brokers, whose two ports are one."""
    async with contextlib.AsyncExitStack() as stack:
        port = 0
        for node, broker in zip(NODES, group, strict=False):
            port = (await stack.enter_async_context(scripted(broker.answer, node.address, port))).port
        monkeypatch.setattr(brokers, "PORT", port)
        monkeypatch.setattr(dledger_brokers, "DLEDGER_PORT", port)
        yield DLedgerBrokers(made(mode=Mode.DLEDGER_COMMITLOG), NODES)


def statuses(monkeypatch: pytest.MonkeyPatch, *group: Broker) -> list[NodeStatus]:
    """Returns the status of each broker that answers."""

    async def main() -> list[NodeStatus]:
        async with running(monkeypatch, group) as service:
            return [status for node in NODES for status in await service.statuses(node, 2.0)]

    return asyncio.run(main())


def test_the_services_and_the_configuration() -> None:
    """There are no controllers. The ids are a letter and a number, as a broker needs them, whatever the names are."""
    system = made(5, mode=Mode.DLEDGER_COMMITLOG)
    by_role = {service.role: [node.name for node in service.nodes] for service in system.services()}
    assert by_role == {"namesrv": ["n1", "n2"], "broker": ["n3", "n4", "n5"]}
    [daemon] = system.daemons(system.cluster.nodes[3], "broker")
    [config] = daemon.config_files.values()
    lines = dict(line.split("=", 1) for line in config.splitlines())
    assert lines["enableDLegerCommitLog"] == "true"
    assert lines["dLegerPeers"] == "n0-192.0.2.3:40911;n1-192.0.2.4:40911;n2-192.0.2.5:40911"
    assert lines["dLegerSelfId"] == "n1"
    assert not {"enableControllerMode", "controllerAddr", "minInSyncReplicas"} & set(lines)
    assert 40911 in daemon.ports


@pytest.mark.parametrize(
    ("options", "flag"),
    [
        ({"consensus": Consensus.JRAFT}, "--consensus"),
        ({"flush": Flush.SYNC}, "--flush"),
        ({"min_in_sync_replicas": 1}, "--min-in-sync-replicas"),
        ({"transient_store_pool": True}, "--transient-store-pool"),
    ],
)
def test_options_without_effect_are_refused(options: Any, flag: str) -> None:
    """The error names the option and the mode that has it."""
    with pytest.raises(InputError, match=f"^{flag} is for --mode controller; "):
        RocketMQOptions(mode=Mode.DLEDGER_COMMITLOG, **options)


def test_errors_behind_an_append_leave_the_send_open() -> None:
    """DLedger can have written the message before `[PC_SYNCHRONIZED]` and 14. A slave refuses before."""
    busy = "[PC_SYNCHRONIZED]broker busy, start flow control for a while"
    assert type(refusal(2, busy)) is NotDone
    for code, remark in [(2, busy), (14, "service not available now. It may be"), (1, "in-sync replicas not enough")]:
        assert type(refusal(code, remark, REFUSED_BY_DLEDGER)) is InDoubt
    assert type(refusal(2, "[REJECTREQUEST]system busy", REFUSED_BY_DLEDGER)) is NotDone


def test_the_leader_of_the_group_leads(monkeypatch: pytest.MonkeyPatch) -> None:
    """The ids of the group are names of nodes, and the details say which broker acts as the master."""
    seen = statuses(monkeypatch, Broker(id=0), Broker(), Broker(leader=None))
    assert [(status.role, status.leader, status.term) for status in seen] == [
        ("leader", "n4", 3),
        ("follower", "n4", 3),
        ("candidate", None, 3),
    ]
    assert [(status.details or {})["master"] for status in seen] == [True, False, False]
    assert seen[0].applied_index == sum(len(record(body)) for body in BODIES)


def test_a_leader_whose_term_changes_does_not_lead(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its term and its role may be of two moments."""
    [status] = statuses(monkeypatch, Broker(terms=[3, 4]))
    assert (status.role, status.term) == ("candidate", 4)


@pytest.mark.parametrize(
    ("masters", "missing"),
    [
        ((True, False, False), {}),
        ((False, False, False), {"n4": "leads, but is not the master yet"}),
        ((True, True, False), {"n5": "is a master that does not lead"}),
        ((True, None, False), {"n5": "has a broker that does not answer"}),
    ],
)
def test_ready(masters: Sequence[bool | None], missing: dict[str, str]) -> None:
    """Brokers are ready if all name one leader, and this one alone acts as the master."""
    said = {
        node.name: NodeStatus(
            node=node.name, role="follower" if index else "leader", term=1, leader="n4", details={"master": acts}
        )
        for index, (node, acts) in enumerate(zip(NODES, masters, strict=True))
    }
    service = DLedgerBrokers(made(mode=Mode.DLEDGER_COMMITLOG), NODES)
    assert asyncio.run(service.lacking(said)) == missing
    gone = asyncio.run(service.lacking({**said, "n6": None}))
    assert gone == {**missing, "n6": "does not answer"}


def dumped(monkeypatch: pytest.MonkeyPatch, *group: Broker) -> list[ReplicaState | None]:
    """Dumps each broker once."""

    async def main() -> list[ReplicaState | None]:
        async with running(monkeypatch, group) as service:
            return [await service.replica(node, 5.0) for node in NODES[: len(group)]]

    return asyncio.run(main())


def test_brokers_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another message at the same place is found, and a log that grows is not compared."""
    verdicts = []
    for other in (BODIES, (b"one", b"TWO")):
        dumps = Dumps()
        for state in dumped(monkeypatch, Broker(), Broker(), Broker(bodies=other)):
            dumps.add(cast("ReplicaState", state))
        verdicts.append(replicas_equal(dumps.compared([node.name for node in NODES], seconds=1.0)).verdict)
    assert verdicts == [Verdict.VALID, Verdict.INVALID]
    assert dumped(monkeypatch, Broker(grows=7)) == [None]


@pytest.mark.parametrize("table", [["1"], {"commitLogMaxOffset": 7}, {"commitLogMaxOffset": "x"}, {"other": "1"}])
def test_an_end_that_is_none_is_refused(monkeypatch: pytest.MonkeyPatch, table: Any) -> None:
    """Brokers write the table, so it is hostile input."""

    async def main() -> int:
        async with running(monkeypatch, [Broker(table=table)]):
            return await broker_requests.commit_log_end(await connect(NODES[0], 2.0))

    with pytest.raises(NoAnswer):
        asyncio.run(main())
