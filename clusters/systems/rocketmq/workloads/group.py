"""The executable specification of RocketMQ's controller: how it answers the requests about one broker group, one at a time.

A broker group is a set of brokers with one name. The controller gives each broker an id, elects one of them as master, and
keeps the set of brokers that are in sync with the master. `respond` takes the state of a group and a request, and returns the
next state and the whole answer. It is the same for both consensus libraries.

A refusal is an answer like any other: it depends on the state. The state also has the living brokers, since several answers
depend on them. Heartbeats change this.

Source: RocketMQ 5.3.3, ReplicasInfoManager, DefaultElectPolicy; and the answers of running controllers to random requests.
`clusters/systems/rocketmq/controllers.md` has the rules as a table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from checker.errors import ModelError
from checker.words import value_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from harness.op import Value

Answer = dict[str, Any]

SUCCESS: Final = 0
FENCED_MASTER_EPOCH: Final = 2000
FENCED_SYNC_EPOCH: Final = 2001
INVALID_MASTER: Final = 2002
INVALID_REPLICAS: Final = 2003
MASTER_NOT_AVAILABLE: Final = 2004
NOT_ALIVE: Final = 2006
NO_METADATA: Final = 2008
INVALID_CLEAN: Final = 2009
NOT_REGISTERED: Final = 2010
MASTER_STILL_EXISTS: Final = 2011
ELECTION_FAILED: Final = 2012
ALTER_FAILED: Final = 2013
INVALID_ID: Final = 2014

FIRST_ID: Final = 1
ANY_ID: Final = -1  # in an election: the controller chooses the master


class Replica(NamedTuple):
    """A broker with an id.

    Attributes:
        id: The id.
        address: Its address: the part of `check` before the first semicolon, until it registers another one.
        check: Its check code, which proves that it owns the id: `address;timestamp`.
    """

    id: int
    address: str
    check: str


class Live(NamedTuple):
    """A living broker, with the values of its heartbeats, which determine elections.

    Attributes:
        id: The id of the broker.
        epoch: The latest master epoch in its heartbeats.
        max_offset: The largest log offset in its heartbeats of that epoch.
        priority: Its priority; smaller ones are preferred.
    """

    id: int
    epoch: int = 0
    max_offset: int = 0
    priority: int = 0


class Sync(NamedTuple):
    """The master of a group, and its sync set.

    Attributes:
        master: The id of the master; None without one. There need not be a replica with this id.
        master_epoch: The number of changes of the master.
        members: The ids in the sync set, ascending.
        epoch: The number of changes of the sync set.
    """

    master: int | None = None
    master_epoch: int = 0
    members: tuple[int, ...] = ()
    epoch: int = 0


class Group(NamedTuple):
    """The state of a broker group.

    The controller has the replicas and the sync set in two tables. A clean request can empty one of them alone.

    Attributes:
        replicas: The brokers with an id, ascending; None if the controller does not know the group.
        next_id: The next id that it proposes: one more than the number of given ids, not one more than the largest.
        sync: Master and sync set; None if the controller has none for the group.
        live: The living brokers, ascending.
    """

    replicas: tuple[Replica, ...] | None = None
    next_id: int = FIRST_ID
    sync: Sync | None = None
    live: tuple[Live, ...] = ()

    def address(self, broker: int | None) -> str | None:
        """Returns the address of a broker; None if no replica has this id."""
        return next((replica.address for replica in self.replicas or () if replica.id == broker), None)

    def has(self, broker: int) -> bool:
        """Returns whether a replica has this id."""
        return any(replica.id == broker for replica in self.replicas or ())

    def is_alive(self, broker: int | None) -> bool:
        """Returns whether a broker is alive."""
        return any(live.id == broker for live in self.live)

    @property
    def known(self) -> tuple[tuple[Replica, ...], Sync] | None:
        """Returns replicas and sync set if the controller has both, else None. Most requests need both."""
        return None if self.replicas is None or self.sync is None else (self.replicas, self.sync)


def respond(group: Group, f: str, argument: Value) -> tuple[Group, Answer]:
    """Returns the state after a request, and the answer.

    Args:
        group: The state before.
        f: One of `FUNCTIONS`.
        argument: The argument, with the types in `FUNCTIONS`.

    Raises:
        ModelError: There is no such request.
    """
    rule = _RULES.get(f)
    if rule is None:
        raise ModelError(f"expected one of {', '.join(FUNCTIONS)}, found {value_text(f)}")
    return rule(group, argument)


def _next(group: Group, _: Value) -> tuple[Group, Answer]:
    return group, {"code": SUCCESS, "next": FIRST_ID if group.replicas is None else group.next_id}


def _apply(group: Group, argument: Mapping[str, Any]) -> tuple[Group, Answer]:
    broker, check = argument["id"], argument["check"]
    own = next((candidate.check == check for candidate in group.replicas or () if candidate.id == broker), None)
    if own is False or (group.replicas is None and broker != FIRST_ID):
        return group, {"code": INVALID_ID}
    replica = Replica(broker, check.partition(";")[0], check)
    if group.known is None:
        # If the controller has replicas but no sync set, it drops the replicas and starts again.
        return group._replace(replicas=(replica,), next_id=FIRST_ID + 1, sync=Sync()), {"code": SUCCESS}
    if own is None:
        replicas = tuple(sorted((*(group.replicas or ()), replica)))
        group = group._replace(replicas=replicas, next_id=group.next_id + 1)
    return group, {"code": SUCCESS}


def _register(group: Group, argument: Mapping[str, Any]) -> tuple[Group, Answer]:
    broker, address = argument["id"], argument["address"]
    if group.known is None or not group.has(broker):
        return group, {"code": NOT_REGISTERED}
    replicas, sync = group.known
    answer: Answer = {"code": SUCCESS, "sync_set": list(sync.members), "sync_epoch": sync.epoch}
    if group.is_alive(sync.master):
        answer |= _master(group, sync)
    changed = tuple(replica._replace(address=address) if replica.id == broker else replica for replica in replicas)
    return group._replace(replicas=changed), answer


def _elect(group: Group, argument: Mapping[str, Any]) -> tuple[Group, Answer]:
    candidate, designated = argument["id"], argument["designate"]
    if group.known is None:
        return group, {"code": NOT_REGISTERED}
    replicas, sync = group.known
    # The first candidate becomes the first master, even if no replica has its id.
    first = sync.master_epoch == 0 and candidate != ANY_ID
    chosen = candidate if first else _best(group, sync, candidate if designated else None)
    if chosen is None:
        if candidate != ANY_ID:
            return group, {"code": ELECTION_FAILED}
        # No broker can be master, so the current one is deposed.
        after = sync._replace(master=None, master_epoch=sync.master_epoch + 1)
        return group._replace(sync=after), {"code": MASTER_NOT_AVAILABLE}
    if chosen == sync.master:
        unchanged = {"code": MASTER_STILL_EXISTS, "sync_set": list(sync.members), "sync_epoch": sync.epoch}
        return group, unchanged | _master(group, sync)
    after = Sync(chosen, sync.master_epoch + 1, (chosen,), sync.epoch + 1)
    answer = {
        "code": SUCCESS,
        "sync_set": [chosen],
        "sync_epoch": after.epoch,
        "members": [[replica.id, replica.address] for replica in replicas],
    }
    return group._replace(sync=after), answer | _master(group, after)


def _best(group: Group, sync: Sync, only: int | None) -> int | None:
    """Returns the broker that becomes or stays master; None if no broker can.

    Args:
        group: The state.
        sync: Its sync set.
        only: The only possible broker; None: all are possible.
    """
    able = [live for live in group.live if live.id in sync.members]
    ids = [live.id for live in able]
    if sync.master in ids and only in {None, sync.master}:
        return sync.master
    if only is not None:
        return only if only in ids else None
    return min(able, key=lambda live: (-live.epoch, -live.max_offset, live.priority, live.id)).id if able else None


def _alter(group: Group, argument: Mapping[str, Any]) -> tuple[Group, Answer]:
    if group.known is None:
        return group, {"code": ALTER_FAILED}
    _, sync = group.known
    members = tuple(sorted(set(argument["sync_set"])))
    code = SUCCESS
    if members == sync.members:
        code = ALTER_FAILED
    elif sync.master is None or argument["master"] != sync.master:
        code = INVALID_MASTER
    elif argument["master_epoch"] != sync.master_epoch:
        code = FENCED_MASTER_EPOCH
    elif argument["sync_epoch"] != sync.epoch:
        code = FENCED_SYNC_EPOCH
    else:
        unfit = next((member for member in members if not group.has(member) or not group.is_alive(member)), None)
        if unfit is not None:  # the first one determines the code
            code = NOT_ALIVE if group.has(unfit) else INVALID_REPLICAS
        elif sync.master not in members:
            code = ALTER_FAILED
    if code != SUCCESS:
        return group, {"code": code}
    after = sync._replace(members=members, epoch=sync.epoch + 1)
    return group._replace(sync=after), {"code": SUCCESS, "sync_epoch": after.epoch}


def _replica(group: Group, _: Value) -> tuple[Group, Answer]:
    if group.known is None:
        return group, {"code": NO_METADATA}
    _, sync = group.known
    answer = {"code": SUCCESS, "sync_set": list(sync.members), "sync_epoch": sync.epoch}
    return group, answer | _master(group, sync)


def _state(group: Group, _: Value) -> tuple[Group, Answer]:
    if group.known is None:
        return group, {"code": SUCCESS, "known": False}
    replicas, sync = group.known
    rows = [
        (replica.id in sync.members, [replica.id, replica.address, group.is_alive(replica.id)]) for replica in replicas
    ]
    answer = {
        "code": SUCCESS,
        "known": True,
        "sync_epoch": sync.epoch,
        "in_sync": [replica for is_in, replica in rows if is_in],
        "not_in_sync": [replica for is_in, replica in rows if not is_in],
    }
    return group, answer | _master(group, sync)


def _clean(group: Group, argument: Mapping[str, Any]) -> tuple[Group, Answer]:
    ids = () if argument["living"] else tuple(argument["ids"])
    sync = group.sync
    if not argument["living"]:
        has_master = sync is not None and sync.master is not None
        if (not ids and has_master) or any(map(group.is_alive, ids)):
            return group, {"code": INVALID_CLEAN}
    if group.known is None:
        return group, {"code": INVALID_CLEAN}
    if not ids:
        return group._replace(replicas=None, next_id=FIRST_ID, sync=None), {"code": SUCCESS}
    replicas, sync = group.known
    left = tuple(replica for replica in replicas if replica.id not in ids)
    members = tuple(member for member in sync.members if member not in ids)
    after = group._replace(
        replicas=left or None,
        next_id=group.next_id if left else FIRST_ID,
        sync=sync._replace(members=members) if members else None,  # a removed master stays the master
    )
    return after, {"code": SUCCESS}


def _heartbeat(group: Group, argument: Mapping[str, Any]) -> tuple[Group, Answer]:
    now = Live(argument["id"], argument["epoch"], argument["max_offset"], argument["priority"])
    before = next((live for live in group.live if live.id == now.id), None)
    if before is not None and (before.epoch, before.max_offset) > (now.epoch, now.max_offset):
        now = before._replace(priority=now.priority)  # epoch and offset never decrease
    others = (live for live in group.live if live.id != now.id)
    return group._replace(live=tuple(sorted((*others, now)))), {"code": SUCCESS}


def _leave(group: Group, argument: Mapping[str, Any]) -> tuple[Group, Answer]:
    return group._replace(live=tuple(live for live in group.live if live.id != argument["id"])), {"code": SUCCESS}


def _master(group: Group, sync: Sync) -> Answer:
    """Returns an answer's fields about the master: its id only if there is one, its address only if a replica has the id."""
    answer: Answer = {"master_epoch": sync.master_epoch}
    if sync.master is not None:
        answer["master"] = sync.master
        address = group.address(sync.master)
        if address is not None:
            answer["address"] = address
    return answer


_RULES: Final[Mapping[str, Callable[[Group, Any], tuple[Group, Answer]]]] = {
    "next": _next,
    "apply": _apply,
    "register": _register,
    "elect": _elect,
    "alter": _alter,
    "replica": _replica,
    "state": _state,
    "clean": _clean,
    "heartbeat": _heartbeat,
    "leave": _leave,
}
# The types of each request's argument; an empty map stands for null.
FUNCTIONS: Final[Mapping[str, Mapping[str, type]]] = {
    "next": {},
    "apply": {"id": int, "check": str},
    "register": {"id": int, "address": str},
    "elect": {"id": int, "designate": bool},
    "alter": {"master": int, "master_epoch": int, "sync_set": list, "sync_epoch": int},
    "replica": {},
    "state": {},
    "clean": {"ids": list, "living": bool},
    "heartbeat": {"id": int, "epoch": int, "max_offset": int, "priority": int},
    "leave": {"id": int},
}
READS: Final = frozenset({"next", "replica", "state"})
