"""The store keeps every run, gives it a unique name, and tolerates any other files in its folders."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from results.store.errors import NoSuchRun, StoreError
from results.store.store import HEAD_BYTES, Run, Store, read_head, stamp, summarize, write_text

if TYPE_CHECKING:
    from pathlib import Path

NOW = datetime(2026, 7, 29, 10, 11, 12, 345_678, tzinfo=UTC)
LATER = datetime(2026, 7, 29, 10, 11, 13, tzinfo=UTC)


def test_a_run_is_named_after_its_test_and_its_start(store: Store) -> None:
    """store/<test>/<UTC time>/, to the millisecond."""
    run = store.create_run("my-store-register", NOW)
    assert run.path == store.root / "my-store-register" / "20260729T101112.345Z"
    assert (run.test_name, run.stamp) == ("my-store-register", stamp(NOW))


def test_a_run_never_gets_the_folder_of_another(store: Store) -> None:
    """Two runs at one instant get two folders, and the first keeps its files."""
    first = store.create_run("t", NOW)
    first.test_json.write_text("kept")
    second, third = store.create_run("t", NOW), store.create_run("t", NOW)
    assert len({first.path, second.path, third.path}) == 3
    assert first.test_json.read_text() == "kept"
    assert [run.path for run in store.runs()] == [third.path, second.path, first.path]


def test_links_point_at_the_newest_run_and_at_the_one_that_goes_on(store: Store) -> None:
    """`latest`, `<test>/latest`, and `current` until the run is finished."""
    one, two = store.create_run("one", NOW), store.create_run("two", LATER)
    assert (store.root / "latest").resolve() == two.path
    assert (store.root / "one" / "latest").resolve() == one.path
    assert not (store.root / "latest").readlink().is_absolute()
    current = store.current()
    assert current is not None
    assert current.path == two.path
    store.finish(one)  # not the current one, so the link stays
    assert store.current() is not None
    store.finish(two)
    store.finish(two)
    assert store.current() is None
    assert (store.root / "latest").resolve() == two.path


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "latest", "current", ".hidden", "a b", "a\n", "x" * 200])
def test_a_name_that_is_no_folder_is_refused(store: Store, name: str) -> None:
    """A test's name cannot point outside the store, and cannot be that of a link."""
    with pytest.raises(StoreError, match="name"):
        store.create_run(name, NOW)


def test_a_store_that_cannot_be_written_says_where(tmp_path: Path) -> None:
    """The error names the folder and a remedy."""
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match=r"file/t/2026.*--store"):
        Store(tmp_path / "file").create_run("t", NOW)


