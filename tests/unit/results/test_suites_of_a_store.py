"""The suites of a store, for its pages: each case has its state, and the content of a file cannot break the list."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from results.store.store import Store, point
from results.store.suites import MAX_CASES, MAX_TEXT, SuiteRow, find_suite, newest_suites
from tests.unit.results.stored import suite_document

if TYPE_CHECKING:
    from pathlib import Path

OLD, NEW = "20260729T000000.000Z", "20260730T000000.000Z"


def save(root: Path, document: Any, *, name: str = "s", stamp: str = OLD) -> Path:
    """Writes the `suite.json` of a suite, and returns its folder."""
    folder = root / "suites" / name / stamp
    folder.mkdir(parents=True)
    (folder / "suite.json").write_text(document if isinstance(document, str) else json.dumps(document))
    return folder


def only(root: Path) -> SuiteRow:
    """Returns the only suite of a store."""
    (row,) = newest_suites(Store(root), 10)
    return row


def test_a_case_that_did_not_run_waits_only_while_its_suite_runs(tmp_path: Path) -> None:
    """The same file, of a running suite and of one that was interrupted."""
    folder = save(tmp_path, suite_document())
    ended = only(tmp_path)
    assert [str(case.state) for case in ended.cases] == ["passed", "failed", "not run", "not run"]
    assert (ended.name, ended.seed, ended.total, ended.passed, ended.running) == ("s", "19", 4, False, False)
    point(tmp_path / "suites" / "current", folder)
    running = only(tmp_path)
    assert [str(case.state) for case in running.cases] == ["passed", "failed", "running", "waiting"]
    assert running.running


def test_a_suite_passes_if_each_case_does(tmp_path: Path) -> None:
    """A suite of which only some cases ran has neither passed nor failed."""
    results = suite_document()["results"]
    save(tmp_path, suite_document(cases=["a"], results={"a": results["a"]}), name="all")
    save(tmp_path, suite_document(cases=["a", "b"], results={"a": results["a"]}), name="some")
    save(tmp_path, suite_document(cases=[], results={}), name="none")
    assert {row.folder[0]: row.passed for row in newest_suites(Store(tmp_path), 10)} == {
        "all": True, "some": None, "none": None,
    }  # fmt: skip


def test_a_case_that_was_not_selected_did_not_fail_to_run(tmp_path: Path) -> None:
    """The page has the words of the terminal."""
    results = suite_document()["results"]
    only_a = {"results": {"a": results["a"]}, "running": []}
    save(tmp_path, suite_document(selected=["a"], **only_a), name="some")
    save(tmp_path, suite_document(**only_a), name="earlier")
    rows = {row.folder[0]: row for row in newest_suites(Store(tmp_path), 10)}
    assert [str(case.state) for case in rows["some"].cases] == ["passed"] + ["not selected"] * 3
    assert rows["some"].passed is True
    assert rows["some"].standing == "1 of 1 case was as expected; 1 of 4 cases selected"
    assert rows["earlier"].standing == "1 of 4 cases was as expected; 3 did not run"


def test_the_newest_suite_comes_first(tmp_path: Path) -> None:
    """The list ends after the wanted number; folders with other names are not suites."""
    save(tmp_path, suite_document(), name="old")
    save(tmp_path, suite_document(), name="new", stamp=NEW)
    save(tmp_path, suite_document(), stamp="notes")
    store = Store(tmp_path)
    assert [row.folder for row in newest_suites(store, 10)] == [("new", NEW), ("old", OLD)]
    assert [row.folder for row in newest_suites(store, 1)] == [("new", NEW)]
    assert find_suite(store, "old", OLD) is not None
    assert find_suite(store, "old", NEW) is None
    assert find_suite(store, "..", OLD) is None


def test_a_case_names_its_run(tmp_path: Path) -> None:
    """By the names of its folders, wherever the store was."""
    results = suite_document()["results"]
    for name, run in (("x", "/elsewhere/store/s-a/20260729T000001.000Z"), ("y", "alone"), ("z", None)):
        save(tmp_path, suite_document(cases=["a"], results={"a": {**results["a"], "run": run}}), name=name)
    rows = {row.folder[0]: row.cases[0].run for row in newest_suites(Store(tmp_path), 10)}
    assert rows == {"x": ("s-a", "20260729T000001.000Z"), "y": None, "z": None}


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{", "[" * 100_000, json.dumps(suite_document(results={"a": 3})), json.dumps(suite_document(cases=3)),
     json.dumps(suite_document(results={"a": {"passed": 1}}))],
)  # fmt: skip
def test_a_damaged_file_is_a_suite_without_results(tmp_path: Path, text: str) -> None:
    """Its row says so."""
    save(tmp_path, text)
    row = only(tmp_path)
    assert "suite.json cannot be read" in row.problem
    assert (row.cases, row.passed) == ((), None)


def test_long_texts_and_long_lists_are_cut(tmp_path: Path) -> None:
    """A suite with more cases than a page shows still has its number of cases."""
    save(
        tmp_path,
        suite_document(suite="s" * 9999, cases=[f"{n}" + "c" * 9999 for n in range(MAX_CASES + 1)], results={}),
    )
    row = only(tmp_path)
    assert (len(row.name), len(row.cases), row.total) == (MAX_TEXT, MAX_CASES, MAX_CASES + 1)
    assert max(len(case.name) for case in row.cases) == MAX_TEXT


def test_a_failed_case_counts_even_if_it_is_not_shown(tmp_path: Path) -> None:
    """The page shows the first cases, and the result is that of all."""
    results = suite_document()["results"]
    names = [f"c{number}" for number in range(MAX_CASES + 1)]
    all_but_last = dict.fromkeys(names[:-1], results["a"])
    save(tmp_path, suite_document(cases=names, results={**all_but_last, names[-1]: results["b"]}))
    row = only(tmp_path)
    assert (row.passed, row.count("passed"), row.count("failed")) == (False, MAX_CASES, 1)


def test_a_link_is_no_suite_and_no_results(tmp_path: Path) -> None:
    """Neither a linked folder nor a linked file is followed."""
    outside = save(tmp_path / "outside", suite_document())
    store = tmp_path / "store"
    (store / "suites" / "s" / NEW).mkdir(parents=True)
    (store / "suites" / "linked").symlink_to(outside.parent)
    (store / "suites" / "s" / NEW / "suite.json").symlink_to(outside / "suite.json")
    row = only(store)
    assert row.folder == ("s", NEW)
    assert row.problem
