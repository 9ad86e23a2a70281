"""The model of a broker group whose brokers come and go: it never takes the liveness of a broker for certain.

What a client knows. A broker is alive to a controller as long as the connection of its heartbeats. A controller learns
asynchronously that a connection closed. Another leader may lack a heartbeat, or know one that ended. So two things are
certain: a broker that never sent a heartbeat is dead, and one that did may be alive or dead at any later time.

What follows. A controller that takes a master for dead elects another one by itself, or deposes the master if nobody is fit.
Nobody records these elections. So the state of this model is the earliest that the group may be in: it may have moved on by
such elections, which `may_reach` describes exactly. An answer fits if some state that the group may have reached gives it, with
some of the brokers alive. An answer that names the epochs says where the group is, and the model goes on from there.

The model allows too much where an answer names no epoch, and never too little.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from checker.errors import ModelError
from checker.identity import same
from checker.models.base import Call, Inconsistent
from workloads.controller.group import SUCCESS, Group, Live, Sync, respond
from workloads.controller.model import BrokerGroup, in_words, short

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from harness.op import Operation

_TAKEN = {"code": SUCCESS}  # what a heartbeat and a leave answer
_BLIND = frozenset({"next", "apply"})  # these do not look at the master, the sync set and who is alive


class UncertainGroup(BrokerGroup):
    """A broker group of RocketMQ's controller that may elect by itself, and take any broker for dead.

    A state is a `Group`. Its `live` has the brokers that ever sent a heartbeat, its `sync` is the earliest that it may be.
    """

    name: ClassVar[str] = "broker-group-uncertain"

    def step(self, state: Group, op: Call) -> Group | Inconsistent:
        """See `Model`."""
        if op.f in {"heartbeat", "leave"}:
            if op.ok and not same(op.result, _TAKEN):
                return Inconsistent(f"{op.f} answers {short(_TAKEN)}")
            if op.f == "leave":
                return state  # when a controller learns of it, nobody knows
            return state._replace(live=tuple(sorted({*state.live, Live(op.argument["id"])})))
        if not state.live:
            return super().step(state, op)
        return self._answered(state, op) if op.ok else _without_answer(state, op)

    def observes(self, op: Call) -> bool:
        """See `Model`: an answer that says where the group is changes what is known, so it is more than an observation."""
        return super().observes(op) and not _tells(op) and op.f not in {"heartbeat", "leave"}

    def silent(self, op: Call) -> bool:
        """See `Model`."""
        return (op.f == "leave" and not op.ok) or super().silent(op)

    def call(self, operation: Operation) -> Call:
        """Returns the operation as `step` sees it.

        Raises:
            ModelError: This model has no such operation, or not with such an argument.
        """
        if operation.f == "clean":
            raise ModelError(
                f"model {self.name}: expected no clean, found one: its effect depends on which brokers are alive; "
                "use the model workloads.controller.model:BrokerGroup"
            )
        return super().call(operation)

    def _answered(self, state: Group, op: Call) -> Group | Inconsistent:
        found = set[Group]()
        for before in _possible(state, op):
            after, answer = respond(before, op.f, op.argument)
            if same(op.result, answer):
                found.add(after._replace(live=state.live))
                if not _tells(op):
                    break  # the others lead to the same
        if not found:
            return Inconsistent(
                f"{in_words(state)} cannot give the answer {short(op.result)}, whatever it elected by itself"
            )
        after = found.pop()
        # Where the answer does not say where the group is, it may be anywhere from the earliest state on.
        return after._replace(sync=state.sync) if drifts(state) and (found or not _tells(op)) else after


def drifts(state: Group) -> bool:
    """Says whether a controller may elect by itself: there was a master, and some broker may be alive."""
    return bool(state.live) and state.known is not None and state.sync is not None and state.sync.master_epoch > 0


def may_reach(state: Group, sync: Sync) -> bool:
    """Says whether a group comes to a sync set by elections that nobody asked for, whoever of `state.live` is alive.

    Such an election either elects a living member of the sync set that is not the master, or it deposes the master, or it
    raises the epoch of a group that has none. The winner is then the whole sync set, so it alone can win from then on, each
    time after it was deposed.
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
    return elections >= _least(before, winner, wins) + (sync.master is None)


