"""The operations of the queue workload, and the parts of its verdict."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from harness.declare import click_options
from harness.errors import InputError
from harness.final_reads import FinalReads
from harness.history import pair
from harness.load import ClosedLoop, OpenLoop
from harness.node import Node
from harness.op import FINAL_PHASE, Fail, Info, Invocation, Ok, OpType, Outcome
from harness.option_values import build
from harness.testing import simulate
from harness.verdict import Verdict
from harness.workload import Observed
from tests.unit.workloads.histories import done
from tests.unit.workloads.streams import described, drawn, in_turns
from workloads.queue import Delivery, Order, QueueOptions, QueueWorkload

if TYPE_CHECKING:
    from collections.abc import Iterator

NODE = Node(name="n1", address="10.0.0.1")


def test_the_nth_operation_depends_on_seed_stream_and_n_alone() -> None:
    """The n-th operation of a stream does not depend on other streams or on the number of operations."""
    turns = in_turns(QueueWorkload(), [0, 1] * 100, streams=4)
    assert turns == {number: drawn(QueueWorkload(), number, 100, streams=4) for number in (0, 1)}
    assert drawn(QueueWorkload(), 0, 200, streams=4)[:100] == turns[0]
    assert turns[0] != turns[1]


def test_no_value_is_put_in_twice() -> None:
    """All enqueued values are distinct, over all queues and streams."""
    values = [draw.value for number in range(4) for draw in drawn(QueueWorkload(), number, 200) if draw.f == "enqueue"]
    assert len(values) > 300
    assert len(set(values)) == len(values)


def test_queues_and_the_share_are_those_of_the_options() -> None:
    """All queues are used evenly, and enqueues have their share."""
    draws = drawn(QueueWorkload(QueueOptions(queues=4, enqueue_share=0.7)), 0, 4000)
    keys = Counter(draw.key for draw in draws)
    assert sorted(map(str, keys)) == ["q0", "q1", "q2", "q3"]
    assert min(keys.values()) > 900
    assert Counter(draw.f for draw in draws)["enqueue"] / 4000 == pytest.approx(0.7, abs=0.03)


def test_a_preview_is_what_will_be_asked() -> None:
    """The description is always the same, and equals the generator's operations."""
    workload = QueueWorkload()
    first, second = (json.dumps(described(workload, seed=1, streams=4, count=30)) for _ in range(2))
    assert first == second
    for stream in json.loads(first):
        assert stream["operations"] == [
            {"f": draw.f, "key": draw.key, "value": draw.value} for draw in drawn(workload, stream["stream"], 30)
        ]
    ops = simulate(workload.generator(seed=1, streams=4), load=ClosedLoop(concurrency=4), stop_s=1, seed=1)
    asked = [Invocation(op.f, op.value, op.key) for op in ops if op.process == 2 and op.type is OpType.INVOKE]
    assert asked == drawn(workload, 2, len(asked))


def test_the_default_is_what_total_queue_holds_a_queue_to() -> None:
    """By default, duplicates are not anomalies, and no order is checked."""
    assert (QueueOptions().delivery, QueueOptions().order) == (Delivery.AT_LEAST_ONCE, Order.NONE)


def test_options_come_from_the_command_line() -> None:
    """The judging options are the delivery and the order."""
    values = {"delivery": "exactly-once", "order": "realtime", "queues": 2, "enqueue_share": 0.4}
    options = build(QueueOptions, values)
    assert options == QueueOptions(delivery=Delivery.EXACTLY_ONCE, order=Order.REALTIME, queues=2, enqueue_share=0.4)
    assert [option.name for option in click_options(QueueOptions, judging=True)] == ["delivery", "order"]


@pytest.mark.parametrize("options", [{"queues": 0}, {"enqueue_share": 0.0}, {"enqueue_share": 1.5}])
def test_options_that_would_test_nothing_are_refused(options: dict[str, float]) -> None:
    """A queue needs enqueues."""
    with pytest.raises(InputError):
        QueueOptions(**options)  # type: ignore[arg-type]


def test_each_queue_that_was_used_is_drained_in_the_end() -> None:
    """A drain that does not succeed is repeated."""
    history = simulate(QueueWorkload().generator(seed=1, streams=3), stop_s=1)
    answers: Iterator[Outcome] = iter([Fail("not-leader"), Info("timeout"), Ok([1])])

    def respond(process: int, invocation: Invocation) -> Outcome:
        return next(answers, Ok([]))

    ops = simulate(QueueWorkload().final_generator(history=history, node=NODE), respond=respond)
    assert {op.phase for op in ops} == {FINAL_PHASE}
    asked = Counter((op.f, op.key) for op in ops if op.type is OpType.INVOKE)
    assert set(asked) == {("drain", "q0"), ("drain", "q1"), ("drain", "q2")}
    assert sum(asked.values()) == 5
    assert {op.key for op in ops if op.type is OpType.OK} == {"q0", "q1", "q2"}


def test_each_queue_is_judged_by_itself() -> None:
    """Each queue has its own values; the worst queue decides, and the part has its operations."""
    operations = [
        done(0, 1, 0, "enqueue", 1, 1, key="a"),
        done(2, 3, 0, "enqueue", 1, 1, key="b"),
        done(4, 5, 1, "drain", None, [1], key="a"),
        done(6, 7, 1, "drain", None, [], key="b"),
    ]
    parts = {part.name: part for part in QueueWorkload().check(operations, Observed(final_reads=FinalReads()))}
    assert set(parts) == {"queue", "final-reads"}
    part = parts["queue"]
    assert (part.verdict, part.details["invalid_keys"]) == (Verdict.INVALID, ["b"])
    assert part.details["counterexample"]["kind"] == "lost"
    assert part.details["counterexample"]["op"]["invoke_index"] == 6
    assert "final-reads" not in {part.name for part in QueueWorkload().check(operations, Observed())}


def test_a_run_without_operations_is_unknown() -> None:
    """A run that tested nothing is not valid."""
    (part,) = QueueWorkload().check([], Observed())
    assert part.verdict is Verdict.UNKNOWN


def test_the_open_loop_asks_the_same() -> None:
    """A node's arrivals are one stream."""
    load = OpenLoop(rate_per_node=50)
    ops = simulate(QueueWorkload().generator(seed=1, streams=load.streams(3)), load=load, stop_s=2, seed=1)
    asked = [Invocation(op.f, op.value, op.key) for op in ops if op.node == "n2" and op.type is OpType.INVOKE]
    assert len(asked) > 50
    assert asked == drawn(QueueWorkload(), 1, len(asked), streams=3)
    assert len(pair(ops)) > 150
