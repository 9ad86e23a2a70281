"""The model of a broker group whose brokers join and leave: it allows exactly the behaviour of a controller."""

from __future__ import annotations

import random
from typing import Any

import pytest

from checker.errors import ModelError
from checker.models.base import Call, Inconsistent
from clusters.systems.rocketmq.workloads.group import Group, Live, Replica, Sync, respond
from clusters.systems.rocketmq.workloads.uncertain import UncertainGroup, drifts, may_reach
from harness.op import Operation, OpType

REPLICAS = tuple(Replica(number, "a", "a;1") for number in (1, 2, 3))
MODEL = UncertainGroup()


def group(sync: Sync, *live: int) -> Group:
    """A group of three brokers, some of which sent a heartbeat."""
    return Group(REPLICAS, 4, sync, tuple(Live(broker) for broker in live))


LED = group(Sync(1, 2, (1, 2), 5), 1, 2)


def subsets(group: Group) -> list[tuple[Live, ...]]:
    """All possible sets of living brokers."""
    return [
        tuple(live for index, live in enumerate(group.live) if chosen >> index & 1)
        for chosen in range(1 << len(group.live))
    ]


def elected(group: Group) -> set[Sync]:
    """The states that a controller reaches by one election of its own."""
    syncs = set()
    for live in subsets(group):
        after, _ = respond(group._replace(live=live), "elect", {"id": -1, "designate": False})
        assert after.sync is not None
        syncs.add(after.sync)
    return syncs


@pytest.mark.parametrize("live", [(1,), (2, 3), (1, 2, 3)])
@pytest.mark.parametrize("master", [None, 1, 9])
@pytest.mark.parametrize("members", [(1,), (1, 2, 3)])
def test_what_elections_of_its_own_lead_to(live: tuple[int, ...], master: int | None, members: tuple[int, ...]) -> None:
    """Up to four elections lead exactly to the states that `may_reach` accepts."""
    start = group(Sync(master, 1, members, 1), *live)
    reached = {start.sync}
    for _ in range(4):
        reached |= {after for sync in reached if sync for after in elected(start._replace(sync=sync))}
    every = {
        Sync(one, epoch, some, sync_epoch)
        for one in (None, 1, 2, 3, 9)
        for epoch in range(6)
        for some in {members, (1,), (2,), (3,), ()}
        for sync_epoch in range(6)
    }
    assert {sync for sync in every if sync.master_epoch <= 5 and may_reach(start, sync)} == reached


def call(f: str, argument: Any, result: Any, *, ok: bool = True) -> Call:
    """An operation."""
    return Call(f, result if ok else argument, argument, result if ok else None, ok)


def elect(broker: int, result: Any) -> Call:
    """A designated election."""
    return call("elect", {"id": broker, "designate": True}, result)


def alter(master: int, epoch: int, members: list[int], sync_epoch: int, result: Any, *, ok: bool = True) -> Call:
    """A change of the sync set."""
    argument = {"master": master, "master_epoch": epoch, "sync_set": members, "sync_epoch": sync_epoch}
    return call("alter", argument, result, ok=ok)


def replica(master: int | None, epoch: int, members: list[int], sync_epoch: int) -> Call:
    """A read of the sync set."""
    result: dict[str, Any] = {"code": 0, "master_epoch": epoch, "sync_set": members, "sync_epoch": sync_epoch}
    return call("replica", None, result | ({"master": master, "address": "a"} if master else {}))


def won(broker: int, epoch: int, sync_epoch: int) -> dict[str, Any]:
    """The answer to a successful election."""
    members = [[member.id, "a"] for member in REPLICAS]
    return {
        "code": 0, "master": broker, "address": "a", "master_epoch": epoch, "sync_set": [broker],
        "sync_epoch": sync_epoch, "members": members,
    }  # fmt: skip


