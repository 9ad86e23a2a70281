"""The counter workload finds planted bugs, and a correct service under the same faults passes."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from harness.final_reads import FinalReads
from harness.load import ClosedLoop, OpenLoop
from harness.verdict import Verdict
from harness.workload import Observed
from tests.catches.counters import Bug, Service
from tests.catches.services import run
from workloads.counter import CounterOptions, CounterWorkload

if TYPE_CHECKING:
    from pathlib import Path

    from harness.load import Load
    from harness.verdict import Part

SEEDS = range(2)
LOADS: dict[str, Load] = {"closed": ClosedLoop(concurrency=6), "open": OpenLoop(rate_per_node=80)}
OPTIONS = {
    "up": CounterOptions(negative_share=0),
    "both": CounterOptions(),
    "many": CounterOptions(keys=5),
}


def judge(bug: Bug | None, seed: int, load: Load, options: CounterOptions, path: Path) -> dict[str, Part]:
    """Runs once and returns the parts of the verdict. Requires that the bug and faults occurred."""
    workload, service = CounterWorkload(options), Service(seed, bug)
    operations = run(workload, service, seed=seed, load=load, seconds=6, path=path / "history.jsonl")
    errors = Counter((operation.error or "").partition(":")[0] for operation in operations)
    assert len(operations) > 300
    assert min(errors["timeout"], errors["no-answer"], errors["not-leader"], service.late) > 2, errors
    assert (service.bugs > 2) == (bug is not None)
    return {part.name: part for part in workload.check(operations, Observed(final_reads=FinalReads()))}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("load", LOADS.values(), ids=LOADS)
@pytest.mark.parametrize("options", [OPTIONS["up"], OPTIONS["both"]], ids=["up", "both"])
@pytest.mark.parametrize("bug", Bug)
def test_a_planted_bug_is_found(bug: Bug, options: CounterOptions, load: Load, seed: int, tmp_path: Path) -> None:
    """Each bug moves a read out of its bounds, and the part shows this read last."""
    part = judge(bug, seed, load, options, tmp_path)["counter"]
    assert part.verdict is Verdict.INVALID
    example = part.details["counterexample"]
    assert example["kind"] == "out-of-bounds"
    assert example["op"] == example["operations"][-1]
    assert "was possible: it is" in part.reason


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("load", LOADS.values(), ids=LOADS)
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_a_correct_service_passes(options: CounterOptions, load: Load, seed: int, tmp_path: Path) -> None:
    """Lost, late and refused requests and hung clients widen the bounds, and no read leaves them."""
    parts = judge(None, seed, load, options, tmp_path)
    assert {name: part.verdict for name, part in parts.items()} == {
        "counter": Verdict.VALID,
        "final-reads": Verdict.VALID,
    }
    assert all(figures["widest-interval"] > 0 for figures in parts["counter"].details["figures"].values())
