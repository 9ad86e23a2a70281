"""The log workload finds planted bugs by kind, and a correct log under the same faults passes."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from harness.final_reads import FinalReads
from harness.load import ClosedLoop, OpenLoop
from harness.op import OpType
from harness.verdict import Verdict
from harness.workload import Observed
from tests.catches.logs import OF_WATCHES, Bug, LogService
from tests.catches.services import run
from workloads.log import LogOptions, LogWorkload

if TYPE_CHECKING:
    from pathlib import Path

    from harness.load import Load
    from harness.verdict import Part

SECONDS = 5.0
LOADS: dict[str, Load] = {"closed": ClosedLoop(concurrency=6), "open": OpenLoop(rate_per_node=60)}
# The kind of each bug, with offsets in answers and without.
NAMES = {
    Bug.LOST_APPEND: ("lost", "lost"),
    Bug.SAME_OFFSET: ("conflict", "lost"),
    Bug.APPLIED_TWICE: ("duplicated", "duplicated"),
    Bug.DIRTY_READ: ("lost", "lost"),
    Bug.REFUSED_APPLIED: ("unexpected", "unexpected"),
    Bug.STALE_READ: ("stale", "stale"),
    Bug.REORDERED: ("reordered", "reordered"),
    Bug.TRUNCATED: ("conflict", "changed or lost"),
    Bug.WATCH_SKIPS: ("skipped or stale", "skipped or stale"),
    Bug.WATCH_REPEATS: ("repeated", "repeated"),
    Bug.WATCH_DISORDERS: ("disordered", "disordered"),
    Bug.WATCH_OLDER: ("outside", "outside"),
}
FOLLOWING = {"following": LogOptions(follow=True), "several following": LogOptions(follow=True, keys=3, read_share=0.5)}
OPTIONS = {"one": LogOptions(), "several": LogOptions(keys=3, read_share=0.5, recent=30)}


def judge(service: LogService, *, seed: int, load: Load, options: LogOptions, path: Path) -> dict[str, Part]:
    """Runs once and returns the parts of the verdict. Requires that faults occurred."""
    workload = LogWorkload(options)
    operations = run(workload, service, seed=seed, load=load, seconds=SECONDS, path=path / "history.jsonl")
    types = Counter(operation.type for operation in operations)
    errors = Counter((operation.error or "").partition(":")[0] for operation in operations)
    assert types[OpType.OK] > 400
    assert errors["timeout"] > 2
    assert errors["no-answer"] > 10
    assert errors["not-leader"] > 5
    assert service.late > 5
    return {part.name: part for part in workload.check(operations, Observed(final_reads=FinalReads()))}


CASES = [
    pytest.param(bug, seed, options, id=f"{bug}-{name}")
    for bug in Bug
    for seed, (name, options) in enumerate((FOLLOWING if bug in OF_WATCHES else OPTIONS).items())
]


@pytest.mark.parametrize("offsets", [True, False], ids=["offsets", "nulls"])
@pytest.mark.parametrize(("bug", "seed", "options"), CASES)
def test_a_planted_bug_is_found_by_its_name(
    bug: Bug, offsets: bool, options: LogOptions, seed: int, tmp_path: Path
) -> None:
    """Each bug is found with every seed, with a small counterexample."""
    service = LogService(seed, bug, offsets=offsets)
    part = judge(service, seed=seed, load=LOADS["closed"], options=options, path=tmp_path)["log"]
    assert service.bugs > 2
    assert part.verdict is Verdict.INVALID
    names = NAMES[bug][not offsets].split(" or ")
    examples = [example for example in part.details["counterexamples"] if example["kind"] in names]
    assert examples
    for example in examples:
        assert example["explanation"]
        assert 1 <= len(example["operations"]) <= 12
        assert {operation.get("key") for operation in example["operations"]} == {example["key"]}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("load", LOADS.values(), ids=LOADS)
@pytest.mark.parametrize("options", [*OPTIONS.values(), *FOLLOWING.values()], ids=[*OPTIONS, *FOLLOWING])
@pytest.mark.parametrize("offsets", [True, False], ids=["offsets", "nulls"])
def test_a_correct_log_passes(offsets: bool, options: LogOptions, load: Load, seed: int, tmp_path: Path) -> None:
    """Lost, late and refused requests, hung clients and offsets of the system are not bugs; all entries are read."""
    service = LogService(seed, None, offsets=offsets, gap=seed % 3)
    parts = judge(service, seed=seed, load=load, options=options, path=tmp_path)
    assert {name: part.verdict for name, part in parts.items()} == {
        "log": Verdict.VALID,
        "final-reads": Verdict.VALID,
    }
    counts = parts["log"].details["counts"]
    assert counts["ok"] == counts["acknowledged"]
    assert counts["recovered"] > 0


def test_a_stale_log_passes_where_reads_need_not_be_linearizable(tmp_path: Path) -> None:
    """Stale entries are counted, with the time for which they were stale."""
    service = LogService(1, Bug.STALE_READ)
    options = LogOptions(linearizable=False)
    part = judge(service, seed=1, load=LOADS["closed"], options=options, path=tmp_path)["log"]
    assert part.verdict is Verdict.VALID
    assert part.details["counts"]["stale"] > 2
    assert 0 < part.details["figures"][""]["stale-latencies"]["1"] < 1000