POSSIBLE: list[tuple[Call, Sync]] = [
    (replica(1, 2, [1, 2], 5), Sync(1, 2, (1, 2), 5)),
    (replica(2, 3, [2], 6), Sync(2, 3, (2,), 6)),
    (replica(None, 5, [1, 2], 5), Sync(None, 5, (1, 2), 5)),
    (replica(1, 4, [1], 6), Sync(1, 4, (1,), 6)),
    (elect(2, won(2, 3, 6)), Sync(2, 3, (2,), 6)),
    (elect(2, won(2, 6, 6)), Sync(2, 6, (2,), 6)),
    (elect(2, {"code": 2012}), Sync(1, 2, (1, 2), 5)),
    (alter(1, 2, [1], 5, {"code": 0, "sync_epoch": 6}), Sync(1, 2, (1,), 6)),
    (alter(1, 2, [1], 5, {"code": 2002}), Sync(1, 2, (1, 2), 5)),
    (alter(1, 2, [1, 2], 5, {"code": 2000}), Sync(1, 2, (1, 2), 5)),
    (alter(1, 2, [1], 5, {"code": 2006}), Sync(1, 2, (1, 2), 5)),
    (alter(1, 2, [1], 4, {"code": 2001}), Sync(1, 2, (1, 2), 5)),
    (alter(2, 3, [1, 2], 6, {"code": 0, "sync_epoch": 7}), Sync(2, 3, (1, 2), 7)),
    (alter(1, 2, [1], 5, None, ok=False), Sync(1, 2, (1,), 6)),
    (alter(1, 2, [1], 6, None, ok=False), Sync(1, 2, (1, 2), 5)),
    (call("elect", {"id": 2, "designate": True}, None, ok=False), Sync(1, 2, (1, 2), 5)),
    (call("elect", {"id": -1, "designate": True}, {"code": 2004}), Sync(1, 2, (1, 2), 5)),
    (call("next", None, {"code": 0, "next": 4}), Sync(1, 2, (1, 2), 5)),
]


@pytest.mark.parametrize(("op", "sync"), POSSIBLE)
def test_what_may_be_answered(op: Call, sync: Sync) -> None:
    """An answer with the epochs determines the state; after another answer, the earliest state stays."""
    assert drifts(LED)
    assert MODEL.step(LED, op) == LED._replace(sync=sync)


IMPOSSIBLE = [
    replica(2, 2, [2], 6),  # an epoch with two masters
    replica(1, 1, [1], 4),  # an epoch that went back
    replica(1, 3, [1, 2], 5),  # a new epoch of the same master, which was not deposed
    replica(3, 3, [3], 6),  # a master that was not in sync
    replica(1, 2, [1], 6),  # a sync set without an alter
    elect(3, won(3, 3, 6)),  # a dead broker that is elected
    elect(2, won(2, 2, 6)),
    alter(1, 2, [1, 3], 5, {"code": 0, "sync_epoch": 6}),  # a dead member
    alter(1, 2, [1], 4, {"code": 0, "sync_epoch": 5}),  # a compare-and-set on another epoch
    alter(1, 2, [1], 5, {"code": 2003}),  # the member exists
    alter(1, 2, [1], 5, {"code": 2000}),  # with another epoch, this is the set
    alter(3, 2, [3], 5, {"code": 2000}),  # it can never be master
    call("next", None, {"code": 0, "next": 3}),
    call("heartbeat", {"id": 1, "epoch": 0, "max_offset": 0, "priority": 0}, {"code": 1}),
    call("state", None, {"code": 0, "known": True, "in_sync": [[3, "a", True]], "not_in_sync": 7}),
]


@pytest.mark.parametrize("op", IMPOSSIBLE)
def test_what_is_never_answered(op: Call) -> None:
    """These answers are impossible for all living brokers and elections."""
    assert isinstance(MODEL.step(LED, op), Inconsistent)


def test_who_is_certainly_dead() -> None:
    """A broker without a heartbeat is dead; one that left may stay alive for some controller."""
    beat = call("heartbeat", {"id": 2, "epoch": 0, "max_offset": 0, "priority": 0}, {"code": 0})
    dead = group(Sync(1, 2, (1, 2), 5))
    assert isinstance(MODEL.step(dead, elect(2, won(2, 3, 6))), Inconsistent)
    alive = MODEL.step(dead, beat)
    assert alive == dead._replace(live=(Live(2),))
    assert MODEL.step(alive, call("leave", {"id": 2}, {"code": 0})) == alive
    assert not isinstance(MODEL.step(alive, elect(2, won(2, 3, 6))), Inconsistent)


