"""The runs of earlier nights in a trend folder have their signatures."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import cli
from harness.errors import InputError
from results.causes.reading import read_stores
from results.pipeline.read.trend_runs import read_trend
from results.pipeline.write.output import MANIFEST
from tests.unit.results.test_causes import changed, stored

if TYPE_CHECKING:
    from pathlib import Path


def test_a_trend_folder_has_the_runs_of_earlier_nights(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Their signatures are those of the store; a run in both counts once, and one of an earlier version is named."""
    store = tmp_path / "store"
    folders = [
        stored(store, golden, name, 1) for golden, name in (("stale", "wrong"), ("stale", "old"), ("valid", "right"))
    ]
    for folder in folders:
        parts = json.loads((folder / "results.json").read_text(encoding="utf-8"))["parts"]
        parts.pop("recovered", None)  # that of the synthetic run is short
        changed(folder / "results.json", parts=parts)
    changed(store / "old" / folders[0].name / "results.json", signature=..., warnings=...)
    with pytest.raises(SystemExit):
        cli.main(["analyze", str(store), "--out", str(tmp_path / "trend"), "--no-pictures"])
    capsys.readouterr()
    trend = read_trend(tmp_path / "trend")
    assert trend is not None
    runs, unread = trend
    assert len(unread) == 1
    assert "old" in next(iter(unread))
    alone = read_stores([], before=runs)
    assert (len(alone.trials), len(alone.cases)) == (2, 1)
    both = read_stores([store], before=runs)
    assert (len(both.trials), len(both.cases)) == (3, 2)
    assert {case.symptom.key for case in both.cases} == {alone.cases[0].symptom.key}
    assert {case.trial.night for case in both.cases} == {alone.cases[0].trial.night}


def test_a_folder_without_a_trend_is_none(tmp_path: Path) -> None:
    """A damaged manifest is an error that names it."""
    assert read_trend(tmp_path) is None
    (tmp_path / MANIFEST).write_text("{")
    with pytest.raises(InputError, match=MANIFEST):
        read_trend(tmp_path)
