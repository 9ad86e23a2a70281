"""The lock workload finds planted bugs by kind, and a correct service under the same faults passes."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING

import pytest

from harness.combinators import until_ok
from harness.final_reads import FinalReads
from harness.load import ClosedLoop, OpenLoop
from harness.op import OpType
from harness.verdict import Verdict
from harness.workload import Observed
from tests.catches.locks import LEASE_S, Bug, Locks
from tests.catches.services import run
from workloads.lock import LockOptions, LockWorkload

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from harness.generator import Generator
    from harness.load import Load
    from harness.node import Node
    from harness.op import Op
    from harness.verdict import Part

SEEDS = range(2)
MANY_SEEDS = range(6)
SECONDS = 12.0
LOADS: dict[str, Load] = {"closed": ClosedLoop(concurrency=6), "open": OpenLoop(rate_per_node=100)}
OPTIONS = LockOptions(lease_s=LEASE_S, stray_share=0.05)
FOUND = MappingProxyType(
    {
        Bug.GRANTED_TWICE: "two-holders",
        Bug.FORGOTTEN: "two-holders",
        Bug.SHORT_LEASE: "two-holders",
        Bug.FREED_BY_ACQUIRE: "two-holders",
        Bug.TOKEN_RESET: "token-not-growing",
        Bug.TOKEN_REPEATED: "token-twice",
        Bug.FOREIGN_RELEASE: "released-by-other",
    }
)


class WithoutEnd(LockWorkload):
    """The lock workload without its final acquires, which are for a closed loop."""

    def final_generator(self, *, history: Sequence[Op], node: Node) -> Generator:
        """Returns nothing."""
        return until_ok([])


def judge(bug: Bug | None, seed: int, load: Load, path: Path, options: LockOptions = OPTIONS) -> dict[str, Part]:
    """Runs once and returns the parts of the verdict. Requires that the bug and faults occurred."""
    closed = isinstance(load, ClosedLoop)
    workload = (LockWorkload if closed else WithoutEnd)(options)
    service = Locks(seed, bug)
    operations = run(workload, service, seed=seed, load=load, seconds=SECONDS, path=path / f"{bug}-{seed}.jsonl")
    types = Counter(operation.type for operation in operations)
    errors = Counter((operation.error or "").partition(":")[0] for operation in operations)
    assert types[OpType.OK] > 100
    assert errors["timeout"] > 2
    assert errors["no-answer"] > 10
    assert service.late > 5
    assert bool(service.bugs) == (bug is not None)
    reads = FinalReads() if closed else None
    return {part.name: part for part in workload.check(operations, Observed(final_reads=reads))}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("load", LOADS.values(), ids=LOADS)
@pytest.mark.parametrize("bug", Bug)
def test_a_planted_bug_is_found(bug: Bug, load: Load, seed: int, tmp_path: Path) -> None:
    """Each bug is found as its kind of anomaly."""
    part = judge(bug, seed, load, tmp_path)["lock"]
    assert part.verdict is Verdict.INVALID
    assert part.details["counts"][FOUND[bug]] > 0
    assert FOUND[bug] in {example["kind"] for example in part.details["counterexamples"]}
    assert all(example["operations"] and example["explanation"] for example in part.details["counterexamples"])


@pytest.mark.parametrize("load", LOADS.values(), ids=LOADS)
def test_a_correct_service_is_never_accused(load: Load, tmp_path: Path) -> None:
    """Lost, late and refused requests, hung clients and ended leases are not bugs."""
    for seed in MANY_SEEDS:
        parts = judge(None, seed, load, tmp_path)
        assert parts["lock"].verdict is Verdict.VALID, parts["lock"].reason
        assert parts["lock"].details["counts"]["contended"] > 100
        if "final-reads" in parts:
            assert parts["final-reads"].verdict is Verdict.VALID, parts["final-reads"].reason


def test_a_lease_that_the_judge_does_not_know_looks_like_two_holders(tmp_path: Path) -> None:
    """A test of locks with leases needs their length: here a hold takes longer than a lease."""
    long = replace(OPTIONS, hold_ms=1000 * LEASE_S)
    assert judge(None, 1, LOADS["closed"], tmp_path, long)["lock"].verdict is Verdict.VALID
    (tmp_path / "None-1.jsonl").unlink()
    part = judge(None, 1, LOADS["closed"], tmp_path, replace(long, lease_s=None))["lock"]
    assert part.details["counterexample"]["kind"] == "two-holders"
