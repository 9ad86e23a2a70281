"""The table of verdicts by system and workload: the last run of a case counts, and nothing is left out in silence."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from results.store.store import Run, Store
from tests.examples import DEFAULT
from tests.unit.results.stored import store_run, suite_document
from tests.unit.results.synthetic import record
from tools.verdicts import last_runs, main, table

if TYPE_CHECKING:
    from pathlib import Path

OLD, NEW = "20260729T101112.123Z", "20260730T101112.123Z"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """A store with a valid run, and an invalid one."""
    made = Store(tmp_path_factory.mktemp("store"))
    for stale in (False, True):
        store_run(made, record(seed=11 if stale else 7, operations=400, stale=stale))
    return made


def result(run: Run | None, ended: str) -> dict[str, Any]:
    """The result of a case."""
    folder = None if run is None else str(run.path)
    return {**suite_document()["results"]["a"], "run": folder, "ended": ended, "why": "because"}


def save(store: Store, stamp: str, **results: dict[str, Any]) -> None:
    """Writes the results of a suite."""
    folder = store.root / "suites" / "s" / stamp
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "suite.json").write_text(json.dumps(suite_document(cases=list(results), results=results)))


def test_a_row_has_the_proved_faults_and_how_the_cases_ended(store: Store) -> None:
    """Of a case that ran twice, only the later run counts."""
    invalid, valid = store.runs()
    save(store, OLD, a=result(invalid, "invalid, expected valid"), b=result(valid, "valid"))
    save(store, NEW, a=result(valid, "valid"), c=result(invalid, "invalid, as expected"))
    cases, problems = last_runs([store])
    assert problems == []
    assert {case.name: case.ended for case in cases} == {"a": "valid", "b": "valid", "c": "invalid, as expected"}
    assert {case.name: case.unproved for case in cases} == {"a": 0, "b": 0, "c": 1}
    [row] = table(cases).splitlines()[2:]
    system, workload, suites, operations, faults, verdicts = row.strip("| ").split(" | ")
    assert (system, workload, suites) == (f"{DEFAULT} 0.4.0", "`register`", "`s` 19")
    assert operations == f"{sum(case.operations for case in cases):,}"
    assert faults == "`kill` 3, `partition-leader` 3, `partition-random-halves` 3, `pause` 3, 1 without a proof"
    assert verdicts == "2 valid; 1 invalid, as expected"


def test_what_is_left_out_is_named(store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A case that ended without a run, and a damaged suite."""
    other = Store(tmp_path)
    save(other, OLD, a=result(None, "error 255"))
    save(other, NEW)
    (tmp_path / "suites" / "s" / NEW / "suite.json").write_text("{")
    main(str(tmp_path))
    printed = capsys.readouterr()
    assert printed.out.splitlines()[2:] == []
    first, second, count = printed.err.splitlines()
    assert first == f"left out: a of s/{OLD} has no run: error 255: because"
    assert second.startswith(f"left out: s/{NEW}: suite.json cannot be read: ")
    assert count == "0 cases in 1 store"
