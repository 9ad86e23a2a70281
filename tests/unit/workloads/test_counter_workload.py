"""The operations of the counter workload, and the parts of its verdict."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from harness.combinators import time_limit
from harness.errors import InputError
from harness.final_reads import FinalReads
from harness.history import pair
from harness.load import ClosedLoop
from harness.node import Node
from harness.op import FINAL_PHASE, Invocation, Ok, OpType, Outcome
from harness.testing import simulate
from harness.verdict import Verdict
from harness.workload import Observed
from tests.unit.workloads.streams import described, drawn, in_turns
from workloads.counter import CounterOptions, CounterWorkload

NODE = Node(name="n1", address="10.0.0.1")


def test_the_nth_operation_depends_on_seed_stream_and_n_alone() -> None:
    """The n-th operation of a stream does not depend on other streams or on the number of operations."""
    turns = in_turns(CounterWorkload(), [0, 1] * 200, streams=2)
    assert turns == {number: drawn(CounterWorkload(), number, 200, streams=2) for number in (0, 1)}
    assert drawn(CounterWorkload(), 0, 400, streams=2)[:200] == turns[0]
    assert turns[0] != turns[1]


def test_operations_are_those_of_the_options() -> None:
    """The options determine the shares of reads and of negative amounts, the largest amount, and the counters."""
    options = CounterOptions(keys=3, read_share=0.3, negative_share=0.4, largest=4)
    draws = drawn(CounterWorkload(options), 0, 5000)
    adds = [draw.value for draw in draws if draw.f == "add"]
    assert len(adds) / 5000 == pytest.approx(0.7, abs=0.03)
    assert sum(amount < 0 for amount in adds) / len(adds) == pytest.approx(0.4, abs=0.03)
    assert {abs(amount) for amount in adds} == {1, 2, 3, 4}
    assert {draw.key for draw in draws} == {"c0", "c1", "c2"}
    assert {draw.key for draw in drawn(CounterWorkload(), 0, 50)} == {None}


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"read_share": 0.0}, "expected a share of reads between 0 and 1, not 0.0"),
        ({"read_share": 1.0}, "expected a share of reads between 0 and 1, not 1.0"),
        ({"keys": 0}, "keys: expected a number from 1 to 10,000, not 0"),
        ({"largest": 0}, "largest: expected a number from 1 to 1,000,000,000, not 0"),
        ({"negative_share": 2.0}, "negative-share: expected a number from 0 to 1, not 2.0"),
    ],
)
def test_options_that_test_nothing_are_refused(wrong: dict[str, Any], message: str) -> None:
    """The message says what was expected."""
    with pytest.raises(InputError, match=message):
        CounterOptions(**wrong)


@pytest.mark.parametrize("keys", [1, 3])
def test_a_correct_system_is_valid_with_its_final_reads(keys: int) -> None:
    """Every counter is read after healing."""
    workload = CounterWorkload(CounterOptions(keys=keys))
    counts: Counter[str | None] = Counter()

    def respond(_: int, invocation: Invocation) -> Outcome:
        counts[invocation.key] += invocation.value or 0
        return Ok(counts[invocation.key] if invocation.f == "read" else invocation.value)

    load = ClosedLoop(concurrency=5)
    main = simulate(time_limit(5, workload.generator(seed=4, streams=5)), load=load, respond=respond)
    final = simulate(workload.final_generator(history=main, node=NODE), load=load, respond=respond)
    assert {(op.f, op.phase) for op in final} == {("read", FINAL_PHASE)}
    assert len([op for op in final if op.type is OpType.INVOKE]) == keys
    later = [
        op._replace(index=op.index + len(main), time_ns=op.time_ns + main[-1].time_ns, process=1000 + int(op.process))
        for op in final
    ]
    parts = workload.check(pair([*main, *later]), Observed(final_reads=FinalReads(through=("n1",))))
    assert {part.name: part.verdict for part in parts} == {"counter": Verdict.VALID, "final-reads": Verdict.VALID}
    assert parts[0].details["counts"]["not-read"] == 0
    assert [part.name for part in workload.check(pair(main), Observed())] == ["counter"]


def test_streams_are_described_as_they_are_drawn() -> None:
    """`labrys plan` shows the operations."""
    preview = described(CounterWorkload(), seed=1, streams=2, count=5)
    asked = [(operation["f"], operation["value"]) for operation in preview[1]["operations"]]
    assert asked == [(draw.f, draw.value) for draw in drawn(CounterWorkload(), 1, 5, streams=2)]
