"""A comparison shows the differences of runs, also of damaged ones."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from commands.options.choosing import loadable
from commands.run.test import run_test
from harness.console.sources import options_of
from results.page.compare import MAX_BYTES, MAX_NAMES, comparison, flag
from results.page.overlay import overlay
from results.page.pages import environment
from results.store.store import Run
from results.stored.document import build
from tests.unit.results.stored import store_run
from tests.unit.results.synthetic import record

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from results.store.store import Store


def test_differences_are_marked(stored_run: Run, tmp_path: Path) -> None:
    """A run beside one with only a damaged file."""
    other = Run(tmp_path)
    other.results_json.write_text(
        '{"valid": [], "faults": [7, {"availability": 3}], "latency": {"read": 5}, "parts": []}'
    )
    table = comparison([stored_run, other])
    rows = {row["name"]: row for row in table["rows"]}
    assert rows["verdict"]["texts"] == ["invalid", "none"]
    assert rows["verdict"]["differs"]
    assert rows["--read-mode"]["texts"] == ["unsafe", "—"]
    assert rows["faults with a proven effect"]["texts"] == ["4 of 5 faults", "0 of 1 fault"]
    assert rows["read p50"]["texts"][1] == "—"
    assert rows["part linearizable"]["texts"] == ["invalid", "—"]


def test_a_crossed_threshold_is_a_difference(tmp_path: Path) -> None:
    """Two valid runs differ if one of them crosses a threshold."""
    good, slow = (Run(tmp_path / name) for name in ("good", "slow"))
    row = {"threshold": "p99_ms < 1", "measured": 2.0, "kept": False, "crossed": "p99_ms < 1: it is 2"}
    for run, thresholds in ((good, []), (slow, [row])):
        run.path.mkdir()
        run.results_json.write_text(json.dumps({"valid": True, "thresholds": thresholds}))
    rows = {row["name"]: row for row in comparison([good, slow])["rows"]}
    assert rows["verdict"]["texts"] == ["valid", "valid, crossed a threshold"]
    assert rows["crossed thresholds"]["texts"] == ["—", "p99_ms < 1: it is 2"]


def test_equal_runs_do_not_differ(stored_run: Run) -> None:
    """No row is marked."""
    assert not any(row["differs"] for row in comparison([stored_run, stored_run])["rows"])


def test_outcomes_and_gaps_are_compared(stored_run: Run, tmp_path: Path) -> None:
    """A document without functions alone has no gap of them."""
    other = Run(tmp_path)
    counts = {"operations": 9, "ok": 4, "fail": 4, "info": 1, "refused": 3}
    document = {"counts": counts, "availability": {"longest_gap_s": 0.25}}
    other.results_json.write_text(json.dumps(document))
    rows = {row["name"]: row for row in comparison([stored_run, other])["rows"]}
    assert [rows[f"operations that ended {kind}"]["texts"][1] for kind in ("fail", "refused")] == ["4", "3"]
    assert rows["longest gap"]["texts"][1] == "250 ms"
    assert rows["longest gap of write"]["texts"][0].endswith("s")
    assert rows["longest gap of write"]["texts"][1] == "—"


def page_of(runs: list[Run]) -> str:
    """Returns the page that `labrys serve` sends."""
    latency = overlay(runs, "ABCDEF"[: len(runs)])
    pages = environment()
    return pages.get_template("compare.html").render(
        table=comparison(runs), place=lambda run: run.stamp, names="ABCDEF", latency=latency
    )


def test_differences_stand_first(stored_run: Run, store: Store) -> None:
    """Equal rows are behind a click, which needs no script, and the latencies of all runs are in one plot."""
    other = store_run(store, record(seed=7, operations=300))
    page = page_of([stored_run, other])
    differences, equal = page.split("<h2>Equal</h2>")
    assert differences.index('<td class="whole">verdict</td>') < differences.index("<svg")
    assert ">--seed</td>" not in equal
    assert "<details" in equal[: equal.index("<table ")]
    rows = comparison([stored_run, other])["rows"]
    differing = {row["name"] for row in rows if row["differs"]}
    assert set(re.findall(r'<tr><td class="whole">([^<]*)</td>', differences)) == differing
    assert set(re.findall(r'<tr><td class="whole">([^<]*)</td>', equal)) == {row["name"] for row in rows} - differing
    assert f"The runs differ in {len(differing)} of the {len(rows)} properties" in page
    assert page.count("<svg") == 1
    same = page_of([stored_run, stored_run])
    assert "The runs do not differ in any of the" in same


def test_the_latencies_of_all_runs_are_in_each_panel(stored_run: Run, store: Store) -> None:
    """Each run has a line and a dashed line for each function, in a colour of its own."""
    other = store_run(store, record(seed=7, operations=300))
    drawn_over = overlay([stored_run, other], "AB")
    assert drawn_over.drawing is not None
    assert not drawn_over.problems
    drawn = re.findall(r'style="fill: none; ([^"]*stroke: var\(--fault-(\d)\)[^"]*)"', drawn_over.drawing)
    functions = len(build(record(seed=7, operations=300))["counts"]["by_f"])
    for run in "01":
        own = [style for style, colour in drawn if colour == run and "stroke-width: 1.3" in style]
        assert len(own) == 2 * functions
        assert sum("stroke-dasharray" in style for style in own) == functions


def test_a_run_that_cannot_be_drawn_is_named(stored_run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A damaged, missing or large history does not hide the other runs."""
    empty = Run(tmp_path)
    drawn_over = overlay([stored_run, empty], "AB")
    assert drawn_over.drawing is not None
    assert [problem.split(":")[0] for problem in drawn_over.problems] == ["B is not drawn"]
    assert overlay([empty, empty], "AB").drawing is None
    monkeypatch.setattr("results.page.overlay.MAX_BYTES", 10)
    drawn_over = overlay([stored_run, empty], "AB")
    assert "exceeds the maximum size" in drawn_over.problems[0]
    assert drawn_over.drawing is None


def test_what_is_too_large_is_not_compared_and_named(stored_run: Run, tmp_path: Path) -> None:
    """A file of many megabytes is not read, and a row shows it. Long texts are shortened."""
    other = Run(tmp_path)
    other.results_json.write_bytes(b'{"reason": "' + b"x" * MAX_BYTES + b'"}')
    other.test_json.write_text(json.dumps({"options": {f"o{number}" * 200: "y" * 2000 for number in range(900)}}))
    table = comparison([stored_run, other])
    rows = {row["name"]: row for row in table["rows"]}
    assert "results.json exceeds the maximum size of" in rows["not compared"]["texts"][1]
    assert f"of 900 options the first {MAX_NAMES} are compared" in rows["not compared"]["texts"][1]
    assert len(table["rows"]) < 3 * MAX_NAMES
    assert len(json.dumps(table["rows"])) < 200_000


def test_options_are_shown_as_they_are_typed() -> None:
    """Each option of `labrys test`, of every system and every workload, has its flag's name in the comparison."""
    options = [*options_of(run_test), *(option for choice in loadable() for option in choice.options)]
    assert [flag(str(option.name)) for option in options] == [option.opts[0] for option in options]
