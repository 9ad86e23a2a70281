"""The operations of the set workload, and the parts of its verdict."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from harness.combinators import limit, time_limit
from harness.declare import click_options
from harness.errors import InputError
from harness.final_reads import FinalReads
from harness.history import pair
from harness.load import ClosedLoop
from harness.node import Node
from harness.op import FINAL_PHASE, Fail, Invocation, Ok, OpType, Outcome
from harness.option_values import build
from harness.testing import simulate
from harness.verdict import Verdict
from harness.workload import Observed
from tests.unit.workloads.streams import described, drawn, in_turns
from workloads.set import SetOptions, SetWorkload

NODE = Node(name="n1", address="10.0.0.1")


class Sets:
    """Correct sets in memory; the adds of some elements are refused."""

    def __init__(self) -> None:
        self.sets: dict[str | None, list[int]] = {}

    def __call__(self, _: int, invocation: Invocation) -> Outcome:
        """Carries out an operation."""
        members = self.sets.setdefault(invocation.key, [])
        if invocation.f == "read":
            return Ok(list(members))
        if invocation.value % 7 == 0:
            return Fail("refused")
        members.append(invocation.value)
        return Ok(invocation.value)


def test_the_nth_operation_depends_on_seed_stream_and_n_alone() -> None:
    """The n-th operation of a stream does not depend on other streams, on answers, or on the number of operations."""
    turns = in_turns(SetWorkload(), [0, 1] * 300, streams=4)
    assert turns == {number: drawn(SetWorkload(), number, 300, streams=4) for number in (0, 1)}
    assert drawn(SetWorkload(), 0, 600, streams=4)[:300] == turns[0]
    assert turns[0] != turns[1]


def test_no_element_is_added_twice() -> None:
    """All elements are distinct, over all sets and streams."""
    options = SetOptions(keys=3)
    added = [
        invocation.value
        for number in range(4)
        for invocation in drawn(SetWorkload(options), number, 300)
        if invocation.f == "add"
    ]
    assert len(added) > 1000
    assert len(set(added)) == len(added)
    assert min(added) > 0


def test_reads_are_as_rare_as_the_options_say() -> None:
    """For a small set, the option gives the adds for each read; for a large one, the returned elements for each add."""
    many = Counter(
        invocation.f for invocation in drawn(SetWorkload(SetOptions(reads_every=20, read_cost=1_000_000)), 0, 20_000)
    )
    assert many["add"] / many["read"] == pytest.approx(20, rel=0.2)
    large = drawn(SetWorkload(SetOptions(reads_every=1, read_cost=5)), 0, 100_000, streams=1)
    returned = added = 0
    for invocation in large:
        if invocation.f == "add":
            added += 1
        else:
            returned += added
    assert returned / added == pytest.approx(5, rel=0.3)


def test_sets_are_used_evenly() -> None:
    """One set has no key; several have one each."""
    assert {invocation.key for invocation in drawn(SetWorkload(), 0, 100)} == {None}
    keys = Counter(invocation.key for invocation in drawn(SetWorkload(SetOptions(keys=3)), 0, 3000))
    assert sorted(map(str, keys)) == ["s0", "s1", "s2"]
    assert min(keys.values()) > 900


@pytest.mark.parametrize("wrong", [{"keys": 0}, {"reads_every": 0}, {"read_cost": 0}])
def test_options_out_of_range_are_refused(wrong: dict[str, Any]) -> None:
    """The error has the expected values."""
    with pytest.raises(InputError, match=r"expected a number from 1 to [0-9,]+, not 0"):
        SetOptions(**wrong)


def test_the_verdict_depends_on_options_about_reads() -> None:
    """`labrys check` and `labrys analyze` have the options about reads, and the rest that counts without one of them."""
    assert [option.name for option in click_options(SetOptions, judging=True)] == [
        "linearizable",
        "exact_reads",
        "rest",
    ]
    assert build(SetOptions, {"linearizable": False}) == SetOptions(linearizable=False)


@pytest.mark.parametrize("keys", [1, 3])
def test_a_correct_system_is_valid_with_its_final_reads(keys: int) -> None:
    """Every set is read after healing, so every element is read."""
    workload, sets = SetWorkload(SetOptions(keys=keys, reads_every=20)), Sets()
    load = ClosedLoop(concurrency=5)
    main = simulate(time_limit(5, workload.generator(seed=4, streams=5)), load=load, respond=sets)
    final = simulate(workload.final_generator(history=main, node=NODE), load=load, respond=sets)
    assert {(op.f, op.phase) for op in final} == {("read", FINAL_PHASE)}
    assert len([op for op in final if op.type is OpType.INVOKE]) == keys
    later = [
        op._replace(index=op.index + len(main), time_ns=op.time_ns + main[-1].time_ns, process=1000 + int(op.process))
        for op in final
    ]
    parts = workload.check(pair([*main, *later]), Observed(final_reads=FinalReads(through=("n1",))))
    assert {part.name: part.verdict for part in parts} == {"set": Verdict.VALID, "final-reads": Verdict.VALID}
    assert parts[0].details["counts"]["failed"] > 20
    assert [part.name for part in workload.check(pair(main), Observed())] == ["set"]
    assert workload.check(pair(main), Observed())[0].verdict is Verdict.UNKNOWN


def test_streams_are_described_as_they_are_drawn() -> None:
    """`labrys plan` shows the operations."""
    preview = described(SetWorkload(), seed=1, streams=4, count=5)
    assert [stream["stream"] for stream in preview] == [0, 1, 2, 3]
    asked = [(operation["f"], operation["value"]) for operation in preview[2]["operations"]]
    assert asked == [(invocation.f, invocation.value) for invocation in drawn(SetWorkload(), 2, 5)]
    assert simulate(limit(3, SetWorkload().generator(seed=1, streams=3)))
