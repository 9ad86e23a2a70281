"""The model of a broker group whose brokers join and leave, so that their liveness is uncertain.

To a controller, a broker is alive while the connection of its heartbeats is open. A controller learns asynchronously that a
connection closed. A new leader may not know a heartbeat yet, or may not know that a connection closed. So a broker that never
sent a heartbeat is certainly dead. A broker that sent one may be alive or dead at any later time.

A controller that regards the master as dead elects another one by itself, or deposes the master if no broker is fit. The
history does not have these elections. So the state of this model is the earliest possible state of the group. The group may
have changed by such elections, which `may_reach` describes exactly. An answer is possible if a reachable state, with some of
the brokers alive, gives this answer. An answer with the epochs determines the state of the group, and the model continues from
there.

For an answer without an epoch, the model allows more than a controller can answer. It never allows less.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from checker.errors import ModelError
from checker.identity import same
from checker.models.base import Call, Inconsistent
from clusters.systems.rocketmq.workloads.group import SUCCESS, Group, Live, Sync, respond
from clusters.systems.rocketmq.workloads.model import BrokerGroup, described, short

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from harness.op import Operation

_ACCEPTED = {"code": SUCCESS}  # the answer to a heartbeat and a leave
_ON_IDS_ONLY = frozenset({"next", "apply"})  # these do not depend on master, sync set and liveness


class UncertainGroup(BrokerGroup):
    """A broker group of RocketMQ's controller that may hold elections by itself, and regard any broker as dead.

    A state is a `Group`. Its `live` has the brokers that ever sent a heartbeat, and its `sync` is the earliest possible one.
    """

    name: ClassVar[str] = "broker-group-uncertain"

    def step(self, state: Group, op: Call) -> Group | Inconsistent:
        """See `Model`."""
        if op.f in {"heartbeat", "leave"}:
            if op.ok and not same(op.result, _ACCEPTED):
                return Inconsistent(f"{op.f} answers {short(_ACCEPTED)}")
            if op.f == "leave":
                return state  # it is unknown when a controller learns of it
            return state._replace(live=tuple(sorted({*state.live, Live(op.argument["id"])})))
        if not state.live:
            return super().step(state, op)
        return self._answered(state, op) if op.ok else _without_answer(state, op)

    def observes(self, op: Call) -> bool:
        """See `Model`: an answer that determines the group's state changes the model's state, so it is not an observation."""
        return super().observes(op) and not _fixes_state(op) and op.f not in {"heartbeat", "leave"}

    def silent(self, op: Call) -> bool:
        """See `Model`."""
        return (op.f == "leave" and not op.ok) or super().silent(op)

    def call(self, operation: Operation) -> Call:
        """Returns the operation in the form for `step`.

        Raises:
            ModelError: This model has no such operation, or the argument is bad.
        """
        if operation.f == "clean":
            raise ModelError(
                f"model {self.name}: expected no clean, found one: its effect depends on which brokers are alive; "
                "use the model clusters.systems.rocketmq.workloads.model:BrokerGroup"
            )
        return super().call(operation)

    def _answered(self, state: Group, op: Call) -> Group | Inconsistent:
        groups = set[Group]()
        for before in _possible(state, op):
            after, answer = respond(before, op.f, op.argument)
            if same(op.result, answer):
                groups.add(after._replace(live=state.live))
                if not _fixes_state(op):
                    break  # all other states lead to the same result
        if not groups:
            return Inconsistent(
                f"{described(state)} cannot give the answer {short(op.result)}, whatever elections it held by itself"
            )
        after = groups.pop()
        # If the answer does not determine the group's state, the earliest state stays.
        return after._replace(sync=state.sync) if drifts(state) and (groups or not _fixes_state(op)) else after


def drifts(state: Group) -> bool:
    """Returns whether a controller may hold elections by itself: there was a master, and a broker may be alive."""
    return bool(state.live) and state.known is not None and state.sync is not None and state.sync.master_epoch > 0


def may_reach(state: Group, sync: Sync) -> bool:
    """Returns whether a group can reach a sync set by elections of the controller itself, for some living part of `state.live`.

    Such an election elects a living member of the sync set that is not the master, or deposes the master, or raises the epoch
    of a group without a master. The winner is then the only member of the sync set. So only this broker can win later
    elections, each time after it was deposed.
    """
    before = state.sync
    if before is None or sync == before:
        return before is not None
    elections = sync.master_epoch - before.master_epoch
    if not drifts(state) or elections < 1:
        return False
    wins = sync.epoch - before.epoch
    if not wins:
        return sync.master is None and sync.members == before.members
    if wins < 1 or len(sync.members) != 1:
        return False
    (winner,) = sync.members
    if winner not in before.members or not state.is_alive(winner) or sync.master not in {winner, None}:
        return False
    return elections >= _min_elections(before, winner, wins) + (sync.master is None)


def _min_elections(before: Sync, winner: int, wins: int) -> int:
    """Returns the minimum number of elections until a broker has won `wins` times."""
    return 2 * wins - 1 + (winner == before.master)


def _possible(state: Group, op: Call) -> Iterator[Group]:
    """Yields possible states before the operation: enough that every possible answer is the answer of one of them."""
    if op.f in _ON_IDS_ONLY:
        yield state
        return
    living = list(_living(state, op))
    for sync in _syncs(state, op):
        for live in living:
            yield state._replace(sync=sync, live=live)


def _syncs(state: Group, op: Call) -> Iterator[Sync | None]:
    """Yields possible values of `sync`, the earliest first; of the later ones only those with different answers."""
    earliest = state.sync
    yield earliest
    if earliest is None or not drifts(state):
        return
    near, ahead = ((0, -1), ()) if _fixes_state(op) else ((0, 1), (1, 2, 3))
    epochs = _numbers(op, "master_epoch", near, earliest.master_epoch, ahead)
    sync_epochs = _numbers(op, "sync_epoch", near, earliest.epoch, ahead)
    for epoch in epochs:
        yield Sync(None, epoch, earliest.members, earliest.epoch)
    for winner in (member for member in earliest.members if state.is_alive(member)):
        for sync_epoch in sync_epochs:
            first = earliest.master_epoch + _min_elections(earliest, winner, sync_epoch - earliest.epoch)
            for epoch in sorted({*epochs, *(first - 1 + by for by in ahead)}):
                for master in (winner, None):
                    sync = Sync(master, epoch, (winner,), sync_epoch)
                    if may_reach(state, sync):
                        yield sync


def _numbers(op: Call, name: str, near: Iterable[int], earliest: int, ahead: Iterable[int]) -> list[int]:
    """Returns the relevant epochs after the earliest one: those near the epochs of the operation, and the next ones."""
    named = [part[name] for part in (op.argument, op.result) if isinstance(part, dict) and type(part.get(name)) is int]
    numbers = {number + by for number in named for by in near} | {earliest + by for by in ahead}
    return sorted(number for number in numbers if number > earliest)


def _living(state: Group, op: Call) -> Iterator[tuple[Live, ...]]:
    """Yields possible sets of living brokers: of all subsets of `state.live` only those with different answers."""
    if op.f == "state":
        alive = _alive_in(op.result)
        yield tuple(live for live in state.live if live.id in alive)
        return
    yield ()
    if op.f in {"register", "elect", "alter"}:
        yield state.live
        master = op.result.get("master") if isinstance(op.result, dict) else None
        yield tuple(live for live in state.live if live.id == master)


def _alive_in(result: Any) -> set[int]:
    """Returns the brokers that are alive in an answer. It ignores bad values of foreign histories."""
    alive = set()
    for name in ("in_sync", "not_in_sync"):
        replicas = result.get(name) if isinstance(result, dict) else None
        for replica in replicas if isinstance(replicas, list | tuple) else ():
            match replica:
                case [int(broker), _, True]:
                    alive.add(broker)
    return alive


def _fixes_state(op: Call) -> bool:
    """Returns whether an answer determines the group's state: it has the master's epoch, or is that of a successful alter."""
    if not op.ok or not isinstance(op.result, dict):
        return False
    return "master_epoch" in op.result or (op.f == "alter" and op.result.get("code") == SUCCESS)


def _without_answer(state: Group, op: Call) -> Group:
    """Returns the earliest state after an operation that took effect, and whose answer is unknown."""
    if op.f == "elect" and drifts(state):
        return state  # the controller may hold the same election by itself
    if op.f == "alter":
        for before in _possible(state, op):
            after, answer = respond(before, op.f, op.argument)
            if answer["code"] == SUCCESS:
                return after._replace(live=state.live)
        return state
    return respond(state, op.f, op.argument)[0]
