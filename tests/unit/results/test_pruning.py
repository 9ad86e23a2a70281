"""`labrys store prune` removes old runs that are valid, and nothing that someone may still need."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

import cli
from harness.errors import InputError
from results.store.pruning import Rule, doomed
from results.store.store import Store

if TYPE_CHECKING:
    from pathlib import Path

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)
DAY_S = 86_400.0


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Returns a store with two tests: `a` with runs of 1 to 5 days ago, the third invalid, and `b` with one old run."""
    made = Store(tmp_path / "store")
    for days, valid in ((5, "true"), (4, "true"), (3, "false"), (2, '"unknown"'), (1, "true")):
        run = made.create_run("a", NOW - timedelta(days=days))
        run.results_json.write_text(f'{{"valid": {valid}, "reason": "r"}}')
        run.history_jsonl.write_text("x" * 1000)
        made.finish(run)
    run = made.create_run("b", NOW - timedelta(days=9))
    run.results_json.write_text('{"valid": true}')
    made.finish(run)
    return made


def gone(store: Store, rule: Rule) -> list[tuple[str, int]]:
    """Returns the test and the age in days of each run that goes by a rule."""
    return [
        (each.run.test_name, (NOW - datetime.strptime(each.run.stamp[:8], "%Y%m%d").replace(tzinfo=UTC)).days)
        for each in doomed(store, rule, NOW)
    ]


def test_valid_runs_go_by_age_and_number(store: Store) -> None:
    """The newest run of a test stays, and so does one that is not valid; with both limits, a run goes only by both."""
    assert gone(store, Rule()) == [("a", 4), ("a", 5)]
    assert gone(store, Rule(older_than_s=4.5 * DAY_S)) == [("a", 5)]
    assert gone(store, Rule(keep=4)) == [("a", 5)]
    assert gone(store, Rule(keep=5)) == []
    assert gone(store, Rule(any_verdict=True)) == [("a", 2), ("a", 3), ("a", 4), ("a", 5)]
    assert gone(store, Rule(older_than_s=2.5 * DAY_S, keep=3, any_verdict=True)) == [("a", 4), ("a", 5)]


def test_a_run_with_its_smallest_version_stays(store: Store) -> None:
    """It is the reproduction that people need, whatever the rule says."""
    smallest = next(run for run in store.runs() if run.test_name == "a" and run.stamp.startswith("20261126"))
    smallest.shrunk_json.write_text("{}")
    assert gone(store, Rule(any_verdict=True)) == [("a", 2), ("a", 4), ("a", 5)]


def test_a_run_that_goes_on_stays(store: Store) -> None:
    """Its process holds a lock."""
    (_, old) = [each.run for each in doomed(store, Rule(), NOW)]
    with old.hold():
        assert gone(store, Rule()) == [("a", 4)]


def test_the_command_removes_folders_and_no_target_of_a_link(
    store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """--dry-run removes nothing; a run that is a link is none, and links within a run are removed as links."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_text("x")
    (*_, oldest) = [each.run for each in doomed(store, Rule(), NOW)]
    (oldest.path / "link").symlink_to(outside)
    (store.root / "a" / "20200101T000000.000Z").symlink_to(outside)
    words = ["store", "prune", "--older-than", "1d", "--store", str(store.root)]
    assert cli.invoke([*words, "--dry-run"]) == 0
    assert capsys.readouterr().err.startswith("2 runs would be removed, ")
    assert cli.invoke(words) == 0
    captured = capsys.readouterr()
    assert captured.out.count(" valid 0.0 MB") == 2
    assert captured.err.startswith("2 runs removed, ")
    assert not oldest.path.exists()
    assert (outside / "kept").exists()
    assert len(store.runs()) == 4
    assert store.open_run("a/latest").stamp.startswith("20261128")


def test_a_rule_is_needed(store: Store) -> None:
    """Without a rule nothing goes, and the error names both."""
    with pytest.raises(InputError, match="needs --older-than TIME"):
        cli.invoke(["store", "prune", "--store", str(store.root)])
