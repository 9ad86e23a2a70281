"""The workloads on broker groups: their streams, and the rules that need no search."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from clusters.systems.rocketmq.workloads.broker_ids import BrokerIdOptions, BrokerIdWorkload
from clusters.systems.rocketmq.workloads.elections import ElectOptions, ElectWorkload
from clusters.systems.rocketmq.workloads.members import ControllerWorkload, SyncStateSetOptions, SyncStateSetWorkload
from clusters.systems.rocketmq.workloads.parts import (
    altered,
    contended,
    epochs_grow,
    master_in_sync,
    one_master,
    one_owner,
    stood,
)
from harness.about import read_about
from harness.errors import InputError
from harness.generator import Asker
from harness.op import Op, Operation, OpType
from harness.verdict import Verdict
from tests.unit.workloads.streams import described

if TYPE_CHECKING:
    from collections.abc import Callable

    from clusters.systems.rocketmq.workloads.members import MemberWorkload
    from harness.verdict import Part


def test_the_streams_of_a_seed() -> None:
    """The same seed gives the same operations; streams share groups, with different check codes; groups come in sequence."""
    workload = BrokerIdWorkload(BrokerIdOptions(ops_per_group=50))
    said: Any = described(workload, seed=7, streams=5, count=60)
    assert said == described(workload, seed=7, streams=5, count=60)
    assert said != described(workload, seed=8, streams=5, count=60)
    keys = [[operation["key"] for operation in stream["operations"]] for stream in said]
    assert all(own_keys == [f"k{index // 10}" for index in range(60)] for own_keys in keys)
    checks = [
        {operation["value"]["check"] for operation in stream["operations"] if operation["f"] == "apply"}
        for stream in said
    ]
    assert all(len(check) == 1 for check in checks)
    assert len(set.union(*checks)) == 5
    applied = {operation["value"]["id"] for stream in said for operation in stream["operations"] if operation["value"]}
    assert applied == {1, 2, 3, 4, 5}


def test_the_streams_of_elections() -> None:
    """A stream first requests its own id in a group, and then runs for master with it."""
    workload = ElectWorkload(ElectOptions(brokers=3, ops_per_group=50))
    said: Any = described(workload, seed=7, streams=5, count=60)
    assert said == described(workload, seed=7, streams=5, count=60)
    for stream in said:
        operations = stream["operations"]
        assert [operation["f"] for operation in operations[::10]] == ["apply"] * 6
        assert {operation["f"] for operation in operations} == {"apply", "elect", "replica"}
        assert {operation["value"]["id"] for operation in operations if operation["value"]} == {
            1 + stream["stream"] % 3
        }


def elect(index: int, broker: int, result: dict[str, Any]) -> Operation:
    """An answered election."""
    return replace(apply(index, 1, "a", 0), f="elect", value={"id": broker, "designate": False}, result=result)


def alter(index: int, code: int) -> Operation:
    """An answered alter."""
    return replace(apply(index, 1, "a", code), f="alter")


def apply(index: int, broker: int, check: str, code: int) -> Operation:
    """An answered apply."""
    return Operation(
        process=0, f="apply", value={"id": broker, "check": check}, result={"code": code}, type=OpType.OK, start_ns=index,
        end_ns=index, invoke_index=index, complete_index=index + 1, key="k0",
    )  # fmt: skip


@pytest.mark.parametrize("workload", [SyncStateSetWorkload(), ControllerWorkload()])
def test_the_streams_of_members(workload: MemberWorkload[Any]) -> None:
    """A member requests its id and sends a heartbeat. Without an id or a master it requests these instead of an alter."""
    said: Any = described(workload, seed=7, streams=5, count=100)
    assert said == described(workload, seed=7, streams=5, count=100)
    operations = said[1]["operations"]
    assert [operation["f"] for operation in operations[:2]] == ["apply", "heartbeat"]
    assert {operation["f"] for stream in said for operation in stream["operations"]} <= set(workload.functions)
    alters = [operation["value"] for operation in operations if operation["f"] == "alter"]
    assert {alter["master"] for alter in alters} == {"last-seen"}

    generator: Any = workload.generator(seed=7, streams=5)
    asker = Asker(worker=1, process=1, node="n1", now_ns=0, workers=frozenset(range(5)))
    asked: list[Any] = [generator.ask(asker) for _ in range(12)]
    instead = {"alter": "apply"}
    assert [invocation.f for invocation in asked] == [
        instead.get(operation["f"], operation["f"]) for operation in operations[:12]
    ]
    for number in range(30):
        key = f"k{number}"
        value = {"id": 2, "check": "broker-1:10911;1"}
        generator.update(Op(index=0, time_ns=0, process=1, type=OpType.INVOKE, f="apply", value=value, key=key))
        generator.update(Op(index=1, time_ns=1, process=1, type=OpType.OK, f="apply", value={"code": 0}, key=key))
    assert "alter" not in [generator.ask(asker).f for _ in range(30)]
    seen = {"code": 0, "master": 3, "master_epoch": 4, "sync_set": [3], "sync_epoch": 9}
    for number in range(60):
        generator.update(Op(index=2, time_ns=2, process=1, type=OpType.OK, f="replica", value=seen, key=f"k{number}"))
    asked = [generator.ask(asker) for _ in range(200)]
    altering = [invocation.value for invocation in asked if invocation.f == "alter"]
    assert altering
    assert all(argument.items() >= {"master": 3, "master_epoch": 4}.items() for argument in altering)
    assert all(set(argument) == {"master", "master_epoch", "sync_set", "sync_epoch"} for argument in altering)
    others = sum(1 in argument["sync_set"] for argument in altering)
    assert 0 < others < len(altering) / 2, "some sync sets have a broker without an id"
    late = [argument["sync_epoch"] for argument in altering].count(8)
    assert 0 < late < len(altering) / 2, "some expect the epoch before"
    assert [argument["sync_epoch"] for argument in altering].count(9) == len(altering) - late
    assert all(3 in argument["sync_set"] for argument in altering)


def test_shares_that_leave_nothing() -> None:
    """The error has the sum and the options."""
    with pytest.raises(InputError, match=r"= 1.2; lower one of --heartbeat-share, --leave-share"):
        SyncStateSetOptions(heartbeat_share=0.8)


WON = {"code": 0, "master": 1, "master_epoch": 1}
JUDGES: list[tuple[Callable[[list[Operation]], Part], list[Operation], Verdict]] = [
    (one_owner, [], Verdict.UNKNOWN),
    (one_owner, [apply(0, 1, "a", 2014)], Verdict.UNKNOWN),
    (one_owner, [apply(0, 1, "a", 0), apply(2, 1, "a", 0), apply(4, 2, "b", 0)], Verdict.VALID),
    (one_owner, [apply(0, 1, "a", 0), apply(2, 1, "b", 0)], Verdict.INVALID),
    (contended, [], Verdict.UNKNOWN),
    (contended, [apply(0, 1, "a", 0), apply(2, 2, "b", 2014)], Verdict.UNKNOWN),
    (contended, [apply(0, 1, "a", 0), apply(2, 1, "b", 2014)], Verdict.VALID),
    (one_master, [elect(0, 1, {"code": 2012})], Verdict.UNKNOWN),
    (one_master, [elect(0, 1, WON), elect(2, 2, {"code": 2011, "master": 1, "master_epoch": 1})], Verdict.VALID),
    (one_master, [elect(0, 1, WON), elect(2, 2, {"code": 0, "master": 2, "master_epoch": 2})], Verdict.VALID),
    (one_master, [elect(0, 1, WON), elect(2, 2, {"code": 0, "master": 2, "master_epoch": 1})], Verdict.INVALID),
    (master_in_sync, [elect(0, 1, {"code": 2012})], Verdict.UNKNOWN),
    (master_in_sync, [elect(0, 1, {"master": 1, "sync_set": [1, 2]})], Verdict.VALID),
    (master_in_sync, [elect(0, 1, {"master": 1, "sync_set": [2]})], Verdict.INVALID),
    (master_in_sync, [elect(0, 1, {"master": 1, "not_in_sync": [7, [2, "a", True]]})], Verdict.VALID),
    (master_in_sync, [elect(0, 1, {"master": 1, "not_in_sync": [[1, "a", True]]})], Verdict.INVALID),
    (epochs_grow, [elect(0, 1, {"code": 2012})], Verdict.UNKNOWN),
    (epochs_grow, [elect(0, 1, WON), elect(2, 1, WON)], Verdict.VALID),
    (epochs_grow, [elect(0, 1, WON | {"master_epoch": 2}), elect(2, 1, WON)], Verdict.INVALID),
    (epochs_grow, [elect(0, 1, {"sync_epoch": 2}), elect(2, 1, {"sync_epoch": 1})], Verdict.INVALID),
    (
        epochs_grow,
        [replace(elect(0, 1, {"sync_epoch": 2}), complete_index=9), elect(2, 1, {"sync_epoch": 1})],
        Verdict.VALID,
    ),
    (altered, [replace(alter(0, 0), result={"code": [0]})], Verdict.UNKNOWN),
    (stood, [elect(0, 1, {"code": [0]})], Verdict.UNKNOWN),
    (altered, [alter(0, 0)], Verdict.UNKNOWN),
    (altered, [alter(0, 2001)], Verdict.UNKNOWN),
    (altered, [alter(0, 0), alter(2, 2001)], Verdict.VALID),
    (stood, [elect(0, 1, WON)], Verdict.UNKNOWN),
    (stood, [elect(0, 1, WON), elect(2, 2, {"code": 2012})], Verdict.VALID),
]


@pytest.mark.parametrize(("judge", "operations", "verdict"), JUDGES)
def test_the_rules_without_a_search(
    judge: Callable[[list[Operation]], Part], operations: list[Operation], verdict: Verdict
) -> None:
    """A run without a given id, or without contention, tested nothing."""
    part = judge(operations)
    assert part.verdict is verdict
    if verdict is Verdict.INVALID:
        assert "by the answer to event 0" in part.reason
        about = read_about(part.details)
        assert about is not None
        assert set(about.events) == {operation.invoke_index for operation in operations}
