"""The register workload finds planted bugs, and a correct service under the same faults passes."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING

import pytest

from harness.final_reads import FinalReads
from harness.load import ClosedLoop, OpenLoop
from harness.op import Ok, OpType
from harness.verdict import Verdict
from harness.workload import Observed
from tests.catches import services
from tests.catches.registers import TIMEOUT_S, Bug, Service, run
from workloads.register import RegisterOptions, RegisterWorkload, Values

if TYPE_CHECKING:
    from pathlib import Path

    from harness.load import Load
    from harness.op import Invocation, Outcome, Value
    from harness.verdict import Part

SEEDS = range(3)
SECONDS = 10.0
LOADS: dict[str, Load] = {"closed": ClosedLoop(concurrency=6), "open": OpenLoop(rate_per_node=60)}
SMALL = RegisterOptions(values=Values.SMALL, ops_per_key=40, hot_keys=0)
UNIQUE = RegisterOptions(ops_per_key=60)


def judge(bug: Bug | None, seed: int, load: Load, options: RegisterOptions, path: Path) -> dict[str, Part]:
    """Runs once and returns the parts of the verdict. Requires that the bug and faults occurred."""
    workload = RegisterWorkload(options)
    service, operations = run(workload, seed=seed, bug=bug, load=load, seconds=SECONDS, path=path / "history.jsonl")
    types = Counter(operation.type for operation in operations)
    errors = Counter((operation.error or "").partition(":")[0] for operation in operations)
    assert types[OpType.OK] > 400
    assert errors["timeout"] > 2
    assert errors["no-answer"] > 10
    assert errors["not-leader"] > 5
    assert service.late > 5
    assert (service.bugs > 2) == (bug is not None)
    return {part.name: part for part in workload.check(operations, Observed(final_reads=FinalReads()))}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("load", LOADS.values(), ids=LOADS)
@pytest.mark.parametrize("bug", Bug)
def test_a_planted_bug_is_found(bug: Bug, load: Load, seed: int, tmp_path: Path) -> None:
    """With unique values, each bug is found with each seed, with a small counterexample."""
    part = judge(bug, seed, load, UNIQUE, tmp_path)["linearizable"]
    assert part.verdict is Verdict.INVALID
    example = part.details["counterexample"]
    assert example["explanation"]
    assert 1 <= len(example["operations"]) <= 8
    assert {operation.get("key") for operation in example["operations"]} == {example["key"]}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("bug", Bug)
def test_a_planted_bug_is_found_with_small_values(bug: Bug, seed: int, tmp_path: Path) -> None:
    """With Jepsen's five values, a wrong answer can be right by chance, but not all of them."""
    assert judge(bug, seed, LOADS["closed"], SMALL, tmp_path)["linearizable"].verdict is Verdict.INVALID


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("load", LOADS.values(), ids=LOADS)
@pytest.mark.parametrize("options", [UNIQUE, SMALL], ids=["unique", "small"])
def test_a_correct_service_passes(options: RegisterOptions, load: Load, seed: int, tmp_path: Path) -> None:
    """Lost, late and refused requests and hung clients are not bugs; every part is valid with the same seeds."""
    parts = judge(None, seed, load, options, tmp_path)
    assert {name: part.verdict for name, part in parts.items()} == {
        "linearizable": Verdict.VALID,
        "reads-saw-writes": Verdict.VALID,
        "final-reads": Verdict.VALID,
    }


def test_a_run_is_the_same_every_time(tmp_path: Path) -> None:
    """The seed determines operations, faults, bug and interleaving, so that a failure can be repeated."""
    histories = []
    for name in ("one", "other"):
        path = tmp_path / f"{name}.jsonl"
        run(RegisterWorkload(), seed=1, bug=Bug.STALE_READ, load=LOADS["open"], seconds=5, path=path)
        histories.append(path.read_bytes())
    assert histories[0] == histories[1]
    assert len(histories[0]) > 10_000 * TIMEOUT_S


class Numbered(Service):
    """A correct service that numbers its changes, with an occasional wrong number."""

    def __init__(self, seed: int, *, wrong: float) -> None:
        super().__init__(seed, None)
        self._wrong = wrong
        self._random = Random(seed)
        self._changes = 0

    def _write(self, key: str, value: Value) -> None:
        super()._write(key, value)
        self._changes += 1

    async def apply(self, invocation: Invocation) -> Outcome:
        """Answers with the number of the last change."""
        outcome = await super().apply(invocation)
        if not isinstance(outcome, Ok):
            return outcome
        behind = 60 if self._random.random() < self._wrong else 0
        return replace(outcome, order=self._changes - behind)


@pytest.mark.parametrize("options", [UNIQUE, SMALL], ids=["unique", "small"])
def test_a_service_that_numbers_its_changes_wrongly_is_found(options: RegisterOptions, tmp_path: Path) -> None:
    """Its answers are linearizable, and the part about its order is invalid."""
    workload = RegisterWorkload(options)
    for wrong, expected in ((0.0, Verdict.VALID), (0.05, Verdict.INVALID)):
        service, path = Numbered(1, wrong=wrong), tmp_path / f"{wrong}.jsonl"
        operations = services.run(workload, service, seed=1, load=LOADS["closed"], seconds=SECONDS, path=path)
        parts = {part.name: part for part in workload.check(operations, Observed())}
        assert parts["linearizable"].verdict is Verdict.VALID
        assert parts["order-agrees"].verdict is expected
        assert parts["order-agrees"].reason