def test_runs_are_opened_by_what_a_person_types(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """`latest`, a test, test/time, an index from either end, or a path."""
    old, new = store.create_run("a", NOW), store.create_run("b", LATER)
    for run in (old, new):
        run.write_json(run.test_json, {})
    for name in ("latest", "b", "b/latest", f"b/{new.stamp}", "0", "-2", str(new.path)):
        assert store.open_run(name).path.resolve() == new.path.resolve()
    for name in ("a", "1", "-1"):
        assert store.open_run(name).path.resolve() == old.path.resolve()
    monkeypatch.chdir(store.root.parent)
    assert Store(store.root).open_run(f"store/a/{old.stamp}").path.resolve() == old.path.resolve()


@pytest.mark.parametrize("name", ["nothing", "7", "-7", "", "..", "a\0b", "x" * 5000])
def test_a_run_that_is_not_there_is_an_error_with_a_hint(store: Store, name: str) -> None:
    """The message lists the existing runs."""
    store.create_run("a", NOW)
    with pytest.raises(NoSuchRun):
        store.open_run(name)
    with pytest.raises(NoSuchRun, match="the newest runs are a/20260729"):
        store.open_run("nothing")


def test_whatever_else_lies_in_the_store_is_passed_over(store: Store) -> None:
    """Files, broken links, loops, foreign folders and bad JSON do not hide a run or break a list."""
    run = store.create_run("good", NOW)
    (store.root / "file").write_text("")
    (store.root / "broken").symlink_to("nowhere")
    (store.root / "loop").symlink_to("loop")
    (store.root / "current").unlink()
    (store.root / "current").symlink_to("current")
    (store.root / "other" / "not-a-run").mkdir(parents=True)
    (store.root / "odd\nname" / stamp(NOW)).mkdir(parents=True)
    (store.root / "good" / stamp(LATER)).write_text("a file where a folder should be")
    damaged = store.create_run("damaged", LATER)
    damaged.results_json.write_bytes(b'{"valid": \xff\xfe')
    folder = store.create_run("folder", LATER)
    folder.results_json.mkdir()
    assert {item.path.parent.name for item in store.runs()} == {"good", "damaged", "folder", "odd\nname"}
    assert [row.valid for row in store.summaries()] == [None, None, None, None]
    assert run.path in {row.run.path for row in store.summaries()}


def test_a_list_reads_only_the_head_of_a_verdict(store: Store) -> None:
    """The first bytes of a results.json of any size give its verdict."""
    run = store.create_run("t", NOW)
    run.write_json(
        run.results_json, {"valid": False, "reason": "r", "seed": 2**62, "reproduce": "c", "x": ["y" * 99] * 9999}
    )
    row = summarize(run)
    assert (row.valid, row.reason, row.seed, row.reproduce) == (False, "r", str(2**62), "c")
    assert run.results_json.stat().st_size > HEAD_BYTES
    for suite, expected in (
        ({"expectation": {"verdict": "invalid"}}, "invalid"),
        ({"expectation": {"verdict": "valid"}}, None),
        ({"expectation": {"verdict": []}}, None),
        (3, None),
    ):
        run.write_json(run.test_json, {"suite": suite})
        assert summarize(run).expected == expected


@given(
    st.dictionaries(
        st.text(max_size=8),
        st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=9), st.lists, max_leaves=5),
    )
)
def test_a_head_holds_what_the_whole_holds(tmp_path_factory: pytest.TempPathFactory, value: dict[str, object]) -> None:
    """In a file smaller than the head, the result is complete and exact."""
    path = tmp_path_factory.getbasetemp() / "head.json"
    path.write_text(json.dumps(value, indent=2))
    assert read_head(path, tuple(value)) == value


def test_a_number_that_the_head_cuts_is_left_out(tmp_path: Path) -> None:
    """A truncated number is not read."""
    path = tmp_path / "x.json"
    path.write_text('{"a": 1, "pad": "' + "p" * (HEAD_BYTES - 26 - 5) + '", "seed": 123456}')
    assert path.read_text()[:HEAD_BYTES].endswith(("1", "12", "123", "1234", "12345"))
    assert read_head(path, ("a", "seed")) == {"a": 1}


def test_a_file_that_cannot_be_replaced_stays_as_it_was(tmp_path: Path) -> None:
    """A failed write leaves the old content and no temporary file."""
    target = tmp_path / "x.json"
    target.mkdir()
    (target / "old").write_text("")
    with pytest.raises(StoreError, match="could not be written"):
        write_text(tmp_path, target, "new")
    assert [path.name for path in tmp_path.iterdir()] == ["x.json"]


def test_json_is_written_whole_and_strict(tmp_path: Path) -> None:
    """Unicode is preserved. A value that JSON cannot represent is refused before the old file changes."""
    run = Run(tmp_path)
    run.write_json(run.results_json, {"name": "grün \ud800"})
    assert "grün" in run.results_json.read_text(encoding="utf-8")
    with pytest.raises(ValueError, match="JSON"):
        run.write_json(run.results_json, {"x": float("nan")})
    assert "grün" in run.results_json.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("kept", "alone", "words"),
    [
        (False, "invalid", "valid, crossed a threshold"),
        ("unknown", "unknown", "valid, thresholds unknown"),
        (True, "valid", "valid"),
    ],
)
def test_a_list_shows_the_thresholds_of_a_run(store: Store, *, kept: bool | str, alone: str, words: str) -> None:
    """A valid run that crosses one is not green; a run of an earlier version has none."""
    run = store.create_run("t", NOW)
    rows = [{"threshold": "p99_ms < 1", "kept": kept, "crossed": None if kept is True else "p99_ms < 1: it is 2"}]
    run.write_json(run.results_json, {"valid": True, "reason": "Fine.", "thresholds": rows})
    summary = summarize(run)
    assert summary.shown is not None
    assert (summary.shown.alone, summary.shown.words) == (alone, words)
    assert summary.crossed == (() if kept is True else ("p99_ms < 1: it is 2",))
    for earlier in ({"valid": True}, {"valid": True, "thresholds": "x"}, {"valid": True, "thresholds": [3]}):
        run.write_json(run.results_json, earlier)
        assert summarize(run).crossed == ()