def test_a_clean_up_is_not_served() -> None:
    """The error names the right model."""
    operation = Operation(
        process=0, f="clean", value={"ids": [], "living": True}, result=None, type=OpType.INFO, start_ns=0, end_ns=None,
        invoke_index=0, complete_index=None, key="k0",
    )  # fmt: skip
    with pytest.raises(ModelError, match=r"use the model clusters\.systems\.rocketmq\.workloads\.model:BrokerGroup"):
        MODEL.call(operation)


@pytest.mark.parametrize("seed", range(12))
def test_a_controller_that_elects_by_itself(seed: int) -> None:
    """With random deaths and elections, the model accepts every answer of a correct controller."""
    draws = random.Random(seed)
    real, told, ever = Group(), MODEL.initial, set[int]()
    for _ in range(80):
        if real.sync is not None and real.sync.master_epoch and ever and draws.random() < 0.3:
            real, _ = respond(real, "elect", {"id": -1, "designate": False})
        live = tuple(
            Live(broker, 0, draws.randrange(3), draws.randrange(3)) for broker in sorted(ever) if draws.random() < 0.7
        )
        real = real._replace(live=live)
        f, argument = drawn(draws, real)
        if f == "heartbeat":
            ever.add(argument["id"])
        real, result = respond(real, f, argument)
        # An operation without an answer is in the order only if it had an effect.
        ok = draws.random() < 0.9 or result["code"] not in {0, 2004}
        after = MODEL.step(told, call(f, argument, result, ok=ok))
        assert not isinstance(after, Inconsistent), (f, argument, result, told, after)
        told = after
        assert real.sync is None or may_reach(told, real.sync)


def drawn(draws: random.Random, group: Group) -> tuple[str, Any]:
    """A random request that often has values of the current state."""
    sync = group.sync or Sync()
    broker = draws.randint(1, 3)
    master = sync.master if sync.master is not None and draws.random() < 0.8 else broker
    epochs = [epoch + draws.choice([0, 0, 0, 0, -1, 1]) for epoch in (sync.master_epoch, sync.epoch)]
    members = sorted({master, *draws.sample([1, 2, 3], draws.randint(0, 2))})
    return draws.choice([
        ("apply", {"id": broker, "check": "a;1"}),
        ("register", {"id": broker, "address": draws.choice("ab")}),
        ("elect", {"id": draws.choice([broker, broker, broker, -1]), "designate": draws.random() < 0.7}),
        ("alter", {"master": master, "master_epoch": epochs[0], "sync_set": members, "sync_epoch": epochs[1]}),
        ("alter", {"master": master, "master_epoch": epochs[0], "sync_set": members, "sync_epoch": epochs[1]}),
        ("heartbeat", {"id": broker, "epoch": 0, "max_offset": 0, "priority": 0}),
        ("leave", {"id": broker}),
        (draws.choice(["next", "replica", "state"]), None),
    ])  # fmt: skip


@pytest.mark.parametrize("seed", range(3))
def test_answers_from_anyone(seed: int) -> None:
    """The model decides histories with arbitrary answers, in a short time."""
    draws = random.Random(seed)
    anything: list[Any] = [None, True, -1, 2**70, 1.5, "x", [], [[]], [1, "a", True], [[1, "a", True]], {}, {"code": 0}]
    names = ["code", "master", "master_epoch", "sync_epoch", "sync_set", "in_sync", "not_in_sync", "known"]
    for _ in range(300):
        f, argument = drawn(draws, LED)
        result: Any = {name: draws.choice(anything) for name in draws.sample(names, draws.randrange(6))}
        op = call(f, argument, draws.choice([result, *anything]))
        MODEL.observes(op)
        MODEL.step(LED, op)
