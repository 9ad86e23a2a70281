"""The requests to a controller, and its answers as values.

`REQUESTS` has a row for each function of a broker group: its code, its header fields, its body, and the reader of its answer.
The values are those of the workloads: maps with `code` and the other fields of the answer. A field that a controller omits is
missing in the map.

Source: RocketMQ 5.3.3, RequestCode, the headers below `protocol/header/controller`, and recorded answers.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from clusters.kit.answers import NoAnswer
from clusters.systems.rocketmq.numbers import integer, number, number_in
from clusters.systems.rocketmq.outcomes import SUCCESS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from clusters.systems.dledger.remoting import Answer, Connection
    from harness.op import Value

CLUSTER = "labrys"
NO_TIME = "0"  # the invocation time in every request, so that no answer depends on the time
MASTER_STILL_EXISTS = 2011
METADATA = 1005
MAX_TEXT = 1000

Fields = dict[str, str]
Values = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Metadata:
    """A controller's view of its group.

    Attributes:
        leads: Whether the controller is the leader.
        leader: The address of the leader, `host:port`; None if the controller knows none.
        details: All fields of the answer.
    """

    leads: bool
    leader: str | None
    details: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The request of a function, and the reader of its answer.

    Attributes:
        code: The request code.
        is_read: Whether the request is a read, which has no effect.
        fields: Returns the header's fields for a broker name and an argument.
        body: Returns the body for a broker name and an argument; None for no body.
        read: Returns the values in an answer of success, without the code, for a broker name.
        reads_also: Further codes whose answers have these values.
    """

    code: int
    fields: Callable[[str, Any], Fields]
    read: Callable[[str, Answer], Values]
    is_read: bool = False
    body: Callable[[str, Any], Value] = lambda _name, _argument: None
    reads_also: frozenset[int] = frozenset()

    async def ask(self, connection: Connection, name: str, argument: Value) -> Answer:
        """Sends the request for a broker group to a controller."""
        fields = self.fields(name, argument)
        return await connection.call(self.code, self.body(name, argument), extension=fields)

    def value(self, name: str, answer: Answer) -> Values:
        """Returns the values in an answer.

        Raises:
            NoAnswer: A value is missing or bad.
        """
        is_read = answer.status == SUCCESS or answer.status in self.reads_also
        return {"code": answer.status, **(self.read(name, answer) if is_read else {})}


async def metadata(connection: Connection) -> Metadata:
    """Requests a controller's view of its group. Any controller answers it; during its start the answer has no fields."""
    fields = (await connection.call(METADATA, None, extension={})).extension
    return Metadata(
        leads=fields.get("isLeader") == "true",
        leader=fields.get("controllerLeaderAddress") or None,
        details=fields,
    )


def _group(name: str, _: Any = None) -> Fields:
    return {"clusterName": CLUSTER, "brokerName": name}


def _nothing(_: str, __: Answer) -> Values:
    return {}


def _master(answer: Answer, *, epoch: bool = True) -> Values:
    values: Values = {}
    fields = answer.extension
    if epoch:
        values["master_epoch"] = number_in(fields, "masterEpoch")
    if "masterBrokerId" in fields:
        values["master"] = number_in(fields, "masterBrokerId")
    if "masterAddress" in fields:
        values["address"] = _text(fields["masterAddress"])
    return values


def _sync_set(answer: Answer) -> list[int]:
    return _ids(answer.body.get("syncStateSet"))


def _register(_: str, answer: Answer) -> Values:
    values: Values = {"sync_set": _sync_set(answer), "sync_epoch": integer(answer.body.get("syncStateSetEpoch"))}
    # Without a living master the header lacks the master, or has a meaningless epoch.
    return values | (_master(answer) if "masterBrokerId" in answer.extension else {})


def _elect(_: str, answer: Answer) -> Values:
    values: Values = {"sync_set": _sync_set(answer), "sync_epoch": number_in(answer.extension, "syncStateSetEpoch")}
    if answer.status == SUCCESS:
        group = answer.body.get("brokerMemberGroup")
        members = group.get("brokerAddrs") if isinstance(group, dict) else None
        if not isinstance(members, dict):
            raise NoAnswer(f"expected a brokerMemberGroup with brokerAddrs, got {str(group)[:100]}")
        values["members"] = sorted([number(key), _text(value)] for key, value in members.items())
    return values | _master(answer)


def _replica(_: str, answer: Answer) -> Values:
    values: Values = {"sync_set": _sync_set(answer), "sync_epoch": integer(answer.body.get("syncStateSetEpoch"))}
    return values | _master(answer)