def _least(before: Sync, winner: int, wins: int) -> int:
    """Returns how many elections it takes at least until a broker has won so often."""
    return 2 * wins - 1 + (winner == before.master)


def _possible(state: Group, op: Call) -> Iterator[Group]:
    """Gives the groups that may be asked: enough of them that an answer that is possible at all is given by one."""
    if op.f in _BLIND:
        yield state
        return
    living = list(_living(state, op))
    for sync in _syncs(state, op):
        for live in living:
            yield state._replace(sync=sync, live=live)


def _syncs(state: Group, op: Call) -> Iterator[Sync | None]:
    """Gives where the group may be, the earliest first; of the later ones those that the operation tells apart."""
    earliest = state.sync
    yield earliest
    if earliest is None or not drifts(state):
        return
    near, ahead = ((0, -1), ()) if _tells(op) else ((0, 1), (1, 2, 3))
    epochs = _numbers(op, "master_epoch", near, earliest.master_epoch, ahead)
    sync_epochs = _numbers(op, "sync_epoch", near, earliest.epoch, ahead)
    for epoch in epochs:
        yield Sync(None, epoch, earliest.members, earliest.epoch)
    for winner in (each for each in earliest.members if state.is_alive(each)):
        for sync_epoch in sync_epochs:
            least = earliest.master_epoch + _least(earliest, winner, sync_epoch - earliest.epoch)
            for epoch in sorted({*epochs, *(least - 1 + by for by in ahead)}):
                for master in (winner, None):
                    sync = Sync(master, epoch, (winner,), sync_epoch)
                    if may_reach(state, sync):
                        yield sync


def _numbers(op: Call, name: str, near: Iterable[int], earliest: int, ahead: Iterable[int]) -> list[int]:
    """Returns the epochs after the earliest one that matter: near those that an operation names, and the next ones."""
    named = [said[name] for said in (op.argument, op.result) if isinstance(said, dict) and type(said.get(name)) is int]
    found = {each + by for each in named for by in near} | {earliest + by for by in ahead}
    return sorted(each for each in found if each > earliest)


def _living(state: Group, op: Call) -> Iterator[tuple[Live, ...]]:
    """Gives who may be alive: of all subsets of `state.live` those that the answer tells apart."""
    if op.f == "state":
        told = _told_alive(op.result)
        yield tuple(each for each in state.live if each.id in told)
        return
    yield ()
    if op.f in {"register", "elect", "alter"}:
        yield state.live
        master = op.result.get("master") if isinstance(op.result, dict) else None
        yield tuple(each for each in state.live if each.id == master)


def _told_alive(result: Any) -> set[int]:
    """Returns the brokers that a controller calls alive; a history may come from anyone."""
    told = set()
    for name in ("in_sync", "not_in_sync"):
        replicas = result.get(name) if isinstance(result, dict) else None
        for replica in replicas if isinstance(replicas, list | tuple) else ():
            match replica:
                case [int(broker), _, True]:
                    told.add(broker)
    return told


def _tells(op: Call) -> bool:
    """Says whether an answer says where the group is after it: by the epoch of the master, or by an alter that was done."""
    if not op.ok or not isinstance(op.result, dict):
        return False
    return "master_epoch" in op.result or (op.f == "alter" and op.result.get("code") == SUCCESS)


def _without_answer(state: Group, op: Call) -> Group:
    """Returns the earliest state after an operation that took effect, and whose answer nobody knows."""
    if op.f == "elect" and drifts(state):
        return state  # what it may have done, the controller may do by itself
    if op.f == "alter":
        for before in _possible(state, op):
            after, answer = respond(before, op.f, op.argument)
            if answer["code"] == SUCCESS:
                return after._replace(live=state.live)
        return state
    return respond(state, op.f, op.argument)[0]
