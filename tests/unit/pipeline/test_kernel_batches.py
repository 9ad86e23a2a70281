"""The kernel's route answers once for each key, however the rows of a partition come in batches."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from checker.models.opcodes import WRITE
from harness.randomness import stream
from results.pipeline.decide import kernel
from results.pipeline.decide.asked import VerdictOptions
from results.pipeline.decide.coding import CODED
from results.pipeline.decide.kernel import BYTES_PER_OPERATION, decide

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

ROWS = CODED
LARGEST = 30


def partition(random: Random) -> tuple[list[int], list[pa.RecordBatch]]:
    """Returns keys, and their rows in batches of random sizes."""
    keys = range(random.randint(1, 12))
    rows = [
        (key, WRITE, 100 * key + index, 0, 2 * index, 2 * index + 1)
        for key in keys
        for index in range(random.choice([1, 2, 5, LARGEST]))
    ]
    batches = []
    while rows:
        size = random.randint(1, 9)
        batches.append(_batch(rows[:size]))
        rows = rows[size:]
    return list(keys), batches


def _batch(rows: Sequence[tuple[int, ...]]) -> pa.RecordBatch:
    columns = zip(*rows, strict=True)
    arrays = [pa.array(column, kind) for column, kind in zip(columns, ROWS.types, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=ROWS)


@pytest.mark.parametrize("operations", [LARGEST, LARGEST - 10])
def test_each_key_is_answered_once(monkeypatch: pytest.MonkeyPatch, operations: int) -> None:
    """Each key has one answer: valid, or that it does not fit into the memory limit, if it is larger than that."""
    monkeypatch.setattr(kernel, "_ROWS_PER_CALL", 7)
    options = VerdictOptions(
        model="register", initial="-1", time_limit_s=None, memory_limit=operations * BYTES_PER_OPERATION
    )
    asked = options.asked()
    assert asked.coding is not None
    random = stream(1, "partitions")
    for _ in range(100):
        keys, batches = partition(random)
        answers = [row for batch in decide(iter(batches), asked, asked.coding) for row in batch.to_pylist()]
        assert sorted(row["address"] for row in answers) == keys
        kinds = {(row["verdict"], row["cause"]) for row in answers}
        assert kinds <= {("valid", None), ("unknown", "out-of-memory")}
        if operations == LARGEST:
            assert kinds == {("valid", None)}