def _state(name: str, answer: Answer) -> Values:
    table = answer.body.get("replicasInfoTable")
    if not isinstance(table, dict):
        raise NoAnswer(f"expected a replicasInfoTable, got {str(answer.body)[:100]}")
    entry = table.get(name)
    if entry is None:
        return {"known": False}
    if not isinstance(entry, dict):
        raise NoAnswer(f"expected the replicas of {name}, got {str(entry)[:100]}")
    values: Values = {
        "known": True,
        "master_epoch": integer(entry.get("masterEpoch")),
        "sync_epoch": integer(entry.get("syncStateSetEpoch")),
        "in_sync": _replicas(entry.get("inSyncReplicas")),
        "not_in_sync": _replicas(entry.get("notInSyncReplicas")),
    }
    if entry.get("masterBrokerId") is not None:
        values["master"] = integer(entry["masterBrokerId"])
    if entry.get("masterAddress") is not None:
        values["address"] = _text(entry["masterAddress"])
    return values


def _replicas(value: Value) -> list[Value]:
    if not isinstance(value, list) or not all(isinstance(replica, dict) for replica in value):
        raise NoAnswer(f"expected a list of replicas, got {str(value)[:100]}")
    replicas = [
        [integer(replica.get("brokerId")), _text(replica.get("brokerAddress")), replica.get("alive")]
        for replica in value
    ]
    if not all(isinstance(alive, bool) for *_, alive in replicas):
        raise NoAnswer(f"expected whether each replica is alive, got {str(value)[:100]}")
    return sorted(replicas)


def _ids(value: Value) -> list[int]:
    if not isinstance(value, list):
        raise NoAnswer(f"expected a set of broker ids, got {str(value)[:100]}")
    return sorted(map(integer, value))


def _text(value: Value) -> str:
    if not isinstance(value, str) or len(value) > MAX_TEXT:
        raise NoAnswer(f"expected an address, got {str(value)[:100]}")
    return value


REQUESTS: Mapping[str, Request] = MappingProxyType(
    {
        "next": Request(
            code=1012,
            is_read=True,
            fields=_group,
            read=lambda _, answer: {"next": number_in(answer.extension, "nextBrokerId")},
        ),
        "apply": Request(
            code=1013,
            fields=lambda name, it: {
                **_group(name),
                "appliedBrokerId": str(it["id"]),
                "registerCheckCode": it["check"],
            },
            read=_nothing,
        ),
        "register": Request(
            code=1003,
            fields=lambda name, it: {
                **_group(name),
                "brokerId": str(it["id"]),
                "brokerAddress": it["address"],
                "invokeTime": NO_TIME,
            },
            read=_register,
        ),
        "elect": Request(
            code=1002,
            fields=lambda name, it: {
                **_group(name),
                "brokerId": str(it["id"]),
                "designateElect": str(it["designate"]).lower(),
                "invokeTime": NO_TIME,
            },
            read=_elect,
            reads_also=frozenset({MASTER_STILL_EXISTS}),
        ),
        "alter": Request(
            code=1001,
            fields=lambda name, it: {
                "brokerName": name,
                "masterBrokerId": str(it["master"]),
                "masterEpoch": str(it["master_epoch"]),
                "invokeTime": NO_TIME,
            },
            body=lambda _, it: {"syncStateSet": it["sync_set"], "syncStateSetEpoch": it["sync_epoch"]},
            # The epoch in a refusal is 0, and has no meaning.
            read=lambda _, answer: {"sync_epoch": number_in(answer.extension, "newSyncStateSetEpoch")},
        ),
        "replica": Request(code=1004, is_read=True, fields=_group, read=_replica),
        "state": Request(code=1006, is_read=True, fields=lambda _, __: {}, body=lambda name, _: [name], read=_state),
        "clean": Request(
            code=1011,
            fields=lambda name, it: {
                **_group(name),
                "brokerControllerIdsToClean": ";".join(map(str, it["ids"])),
                "isCleanLivingBroker": str(it["living"]).lower(),
                "invokeTime": NO_TIME,
            },
            read=_nothing,
        ),
        "heartbeat": Request(
            code=904,
            fields=lambda name, it: {
                **_group(name),
                "brokerAddr": f"broker-{it['id']}:1",
                "brokerId": str(it["id"]),
                "epoch": str(it["epoch"]),
                "maxOffset": str(it["max_offset"]),
                "confirmOffset": str(it["max_offset"]),
                "heartbeatTimeoutMills": str(ALIVE_MS),
                "electionPriority": str(it["priority"]),
            },
            read=_nothing,
        ),
    }
)
ALIVE_MS = 24 * 3600 * 1000  # a broker is alive as long as its connection
