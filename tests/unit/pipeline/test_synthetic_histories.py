"""The benchmark's histories: linearizable but for what is planted, and that is where the plan says."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark")

import pyarrow as pa
from pyarrow import parquet

from benchmarks.pipeline.histories import KINDS, chunk, plan
from checker.checking import make_model
from checker.formats.parquet import read_operations
from tests.deciding import check_keys

if TYPE_CHECKING:
    from pathlib import Path


def test_only_what_is_planted_is_wrong(tmp_path: Path) -> None:
    """Every kind of anomaly makes its key invalid at its place, and no other key is."""
    made = plan(12_000, one_key=False, cas=0.1, seed=3, of_each=1)
    rows = pa.Table.from_batches([chunk(made, key=key, keys=6, base=0, length=1000) for key in (0, 6)])
    parquet.write_table(rows.sort_by("invoke_index"), tmp_path / "operations.parquet")
    operations = list(read_operations(tmp_path / "operations.parquet"))
    assert len(operations) == 12_000
    results = check_keys(make_model("cas-register", None, {}), operations, memory_limit=1 << 28, threads=1).keys
    wrong = {key: result for key, result in results.items() if str(result.valid) != "valid"}
    assert {planted.kind for planted in made.planted} == set(KINDS)
    assert set(wrong) == {f"k{planted.key}" for planted in made.planted}
    for planted in made.planted:
        op = wrong[f"k{planted.key}"].op
        first, last = made.indexes(planted)
        assert op is not None
        assert first <= op.invoke_index <= last


def test_the_same_seed_makes_the_same_operations() -> None:
    """A stretch follows from the seed and its place alone; another seed makes another."""
    made = plan(3000, one_key=True, cas=0.0, seed=1, kinds=("stale",))
    one, same = (chunk(made, key=0, keys=1, base=0, length=3000) for _ in range(2))
    assert one.equals(same)
    assert not one.equals(chunk(replace(made, seed=2), key=0, keys=1, base=0, length=3000))
