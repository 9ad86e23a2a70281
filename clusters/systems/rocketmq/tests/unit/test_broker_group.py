"""The specification of a broker group, rule by rule, and the model that compares answers with it."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from checker.errors import ModelError
from checker.search import brute
from clusters.systems.rocketmq.workloads.group import FUNCTIONS, READS, Group, Live, Replica, Sync, respond
from clusters.systems.rocketmq.workloads.model import BrokerGroup
from harness.op import Operation, OpType
from harness.verdict import Verdict
from tests.deciding import analysis

if TYPE_CHECKING:
    from collections.abc import Sequence

Request = tuple[str, Any]


def apply(broker: int, check: str = "a:1;7") -> Request:
    """A request for an id."""
    return "apply", {"id": broker, "check": check}


def elect(broker: int, *, designate: bool = False) -> Request:
    """An election."""
    return "elect", {"id": broker, "designate": designate}


def alter(master: int, master_epoch: int, sync_set: Sequence[int], sync_epoch: int) -> Request:
    """A change of the sync set."""
    return "alter", {"master": master, "master_epoch": master_epoch, "sync_set": sync_set, "sync_epoch": sync_epoch}


def heartbeat(broker: int, *, epoch: int = 0, max_offset: int = 0, priority: int = 0) -> Request:
    """A heartbeat."""
    return "heartbeat", {"id": broker, "epoch": epoch, "max_offset": max_offset, "priority": priority}


def clean(*ids: int, living: bool = False) -> Request:
    """A clean request."""
    return "clean", {"ids": list(ids), "living": living}


def register(broker: int, address: str) -> Request:
    """A registration."""
    return "register", {"id": broker, "address": address}


def after(*requests: Request) -> tuple[Group, dict[str, Any]]:
    """The state after some requests, and the last answer."""
    group, last = Group(), dict[str, Any]()
    for f, argument in requests:
        group, last = respond(group, f, argument)
    return group, last


def answer(*requests: Request) -> dict[str, Any]:
    """The last answer."""
    return after(*requests)[1]


REGISTERED = (apply(1, "a:1;1"), apply(2, "b:1;1"), apply(3, "c:1;1"))
ALIVE = (heartbeat(1), heartbeat(2), heartbeat(3))
LED = (*REGISTERED, *ALIVE, elect(1))
IN_SYNC = (*LED, alter(1, 1, [1, 2, 3], 1))
READ: Request = ("replica", None)
NEXT: Request = ("next", None)
STATE: Request = ("state", None)


def test_an_absent_group() -> None:
    """An absent group proposes and gives only the id 1; it refuses all else."""
    assert answer(NEXT) == {"code": 0, "next": 1}
    assert answer(apply(2)) == {"code": 2014}
    assert answer(apply(1)) == {"code": 0}
    assert answer(READ) == {"code": 2008}
    assert answer(elect(1)) == {"code": 2010}
    assert answer(register(1, "a")) == {"code": 2010}
    assert answer(alter(1, 1, [1], 1)) == {"code": 2013}
    assert answer(clean()) == answer(clean(living=True)) == {"code": 2009}
    assert answer(STATE) == {"code": 0, "known": False}


def test_one_owner_of_an_id() -> None:
    """An id is given once; its owner can apply again with the same check code."""
    assert answer(apply(1, "a;1"), apply(1, "b;1")) == {"code": 2014}
    assert answer(apply(1, "a;1"), apply(1, "a;1")) == {"code": 0}
    assert answer(apply(1, "a;1"), apply(1, "a;2")) == {"code": 2014}


def test_next_is_a_count() -> None:
    """The next id is one more than the number of given ids, and can be taken already."""
    assert answer(apply(1), apply(5), NEXT) == {"code": 0, "next": 3}
    assert answer(apply(1), apply(5), apply(3), NEXT) == {"code": 0, "next": 4}
    assert answer(apply(1), apply(1), NEXT) == {"code": 0, "next": 2}


def test_a_group_without_a_master() -> None:
    """Without a master, a read omits it; it does not answer 2004."""
    assert answer(*REGISTERED, READ) == {"code": 0, "master_epoch": 0, "sync_set": [], "sync_epoch": 0}


@pytest.mark.parametrize("broker", [2, 9])
def test_the_first_election(broker: int) -> None:
    """The first candidate becomes master, even a dead broker or an unknown id, whose address is missing."""
    answered = answer(*REGISTERED, elect(broker))
    address = {"address": "b:1"} if broker == 2 else {}
    members = [[1, "a:1"], [2, "b:1"], [3, "c:1"]]
    expected = {
        "code": 0,
        "master": broker,
        "master_epoch": 1,
        "sync_set": [broker],
        "sync_epoch": 1,
        "members": members,
    }
    assert answered == expected | address


@pytest.mark.parametrize("designate", [False, True])
def test_any_broker_at_the_first_election(designate: bool) -> None:
    """With the id -1 the policy chooses the master. If it finds none, the request is refused, and the epoch rises."""
    before = (*REGISTERED, elect(-1, designate=designate))
    assert answer(*before) == {"code": 2004}
    assert answer(*before, READ) == {"code": 0, "master_epoch": 1, "sync_set": [], "sync_epoch": 0}


def test_any_broker_designated_removes_a_living_master() -> None:
    """Each such request raises the epoch; the sync set and its epoch stay."""
    group, last = after(*IN_SYNC, elect(-1, designate=True))
    assert last == {"code": 2004}
    assert group.sync == Sync(None, 2, (1, 2, 3), 2)
    assert after(*IN_SYNC, *[elect(-1, designate=True)] * 3)[0].sync == Sync(None, 4, (1, 2, 3), 2)


def test_any_broker_with_a_living_master() -> None:
    """Another election does not change the first master."""
    assert answer(*IN_SYNC, elect(-1))["code"] == 2011


def test_a_master_that_is_still_there() -> None:
    """The answer 2011 has the master and the sync set."""
    expected = {"code": 2011, "master": 1, "address": "a:1", "master_epoch": 1, "sync_set": [1, 2, 3], "sync_epoch": 2}
    assert answer(*IN_SYNC, elect(2)) == expected
    assert answer(*IN_SYNC, elect(1, designate=True)) == expected


def test_a_designated_election() -> None:
    """Only a living member of the sync set becomes master, and its sync set has only itself."""
    assert after(*IN_SYNC, elect(3, designate=True))[0].sync == Sync(3, 2, (3,), 3)
    assert answer(*LED, elect(2, designate=True)) == {"code": 2012}
    assert answer(*IN_SYNC, elect(9, designate=True)) == {"code": 2012}


@pytest.mark.parametrize(
    ("beats", "best"),
    [
        ([heartbeat(1, epoch=1), heartbeat(2, epoch=2), heartbeat(3, epoch=1)], 2),
        ([heartbeat(1, max_offset=3), heartbeat(2, max_offset=5), heartbeat(3, max_offset=9)], 3),
        ([heartbeat(1, priority=3), heartbeat(2, priority=2), heartbeat(3, priority=2)], 2),
        ([heartbeat(1), heartbeat(2), heartbeat(3)], 1),
        # Larger earlier values of a broker stay; its priority is the latest one.
        ([heartbeat(3, epoch=1), heartbeat(2, max_offset=9), heartbeat(3, max_offset=1)], 3),
        (
            [
                heartbeat(2, max_offset=9, priority=1),
                heartbeat(2, max_offset=1, priority=9),
                heartbeat(3, max_offset=9),
            ],
            3,
        ),
    ],
)
def test_the_policy(beats: Sequence[Request], best: int) -> None:
    """Without a master, the best member by epoch, offset, priority and id wins, for any requester."""
    group, _ = after(*IN_SYNC, elect(-1, designate=True), *beats, elect(2))
    assert group.sync is not None
    assert group.sync.master == best


def test_a_dead_master_is_replaced() -> None:
    """A living member replaces a dead master, although another broker requests the election."""
    dead = Group(
        replicas=(Replica(1, "a", "a"), Replica(2, "b", "b")), next_id=3, sync=Sync(1, 1, (1, 2), 2), live=(Live(2),)
    )
    assert respond(dead, *elect(1))[0].sync == Sync(2, 2, (2,), 3)
    assert respond(dead._replace(live=()), *elect(1))[1] == {"code": 2012}
    assert respond(dead._replace(live=()), *elect(-1))[1] == {"code": 2004}


def test_register() -> None:
    """The answer has a living master, with the address from before the request, and always the sync set."""
    assert answer(*REGISTERED, register(9, "z")) == {"code": 2010}
    assert answer(*REGISTERED, elect(1), register(2, "z")) == {"code": 0, "sync_set": [1], "sync_epoch": 1}
    expected = {"code": 0, "master": 1, "address": "a:1", "master_epoch": 1, "sync_set": [1], "sync_epoch": 1}
    assert answer(*LED, register(1, "new")) == expected
    assert answer(*LED, register(1, "new"), register(1, "newer")) == expected | {"address": "new"}
    assert answer(*LED, register(1, "new"), apply(1, "a:1;1")) == {"code": 0}, "the check code stays"


def test_alter_in_the_order_of_its_tests() -> None:
    """The refusals have this precedence."""
    assert answer(*LED, alter(9, 9, [1], 9)) == {"code": 2013}
    assert answer(*LED, alter(9, 9, [9], 9)) == {"code": 2002}
    assert answer(*LED, alter(1, 9, [9], 9)) == {"code": 2000}
    assert answer(*LED, alter(1, 1, [9], 9)) == {"code": 2001}
    assert answer(*LED, alter(1, 1, [2, 9], 1)) == {"code": 2003}
    assert answer(*LED, alter(1, 1, [2, 3], 1)) == {"code": 2013}
    assert answer(*LED, alter(1, 1, [2, 1], 1)) == {"code": 0, "sync_epoch": 2}
    assert answer(*REGISTERED, alter(1, 0, [1], 0)) == {"code": 2002}, "there is no master"


@pytest.mark.parametrize(("ids", "code"), [([1, 3, 9], 2006), ([1, 9], 2003), ([0, 1, 3], 2003)])
def test_alter_stops_at_the_first_bad_member(ids: Sequence[int], code: int) -> None:
    """Members are checked in ascending order: a dead one before an unknown one gives 2006."""
    assert answer(*REGISTERED, heartbeat(1), elect(1), alter(1, 1, ids, 1)) == {"code": code}


def test_clean_of_living_brokers_takes_the_whole_group() -> None:
    """The list of ids is ignored, and next is 1 again."""
    assert answer(*IN_SYNC, clean(2, living=True)) == {"code": 0}
    assert answer(*IN_SYNC, clean(2, living=True), NEXT) == {"code": 0, "next": 1}
    assert answer(*IN_SYNC, clean(2, living=True), READ) == {"code": 2008}


def test_clean_of_dead_brokers() -> None:
    """A group with a master and living brokers cannot be removed; others can."""
    assert answer(*IN_SYNC, clean()) == {"code": 2009}
    assert answer(*IN_SYNC, clean(2)) == {"code": 2009}
    assert answer(*REGISTERED, clean()) == {"code": 0}
    group, last = after(*REGISTERED, heartbeat(1), elect(1), clean(2))
    assert last == {"code": 0}
    assert [replica.id for replica in group.replicas or ()] == [1, 3]
    assert group.next_id == 4


def test_clean_leaves_a_group_without_a_sync_set() -> None:
    """A group without a master loses its empty sync set with any broker; the next apply starts a new group."""
    half = (*REGISTERED, clean(2))
    assert answer(*half, READ) == {"code": 2008}
    assert answer(*half, NEXT) == {"code": 0, "next": 4}
    assert answer(*half, apply(4, "d;1")) == {"code": 0}
    assert answer(*half, apply(4, "d;1"), NEXT) == {"code": 0, "next": 2}


def test_the_whole_state() -> None:
    """The answer to 1006 has every replica, and whether it is in sync and alive."""
    answered = answer(*REGISTERED, heartbeat(1), heartbeat(2), elect(1), alter(1, 1, [1, 2], 1), STATE)
    assert answered == {
        "code": 0,
        "known": True,
        "master": 1,
        "address": "a:1",
        "master_epoch": 1,
        "sync_epoch": 2,
        "in_sync": [[1, "a:1", True], [2, "b:1", True]],
        "not_in_sync": [[3, "c:1", False]],
    }


def requests(draws: random.Random) -> Request:
    """A random request, with few ids and epochs."""
    some = draws.choice([-1, 1, 2, 3, 4])
    members = draws.sample([1, 2, 3, 4], draws.randint(1, 3))
    return draws.choice(
        [
            NEXT,
            READ,
            STATE,
            apply(abs(some), draws.choice(["a;1", "b;1"])),
            register(abs(some), draws.choice("ab")),
            elect(some, designate=draws.random() < 0.5),
            alter(draws.randint(1, 2), draws.randint(1, 3), members, draws.randint(1, 3)),
            heartbeat(abs(some), max_offset=draws.randint(0, 2)),
            clean(*draws.sample([1, 2], draws.randint(0, 1)), living=draws.random() < 0.2),
        ]
    )


@pytest.mark.parametrize("seed", range(20))
def test_refusals_and_reads_change_nothing(seed: int) -> None:
    """An operation that observes leaves the state unchanged."""
    draws, group, model = random.Random(seed), Group(), BrokerGroup()
    for index in range(300):
        f, argument = requests(draws)
        changed, said = respond(group, f, argument)
        operation = operation_of(index, f, argument, said)
        assert model.step(group, model.call(operation)) == changed
        if model.observes(model.call(operation)):
            assert changed == group
        group = changed


def operation_of(index: int, f: str, argument: Any, result: Any, kind: OpType = OpType.OK) -> Operation:
    """An operation that overlaps with its neighbours."""
    return Operation(
        process=index, f=f, value=argument, result=result if kind is OpType.OK else None, type=kind,
        start_ns=index, end_ns=index, invoke_index=4 * index, complete_index=4 * index + 6,
    )  # fmt: skip


def history(seed: int, count: int = 40) -> list[Operation]:
    """A history whose operations took effect sequentially; an eighth have no answer."""
    draws, group, operations = random.Random(seed), Group(), []
    for index in range(count):
        f, argument = requests(draws)
        lost = draws.random() < 1 / 8 and f not in READS
        changed, said = respond(group, f, argument)
        if not (lost and draws.random() < 0.5):
            group = changed
        operations.append(operation_of(index, f, argument, said, OpType.INFO if lost else OpType.OK))
    return operations


@pytest.mark.parametrize("seed", range(8))
def test_legal_histories_are_valid(seed: int) -> None:
    """Answers of the specification are linearizable, also with unanswered operations."""
    assert analysis(BrokerGroup(), history(seed), time_limit=20).valid is Verdict.VALID


@pytest.mark.parametrize("seed", range(4))
def test_every_algorithm_says_what_the_brute_force_says(seed: int) -> None:
    """For short histories, half of which have a wrong answer."""
    draws, seen = random.Random(seed), set[Verdict]()
    for number in range(40):
        operations = history(1000 * seed + number, count=6)
        if draws.random() < 0.5:
            index = draws.randrange(6)
            answers = [
                operation.result for operation in history(draws.randrange(10**6)) if operation.f == operations[index].f
            ]
            if answers and operations[index].type is OpType.OK:
                operations[index] = replace(operations[index], result=answers[0])
        truth = Verdict.VALID if brute.linearizable(BrokerGroup(), operations) else Verdict.INVALID
        seen.add(truth)
        for algorithm in ("auto", "linear", "wgl"):
            assert analysis(BrokerGroup(), operations, algorithm=algorithm).valid is truth, operations
    assert seen == {Verdict.VALID, Verdict.INVALID}


@pytest.mark.parametrize("seed", range(8))
def test_a_wrong_answer_is_found(seed: int) -> None:
    """A wrong next id is invalid."""
    operations = history(seed)
    operations.append(operation_of(len(operations) + 2, "next", None, {"code": 0, "next": 999}))
    result = analysis(BrokerGroup(), operations, time_limit=20)
    assert result.valid is Verdict.INVALID
    assert "next 999" in result.explanation


def test_two_owners_of_an_id_are_explained() -> None:
    """The explanation has the state and its answer."""
    first = operation_of(0, *apply(1, "a;1"), {"code": 0})
    second = operation_of(9, *apply(1, "b;1"), {"code": 0})
    result = analysis(BrokerGroup(), [first, second])
    assert result.valid is Verdict.INVALID
    assert "a group with the brokers 1 answers code 2014" in result.explanation


@pytest.mark.parametrize(
    ("f", "argument"),
    [
        ("read", None),
        ("next", 1),
        ("apply", None),
        ("apply", {"id": "1", "check": "a"}),
        ("apply", {"id": True, "check": "a"}),
        ("apply", {"id": 2**63, "check": "a"}),
        ("apply", {"id": 1}),
        ("alter", {"master": 1, "master_epoch": 1, "sync_set": [1, [2]], "sync_epoch": 1}),
        ("clean", {"ids": [1] * 1001, "living": False}),
        ("elect", {"id": 1, "designate": 1}),
    ],
)
def test_foreign_operations_are_refused(f: str, argument: Any) -> None:
    """A bad operation is an error with the expected form."""
    with pytest.raises(ModelError, match="model broker-group: expected"):
        analysis(BrokerGroup(), [operation_of(0, f, argument, {"code": 0})])


def test_every_function_has_a_rule() -> None:
    """Each function has an answer for an absent group."""
    some: dict[type, Any] = {int: 1, str: "a", bool: False, list: [1]}
    for f, fields in FUNCTIONS.items():
        _, said = respond(Group(), f, {name: some[kind] for name, kind in fields.items()} or None)
        assert isinstance(said["code"], int)
