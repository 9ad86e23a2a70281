"""What a run records, `labrys report` and `labrys replay` take: the law of `tests/unit/checker/test_one_law_of_values.py`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.history import pair
from results.publish import draw
from results.store.store import Store
from results.stored.document import build
from results.stored.load import load_record
from tests.unit.checker.test_one_law_of_values import JSON, LARGE, recorded, shapes
from tests.unit.results.stored import store_run
from tests.unit.results.synthetic import record

if TYPE_CHECKING:
    from pathlib import Path

    from harness.op import Value


@pytest.mark.parametrize("key", ["k", None])
def test_a_run_is_read_and_reported_with_each_value(tmp_path: Path, key: str | None) -> None:
    """`report` and `replay` read a run by `load_record`; the report is written, and no file of the run is a problem."""
    drawn: list[Value] = []

    @settings(max_examples=50, database=None)
    @given(values=st.lists(JSON, max_size=3))
    def draw_values(values: list[Value]) -> None:
        drawn.extend(values)

    draw_values()
    with recorded(*LARGE, *drawn, key=key) as (_, ops):
        operations = pair(ops)
        run = store_run(Store(tmp_path), replace(record(seed=5, operations=20), operations=operations))
        found = load_record(run)
        assert shapes(list(found.operations)) == shapes(operations)
        document = build(found)
        assert document["problems"] == []
        run.report_html.unlink()
        draw(run, found, document)
        assert run.report_html.stat().st_size
