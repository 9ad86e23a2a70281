"""What RocketMQ's controller does for one broker group, one request at a time: the executable specification.

A broker group is a set of brokers with one name. The controller gives each broker an id, elects one of them as master, and
keeps the set of brokers that are in sync with the master. `respond` takes the state of a group and a request, and returns the
next state and the whole answer. It is the same for both consensus libraries.

A refusal is an answer like any other: it depends on the state. Whether a broker is alive is part of the state too, since
several answers depend on it; heartbeats change it.

Source: RocketMQ 5.3.3, ReplicasInfoManager, DefaultElectPolicy; and the answers of running controllers, compared at random.
`docs/rocketmq-controller.md` has the rules as a table.
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
ANY_ID: Final = -1  # in an election: whoever the controller thinks best


class Replica(NamedTuple):
    """A broker that has an id.

    Attributes:
        id: The id.
        address: Where it is: the part of `check` before the first semicolon, until it registers with another one.
        check: By what it proves that the id is its own: `address;timestamp`.
    """

    id: int
    address: str
    check: str


class Live(NamedTuple):
    """A broker that is alive, with what its heartbeats said; elections choose by it.

    Attributes:
        id: The broker.
        epoch: The latest master epoch that it said.
        max_offset: How far its log goes, the most that it said in that epoch.
        priority: A smaller one is preferred.
    """

    id: int
    epoch: int = 0
    max_offset: int = 0
    priority: int = 0


class Sync(NamedTuple):
    """Who leads a group, and who is in sync with it.

    Attributes:
        master: The id of the master; None without one. It need not be the id of any replica.
        master_epoch: How often that changed.
        members: The ids of the sync set, ascending.
        epoch: How often the sync set changed.
    """

    master: int | None = None
    master_epoch: int = 0
    members: tuple[int, ...] = ()
    epoch: int = 0


class Group(NamedTuple):
    """The state of a broker group.

    The controller holds replicas and the sync set in two tables, and a clean-up may empty one of them alone.

    Attributes:
        replicas: The brokers with an id, ascending; None where the controller does not know the group.
        next_id: The id that it proposes next: one more than the ids that it gave out, not one more than the greatest.
        sync: Master and sync set; None where the controller has none of the group.
        live: The brokers that are alive, ascending.
    """

    replicas: tuple[Replica, ...] | None = None
    next_id: int = FIRST_ID
    sync: Sync | None = None
    live: tuple[Live, ...] = ()

    def address(self, broker: int | None) -> str | None:
        """Returns the address of a broker; None if no replica has this id."""
        return next((each.address for each in self.replicas or () if each.id == broker), None)

    def has(self, broker: int) -> bool:
        """Says whether a replica has this id."""
        return any(each.id == broker for each in self.replicas or ())

    def is_alive(self, broker: int | None) -> bool:
        """Says whether a broker is alive."""
        return any(each.id == broker for each in self.live)

    @property
    def known(self) -> tuple[tuple[Replica, ...], Sync] | None:
        """Returns replicas and sync set, where the controller has both; only then it knows the group, for most requests."""
        return None if self.replicas is None or self.sync is None else (self.replicas, self.sync)


def respond(group: Group, f: str, argument: Value) -> tuple[Group, Answer]:
    """Returns the state after a request, and the answer.

    Args:
        group: The state before.
        f: One of `FUNCTIONS`.
        argument: As `FUNCTIONS` says.

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
    own = next((each.check == check for each in group.replicas or () if each.id == broker), None)
    if own is False or (group.replicas is None and broker != FIRST_ID):
        return group, {"code": INVALID_ID}
    replica = Replica(broker, check.partition(";")[0], check)
    if group.known is None:
        # Also where the controller has replicas and no sync set: it begins anew, and forgets them.
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
    changed = tuple(each._replace(address=address) if each.id == broker else each for each in replicas)
    return group._replace(replicas=changed), answer


def _elect(group: Group, argument: Mapping[str, Any]) -> tuple[Group, Answer]:
    asked, designated = argument["id"], argument["designate"]
    if group.known is None:
        return group, {"code": NOT_REGISTERED}
    replicas, sync = group.known
    # The first master is whoever asks; nobody looks whether it exists.
    first = sync.master_epoch == 0 and asked != ANY_ID
    chosen = asked if first else _best(group, sync, asked if designated else None)
    if chosen is None:
        if asked != ANY_ID:
            return group, {"code": ELECTION_FAILED}
        # Nobody can be master, which deposes the one that there is.
        after = sync._replace(master=None, master_epoch=sync.master_epoch + 1)
        return group._replace(sync=after), {"code": MASTER_NOT_AVAILABLE}
    if chosen == sync.master:
        still = {"code": MASTER_STILL_EXISTS, "sync_set": list(sync.members), "sync_epoch": sync.epoch}
        return group, still | _master(group, sync)
    after = Sync(chosen, sync.master_epoch + 1, (chosen,), sync.epoch + 1)
    answer = {
        "code": SUCCESS,
        "sync_set": [chosen],
        "sync_epoch": after.epoch,
        "members": [[each.id, each.address] for each in replicas],
    }
    return group._replace(sync=after), answer | _master(group, after)


def _best(group: Group, sync: Sync, asked: int | None) -> int | None:
    """Returns who becomes master, or stays it; None if nobody can.

    Args:
        group: The state.
        sync: Its sync set.
        asked: The only one that may become it; None: whoever is best.
    """
    able = [each for each in group.live if each.id in sync.members]
    ids = [each.id for each in able]
    if sync.master in ids and asked in {None, sync.master}:
        return sync.master
    if asked is not None:
        return asked if asked in ids else None
    return min(able, key=lambda each: (-each.epoch, -each.max_offset, each.priority, each.id)).id if able else None


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
        unfit = next((each for each in members if not group.has(each) or not group.is_alive(each)), None)
        if unfit is not None:  # the first one decides
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
    told = [(each.id in sync.members, [each.id, each.address, group.is_alive(each.id)]) for each in replicas]
    answer = {
        "code": SUCCESS,
        "known": True,
        "sync_epoch": sync.epoch,
        "in_sync": [replica for is_in, replica in told if is_in],
        "not_in_sync": [replica for is_in, replica in told if not is_in],
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
    left = tuple(each for each in replicas if each.id not in ids)
    members = tuple(each for each in sync.members if each not in ids)
    after = group._replace(
        replicas=left or None,
        next_id=group.next_id if left else FIRST_ID,
        sync=sync._replace(members=members) if members else None,  # a master that goes is still called master
    )
    return after, {"code": SUCCESS}


def _heartbeat(group: Group, argument: Mapping[str, Any]) -> tuple[Group, Answer]:
    said = Live(argument["id"], argument["epoch"], argument["max_offset"], argument["priority"])
    before = next((each for each in group.live if each.id == said.id), None)
    if before is not None and (before.epoch, before.max_offset) > (said.epoch, said.max_offset):
        said = before._replace(priority=said.priority)  # a broker does not go back
    others = (each for each in group.live if each.id != said.id)
    return group._replace(live=tuple(sorted((*others, said)))), {"code": SUCCESS}


def _leave(group: Group, argument: Mapping[str, Any]) -> tuple[Group, Answer]:
    return group._replace(live=tuple(each for each in group.live if each.id != argument["id"])), {"code": SUCCESS}


def _master(group: Group, sync: Sync) -> Answer:
    """Returns what an answer says about the master; its id only if there is one, its address only if a replica has the id."""
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
# Each request with the types of its argument; an empty map stands for null.
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
