"""The set workload finds planted bugs by kind, and a correct service under the same faults passes."""

from __future__ import annotations

from collections import Counter
from types import MappingProxyType
from typing import TYPE_CHECKING

import pytest

from harness.final_reads import FinalReads
from harness.load import ClosedLoop, OpenLoop
from harness.verdict import Verdict
from harness.workload import Observed
from tests.catches.services import run
from tests.catches.sets import Bug, Service
from workloads.set import SetOptions, SetWorkload

if TYPE_CHECKING:
    from pathlib import Path

    from harness.load import Load
    from harness.verdict import Part

SEEDS = range(2)
LOADS: dict[str, Load] = {"closed": ClosedLoop(concurrency=6), "open": OpenLoop(rate_per_node=80)}
OPTIONS = {
    "one": SetOptions(reads_every=10, read_cost=10_000),
    "many": SetOptions(keys=5, reads_every=5, read_cost=10_000),
}
KINDS = MappingProxyType(
    {
        Bug.LOST_ADD: "lost",
        Bug.ROLLBACK: "lost",
        Bug.STALE_READ: "stale",
        Bug.LOST_PAGE: "stale",
        Bug.DIRTY_ADD: "unexpected",
        Bug.PHANTOM: "unexpected",
        Bug.ADDED_TWICE: "duplicated",
        Bug.TWO_ORDERS: "incomparable",
    }
)


def judge(bug: Bug | None, seed: int, load: Load, options: SetOptions, path: Path) -> dict[str, Part]:
    """Runs once and returns the parts of the verdict. Requires that the bug and faults occurred."""
    workload, service = SetWorkload(options), Service(seed, bug)
    operations = run(workload, service, seed=seed, load=load, seconds=6, path=path / "history.jsonl")
    errors = Counter((operation.error or "").partition(":")[0] for operation in operations)
    assert len(operations) > 300
    assert min(errors["timeout"], errors["no-answer"], errors["not-leader"], service.late) > 2, errors
    assert (service.bugs > 2) == (bug is not None)
    return {part.name: part for part in workload.check(operations, Observed(final_reads=FinalReads()))}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("load", LOADS.values(), ids=LOADS)
@pytest.mark.parametrize("bug", Bug)
def test_a_planted_bug_is_found(bug: Bug, load: Load, seed: int, tmp_path: Path) -> None:
    """Each bug is found with each seed as its kind, with a few operations."""
    part = judge(bug, seed, load, OPTIONS["one"], tmp_path)["set"]
    assert part.verdict is Verdict.INVALID
    assert part.details["counts"][KINDS[bug]] > 0
    example = next(detail for detail in part.details["counterexamples"] if detail["kind"] == KINDS[bug])
    assert example["explanation"]
    assert 1 <= len(example["operations"]) <= 6


@pytest.mark.parametrize("bug", [bug for bug in Bug if bug is not Bug.TWO_ORDERS])  # few reads of one set overlap
def test_a_planted_bug_is_found_in_one_of_many_sets(bug: Bug, tmp_path: Path) -> None:
    """Each set is judged by itself, and the part names the invalid ones."""
    part = judge(bug, 1, LOADS["closed"], OPTIONS["many"], tmp_path)["set"]
    assert part.verdict is Verdict.INVALID
    assert part.details["counts"][KINDS[bug]] > 0
    assert set(part.details["invalid_keys"]) <= {f"s{number}" for number in range(5)}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("load", LOADS.values(), ids=LOADS)
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_a_correct_service_passes(options: SetOptions, load: Load, seed: int, tmp_path: Path) -> None:
    """Lost, late and refused requests and hung clients are not bugs; adds without an answer are recovered."""
    parts = judge(None, seed, load, options, tmp_path)
    assert {name: part.verdict for name, part in parts.items()} == {"set": Verdict.VALID, "final-reads": Verdict.VALID}
    counts = parts["set"].details["counts"]
    assert counts["ok"] == counts["acknowledged"] > 200
    assert counts["recovered"] > 5
    assert counts["failed"] > 2
    assert not any(counts[kind] for kind in (*KINDS.values(), "out-of-order", "never-read"))


@pytest.mark.parametrize("bug", [Bug.STALE_READ, Bug.TWO_ORDERS])
def test_a_service_that_promises_no_linearizable_reads_may_be_late(bug: Bug, tmp_path: Path) -> None:
    """Without the option `linearizable`, stale elements are counted, and the verdict is valid."""
    options = SetOptions(reads_every=10, read_cost=10_000, linearizable=False)
    part = judge(bug, 1, LOADS["closed"], options, tmp_path)["set"]
    assert part.details["counts"]["stale"] > 0
    assert part.verdict is Verdict.VALID
