"""A RocketMQ controller in memory that follows the specification, with an occasional mistake."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from clusters.systems.rocketmq.workloads.group import READS, Group, Live, Sync, respond
from harness.op import Info, Invocation, Ok
from harness.randomness import stream

if TYPE_CHECKING:
    from random import Random

    from harness.op import Outcome

# With living brokers, a refused election that was carried out looks like an election of the controller itself.
MISTAKES_OF_MEMBERS = ("lost alter", "stale read", "epoch reused", "dead replica elected", "master dropped")
MISTAKES = ("two owners", "lost alter", "stale read", "epoch reused", "dead replica elected", "refused write applied")


class Controller:
    """An operation takes effect and is answered at its end.

    Attributes:
        made: How often it made the mistake.
    """

    def __init__(self, mistake: str | None, seed: int, *, lossy: bool = False, restless: bool = False) -> None:
        """Makes a controller of empty groups.

        Args:
            mistake: One of `MISTAKES` or `MISTAKES_OF_MEMBERS`, or None.
            seed: The seed of its mistakes.
            lossy: Whether it sometimes does not answer, with or without an effect.
            restless: Whether it randomly regards brokers with heartbeats as dead, and holds elections by itself.
        """
        self.made = 0
        self._mistake = mistake
        self._lossy = lossy
        self._restless = restless
        self._beaten: dict[str | None, set[int]] = {}
        self._draws = stream(seed, "controller")
        self._groups: dict[str | None, Group] = {}
        self._older: dict[str | None, Group] = {}

    def __call__(self, _: int, invocation: Invocation) -> Outcome:
        """Carries out one operation."""
        key, f, argument = invocation.key, invocation.f, invocation.value
        before = self._moved(invocation) if self._restless else self.group(key)
        after, answer = respond(before, f, argument)
        if self._draws.random() < 0.4:
            wrong = self._wrong(key, before, f, argument)
            if wrong is not None and wrong != (after, answer):
                self.made += 1
                after, answer = wrong
        if self._lossy and f not in READS and self._draws.random() < 0.05:
            if self._draws.random() < 0.5:
                self._groups[key] = after
            return Info("timeout")
        if after != before:
            self._older[key] = before
        self._groups[key] = after
        return Ok(answer)

    def _moved(self, invocation: Invocation) -> Group:
        """Returns the group of an operation with some living brokers, perhaps after an election of its own."""
        key, draws = invocation.key, self._draws
        beaten = self._beaten.setdefault(key, set())
        group = self.group(key)
        for _ in range(2):
            alive = [broker for broker in sorted(beaten) if draws.random() < 0.8]
            group = group._replace(live=tuple(Live(broker, 0, draws.randrange(3)) for broker in alive))
            if beaten and group.sync is not None and group.sync.master_epoch and draws.random() < 0.1:
                group, _answer = respond(group, "elect", {"id": -1, "designate": False})
        if invocation.f == "heartbeat":
            beaten.add(invocation.value["id"])
        self._groups[key] = group
        return group

    def group(self, key: str | None) -> Group:
        """Returns the state of a group."""
        return self._groups.get(key, Group())

    def _wrong(self, key: str | None, before: Group, f: str, argument: Any) -> tuple[Group, dict[str, Any]] | None:
        """Returns the wrong result of an operation; None if the mistake does not apply."""
        after, answer = respond(before, f, argument)
        wrong: tuple[Group, dict[str, Any]] | None = None
        match self._mistake, f, answer["code"]:
            case "two owners", "apply", 2014 if before.replicas is not None:
                wrong = before, {"code": 0}
            case "lost alter", "alter", 0:
                wrong = before, answer
            case "stale read", "replica" | "next" | "state", _:
                wrong = before, respond(self._older.get(key, before), f, argument)[1]
            case "epoch reused", "elect", 0 if before.sync is not None and before.sync.master_epoch:
                wrong = respond(
                    before._replace(sync=before.sync._replace(master_epoch=before.sync.master_epoch - 1)), f, argument
                )
            case "dead replica elected", "elect", 2012 if before.known is not None:
                wrong = _elected(before, int(argument["id"]))
            case "refused write applied", "elect", 0:
                wrong = after, {"code": 2012}
            case "master dropped", "alter", 0 if after.sync is not None and len(after.sync.members) > 1:
                members = tuple(member for member in after.sync.members if member != after.sync.master)
                wrong = after._replace(sync=after.sync._replace(members=members)), answer
        return wrong


def _elected(before: Group, chosen: int) -> tuple[Group, dict[str, Any]]:
    """Returns the answer of an election that does not check whether a broker is alive and in sync."""
    sync = before.sync or Sync()
    elected = Sync(chosen, sync.master_epoch + 1, (chosen,), sync.epoch + 1)
    said: dict[str, Any] = {
        "code": 0,
        "master": chosen,
        "master_epoch": elected.master_epoch,
        "sync_epoch": elected.epoch,
    }
    said |= {"sync_set": [chosen], "members": [[replica.id, replica.address] for replica in before.replicas or ()]}
    address = before.address(chosen)
    return before._replace(sync=elected), said | ({"address": address} if address else {})


def request(draws: Random, group: Group) -> tuple[str, Any]:
    """Draws a request. It often has values of the group's state, so that it is likely to succeed."""
    sync = group.sync or Sync()
    some = draws.randint(1, 3)
    epochs = (sync.master_epoch, sync.epoch) if draws.random() < 0.7 else (draws.randint(0, 4), draws.randint(0, 4))
    master = sync.master if sync.master is not None and draws.random() < 0.8 else some
    members = sorted({master, *draws.sample([1, 2, 3], draws.randint(0, 2))})
    kinds: list[tuple[str, Any]] = [
        ("apply", {"id": some, "check": draws.choice(["a;1", "b;1"])}),
        ("register", {"id": some, "address": draws.choice("ab")}),
        *[("elect", {"id": some, "designate": draws.random() < 0.8})] * 2,
        ("alter", {"master": master, "master_epoch": epochs[0], "sync_set": members, "sync_epoch": epochs[1]}),
        ("heartbeat", {"id": some, "epoch": 0, "max_offset": draws.randint(0, 2), "priority": 0}),
        (draws.choice(["next", "replica", "state"]), None),
    ]
    return draws.choice(kinds)
