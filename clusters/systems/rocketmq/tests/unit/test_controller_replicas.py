"""Comparison of the groups of all controllers, by their answers to the final reads."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from clusters.systems.rocketmq.workloads.replicas import replicas_equal
from harness.final_reads import FinalReads
from harness.op import FINAL_PHASE, Operation, OpType
from harness.verdict import Verdict

ALL = FinalReads(through=("n1", "n2"))
ABSENT = {"code": 0, "known": False}


def state(master: int | None, epoch: int, in_sync: list[int], sync_epoch: int, **more: Any) -> dict[str, Any]:
    """A group of the brokers 1 and 2, in the form of the answer to 1006."""
    told = {id_: [id_, f"broker-{id_}:1", False] for id_ in (1, 2)}
    answer = {
        "code": 0, "known": True, "master_epoch": epoch, "sync_epoch": sync_epoch,
        "in_sync": [told[id_] for id_ in in_sync], "not_in_sync": [told[id_] for id_ in (1, 2) if id_ not in in_sync],
    }  # fmt: skip
    return answer | ({} if master is None else {"master": master}) | more


def read(index: int, node: str, result: Any, f: str = "state") -> Operation:
    """A final read through a controller."""
    return Operation(
        process=0, f=f, value=None, result=result, type=OpType.OK, start_ns=index, end_ns=index, key="g",
        invoke_index=2 * index, complete_index=2 * index + 1, node=node, phase=FINAL_PHASE,
    )  # fmt: skip


def reads(one: Any, other: Any, f: str = "state") -> list[Operation]:
    """One read through each of two controllers."""
    return [read(1, "n1", one, f), read(2, "n2", other, f)]


BEAT = replace(read(0, "n1", {"code": 0}, "heartbeat"), phase=None)
OPEN = replace(read(0, "n1", None, "apply"), phase=None, type=OpType.INFO)
ONE = state(1, 1, [1, 2], 2)


@pytest.mark.parametrize(
    ("operations", "verdict"),
    [
        (reads(ONE, ONE), Verdict.VALID),
        (reads(ONE, ABSENT), Verdict.INVALID),
        (reads({"code": 0, "next": 2}, {"code": 0, "next": 1}, "next"), Verdict.INVALID),
        # Without heartbeats there are no elections; with them, an election raises the epoch.
        (reads(ONE, state(2, 2, [2], 3)), Verdict.INVALID),
        ([BEAT, *reads(ONE, state(2, 2, [2], 3))], Verdict.VALID),
        ([BEAT, *reads(ONE, state(None, 2, [1, 2], 2))], Verdict.VALID),
        ([BEAT, *reads(state(2, 2, [2], 3), ONE)], Verdict.INVALID),
        ([BEAT, *reads(ONE, state(2, 1, [1, 2], 2))], Verdict.INVALID),
        ([BEAT, *reads(state(1, 1, [1], 1), state(2, 2, [2], 2))], Verdict.INVALID),  # 2 was not in sync
        # No living broker: the same group.
        ([BEAT, *reads(ONE, {**ONE, "in_sync": [[1, "broker-1:2", False], [2, "broker-2:1", False]]})], Verdict.INVALID),
        # A change that can take effect in between.
        ([OPEN, *reads(ONE, ABSENT)], Verdict.UNKNOWN),
        (reads(ONE, ONE)[:1], Verdict.UNKNOWN),
        ([], Verdict.UNKNOWN),
    ],
)  # fmt: skip
def test_two_controllers(operations: list[Operation], verdict: Verdict) -> None:
    """The controllers have the same group, or one that elections of their own can lead to."""
    part = replicas_equal(operations, ALL)
    assert part.verdict is verdict, part.reason


def test_a_controller_that_never_led() -> None:
    """The others are compared; the part is unknown without a difference, and invalid with one."""
    reached = FinalReads(through=("n1", "n2"), left_out={"n3": "did not become leader in 15 s"})
    part = replicas_equal(reads(ONE, ONE), reached)
    assert part.verdict is Verdict.UNKNOWN
    assert "n3 did not answer" in part.reason
    part = replicas_equal(reads(ONE, ABSENT), reached)
    assert part.verdict is Verdict.INVALID
    assert "through n1 (event 2)" in part.reason
    assert "through n2 (event 4)" in part.reason


def test_without_final_reads() -> None:
    """The part has the reason."""
    part = replicas_equal([], FinalReads(missing="The system did not work again, so its keys were not read."))
    assert part.verdict is Verdict.UNKNOWN
    assert "did not work again" in part.reason


def test_the_last_answer_of_a_controller_counts() -> None:
    """Of several reads through one controller, the last one counts."""
    again = [read(1, "n1", ABSENT), read(2, "n1", ONE), read(3, "n2", ONE)]
    assert replicas_equal(again, ALL).verdict is Verdict.VALID
