"""`labrys store prune` removes old runs that are valid, and nothing that someone may still need."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import click
import pytest

import cli
from harness.errors import InputError
from results.causes.needed import SMALLEST
from results.store.pruning import FITS, NEWEST, NOT_VALID, RUNNING, Plan, Rule, planned, remove
from results.store.store import Store
from tests.unit.results.test_causes import changed, stored

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
        (entry.run.test_name, (NOW - datetime.strptime(entry.run.stamp[:8], "%Y%m%d").replace(tzinfo=UTC)).days)
        for entry in planned([store], rule, NOW).goes
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
    (_, old) = [entry.run for entry in planned([store], Rule(), NOW).goes]
    with old.hold():
        assert gone(store, Rule()) == [("a", 4)]


def test_the_command_removes_folders_and_no_target_of_a_link(
    store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """--dry-run removes nothing; a run that is a link is none, and links within a run are removed as links."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_text("x")
    (*_, oldest) = [entry.run for entry in planned([store], Rule(), NOW).goes]
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


def test_the_oldest_runs_go_until_the_size_is_kept(store: Store) -> None:
    """Runs that go by age come first; the newest of each test and those that are not valid stay, whatever the size is."""

    def kept(rule: Rule) -> Plan:
        return planned([store], rule, NOW)

    whole = kept(Rule(older_than_s=None, keep_bytes=10**9))
    assert whole.size is not None
    assert (whole.goes, whole.kept[FITS]) == ([], 2)
    one = kept(Rule(older_than_s=None, keep_bytes=whole.size - 1))
    assert [entry.run.stamp[:8] for entry in one.goes] == ["20261124"]
    [first] = one.goes
    assert first.size > 1000
    both = kept(Rule(older_than_s=4.5 * DAY_S, keep_bytes=whole.size - first.size - 1))
    assert [entry.run.stamp[:8] for entry in both.goes] == ["20261125", "20261124"]
    all_of_them = kept(Rule(older_than_s=None, keep_bytes=0))
    assert len(all_of_them.goes) == 2
    assert all_of_them.kept == {NEWEST: 2, NOT_VALID: 2}
    assert len(kept(Rule(older_than_s=None, keep_bytes=0, any_verdict=True)).goes) == 4


def test_causes_are_read_only_if_a_run_would_go(store: Store) -> None:
    """A rule that removes nothing reads no causes; one that removes runs reads them once, and keeps what they need."""
    reads: list[int] = []
    oldest = planned([store], Rule(), NOW).goes[-1].run

    def needed() -> dict[Path, str]:
        reads.append(1)
        return {oldest.path.resolve(): SMALLEST}

    for rule in (Rule(keep=9), Rule(older_than_s=30 * DAY_S), Rule(older_than_s=None, keep_bytes=10**9)):
        assert planned([store], rule, NOW, needed).goes == []
    assert reads == []
    plan = planned([store], Rule(any_verdict=True, keep_bytes=0), NOW, needed)
    assert (len(reads), plan.kept[SMALLEST], len(plan.goes)) == (1, 1, 3)


def test_nights_are_pruned_together(store: Store, tmp_path: Path) -> None:
    """The newest run of a test is that of all stores, so that older nights can go."""
    later = Store(tmp_path / "later")
    run = later.create_run("b", NOW)
    run.results_json.write_text('{"valid": true}')
    plan = planned([later, store, later], Rule(older_than_s=6 * DAY_S), NOW)
    assert [(entry.run.test_name, entry.run.path.parent.parent) for entry in plan.goes] == [("b", store.root)]


def test_what_comes_or_ends_meanwhile_stays(store: Store) -> None:
    """The causes of a run that still went on when they were read are unknown, so it stays; so does one that is used later."""
    oldest = planned([store], Rule(), NOW).goes[-1].run
    held = oldest.hold()
    held.__enter__()

    def meanwhile() -> dict[Path, str]:
        store.create_run("a", NOW + timedelta(seconds=1))
        held.__exit__(None, None, None)
        return {}

    plan = planned([store], Rule(any_verdict=True), NOW, meanwhile)
    assert oldest.path not in [entry.run.path for entry in plan.goes]
    assert plan.kept[RUNNING] == 1
    other = plan.goes[-1].run
    with other.hold():
        assert remove(other) == RUNNING
    assert other.path.is_dir()
    assert remove(other) == ""
    assert remove(other) == ""  # another process was faster


def test_open_causes_keep_their_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of a cause that is gone, the smallest run stays; of one that is not, all; a damaged run is no reason to stop."""
    root = tmp_path / "store"
    wrong = [stored(root, "stale", "wrong", number) for number in range(8)]
    for number, folder in enumerate(wrong):
        changed(folder / "test.json", started_utc=f"2026-07-28T10:11:{number:02d}+00:00", seed=number)
    (stored(root, "stale", "torn", 1) / "test.json").write_text("{")
    (stored(root, "stale", "torn", 2) / "results.json").write_text('{"valid": fal')
    words = [
        "store",
        "prune",
        "--store",
        str(root),
        "--known",
        str(tmp_path / "known"),
        "--keep-size",
        "0",
        "--any-verdict",
    ]
    assert cli.invoke([*words, "--dry-run"]) == 0
    err = capsys.readouterr().err
    assert "6 runs kept: of a cause that is new" in err
    assert "are left, more than 0.0 MB: the other runs are needed" in err
    test = json.loads((wrong[0] / "test.json").read_text())
    for number in range(40):
        right = stored(root, "valid", "right", number)
        changed(right / "test.json", name=test["name"], suite=test.get("suite", ...))
    assert cli.invoke(words) == 0
    captured = capsys.readouterr()
    assert "1 run kept: the smallest run of its cause" in captured.err
    assert [folder.is_dir() for folder in wrong] == [True, *[False] * 6, True]
    assert captured.out.count(" invalid ") == 7  # with one whose test.json is torn, so that no cause has it
    assert not (root / "torn" / wrong[1].name).exists()


@pytest.mark.parametrize("size", ["-1", "1e9", "20 GiB", "", "9999999T", "²G"])
def test_a_size_that_is_none_is_refused(store: Store, size: str) -> None:
    """The error says what is expected."""
    with pytest.raises(click.BadParameter, match="expected a size such as 500M or 20G"):
        cli.labrys.main(["store", "prune", "--keep-size", size, "--store", str(store.root)], standalone_mode=False)


def test_a_rule_is_needed(store: Store) -> None:
    """Without a rule nothing goes, and the error names both."""
    with pytest.raises(InputError, match="needs --older-than TIME"):
        cli.invoke(["store", "prune", "--store", str(store.root)])
