"""The queue workload finds planted bugs by kind, and a correct service under the same faults passes."""

from __future__ import annotations

from collections import Counter
from types import MappingProxyType
from typing import TYPE_CHECKING

import pytest

from harness.final_reads import FinalReads
from harness.load import ClosedLoop, OpenLoop
from harness.op import OpType
from harness.verdict import Verdict
from harness.workload import Observed
from tests.catches.queues import Bug, Queues
from tests.catches.services import run
from workloads.queue import Delivery, Order, QueueOptions, QueueWorkload

if TYPE_CHECKING:
    from pathlib import Path

    from harness.load import Load
    from harness.verdict import Part

SEEDS = range(2)
MANY_SEEDS = range(6)
SECONDS = 10.0
LOADS: dict[str, Load] = {"closed": ClosedLoop(concurrency=6), "open": OpenLoop(rate_per_node=60)}
OPTIONS = QueueOptions(delivery=Delivery.EXACTLY_ONCE, order=Order.REALTIME, enqueue_share=0.55)
FOUND = MappingProxyType(
    {
        Bug.LOST_ENQUEUE: "lost",
        Bug.TWO_AT_ONCE: "lost",
        Bug.SHORT_DRAIN: "lost",
        Bug.ROLLBACK: "lost",
        Bug.DELIVERED_TWICE: "duplicated",
        Bug.ENQUEUED_TWICE: "duplicated",
        Bug.DIRTY_ENQUEUE: "unexpected",
        Bug.GARBAGE: "unexpected",
        Bug.WRONG_QUEUE: "unexpected",
        Bug.SWAPPED: "reordered",
        Bug.FROM_BEHIND: "reordered",
    }
)


def judge(bug: Bug | None, seed: int, load: Load, options: QueueOptions, path: Path) -> dict[str, Part]:
    """Runs once and returns the parts of the verdict. Requires that the bug and faults occurred."""
    workload = QueueWorkload(options)
    service = Queues(seed, bug)
    operations = run(workload, service, seed=seed, load=load, seconds=SECONDS, path=path / f"{bug}-{seed}.jsonl")
    types = Counter(operation.type for operation in operations)
    errors = Counter((operation.error or "").partition(":")[0] for operation in operations)
    assert types[OpType.OK] > 400
    assert errors["timeout"] > 2
    assert errors["no-answer"] > 10
    assert service.late > 5
    assert bool(service.bugs) == (bug is not None)
    return {part.name: part for part in workload.check(operations, Observed(final_reads=FinalReads()))}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("load", LOADS.values(), ids=LOADS)
@pytest.mark.parametrize("bug", Bug)
def test_a_planted_bug_is_found(bug: Bug, load: Load, seed: int, tmp_path: Path) -> None:
    """Each bug is found as its kind of anomaly."""
    part = judge(bug, seed, load, OPTIONS, tmp_path)["queue"]
    assert part.verdict is Verdict.INVALID
    assert part.details["counts"][FOUND[bug]] > 0
    kinds = {example["kind"] for example in part.details["counterexamples"]}
    assert FOUND[bug] in kinds
    assert all(example["operations"] and example["explanation"] for example in part.details["counterexamples"])


@pytest.mark.parametrize("bug", [Bug.DELIVERED_TWICE, Bug.ENQUEUED_TWICE, Bug.SWAPPED, Bug.FROM_BEHIND])
def test_what_a_system_does_not_promise_is_no_bug(bug: Bug, tmp_path: Path) -> None:
    """By default a value may come out twice and in any order; duplicates are counted."""
    part = judge(bug, 1, LOADS["closed"], QueueOptions(enqueue_share=0.55), tmp_path)["queue"]
    assert part.verdict is not Verdict.INVALID
    assert (part.details["counts"]["duplicated"] > 0) == (FOUND[bug] == "duplicated")


@pytest.mark.parametrize("load", LOADS.values(), ids=LOADS)
def test_a_correct_service_is_never_accused(load: Load, tmp_path: Path) -> None:
    """Lost, late and refused requests and hung clients are not bugs, with any options."""
    for seed in MANY_SEEDS:
        parts = judge(None, seed, load, OPTIONS, tmp_path)
        part = parts["queue"]
        assert {name: number for name, number in part.details["counts"].items() if number} == {
            name: number
            for name, number in part.details["counts"].items()
            if name in {"attempted", "acknowledged", "ok", "recovered"}
        }
        # A drain without an answer may have taken everything, which would hide a loss.
        drained = any(figures["missing_perhaps_drained"] for figures in part.details["figures"].values())
        assert part.verdict is (Verdict.UNKNOWN if drained else Verdict.VALID), part.reason
        assert parts["final-reads"].verdict is Verdict.VALID
        assert part.details["counts"]["recovered"] > 0


def test_a_producer_keeps_its_order_in_a_correct_service(tmp_path: Path) -> None:
    """The weaker order finds the same bugs, and accepts a correct service too."""
    options = QueueOptions(order=Order.PRODUCER, enqueue_share=0.55, queues=1)
    for seed in SEEDS:
        assert judge(None, seed, LOADS["closed"], options, tmp_path)["queue"].verdict is not Verdict.INVALID
        part = judge(Bug.FROM_BEHIND, seed, LOADS["closed"], options, tmp_path)["queue"]
        assert part.verdict is Verdict.INVALID
        assert part.details["counterexample"]["kind"] == "reordered"
