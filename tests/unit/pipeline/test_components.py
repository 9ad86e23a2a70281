"""Which values compare-and-sets link with each other, and how whole keys are gathered from batches."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from harness.randomness import stream
from results.pipeline.decide.whole import whole_keys
from results.pipeline.large_keys.components import roots


def one_by_one(values: list[int], expected: list[int]) -> list[int]:
    """Returns what `roots` does, by following each value until there is no next one or it comes back."""
    next_of = dict(zip(values, expected, strict=True))
    found = []
    for value in values:
        seen: list[int] = []
        at = value
        while at in next_of and at not in seen:
            seen.append(at)
            at = next_of[at]
        found.append(min(seen[seen.index(at) :]) if at in seen else at)
    return found


@pytest.mark.parametrize("seed", range(200))
def test_roots_are_where_the_links_lead(seed: int) -> None:
    """Chains, trees, circles and what hangs on them, in any order."""
    random = stream(seed, "roots")
    size = random.randint(1, 12)
    values = random.sample(range(20), size)
    expected = [random.choice([*values, *range(20)]) for _ in values]
    found = roots(np.array(values, np.int64), np.array(expected, np.int64))
    assert found.tolist() == one_by_one(values, expected)


def test_whole_keys_are_gathered_over_batches() -> None:
    """A key may span batches, several may be in one, and of one that is too long nothing is kept."""
    random = stream(1, "whole")
    for _ in range(50):
        sizes = [random.randint(1, 9) for _ in range(random.randint(0, 6))]
        addresses = [key for key, size in enumerate(sizes) for _ in range(size)]
        rows = pa.table(
            {"address": pa.array(addresses, pa.int64()), "value": pa.array(range(len(addresses)), pa.int64())}
        )
        batches = iter(rows.to_batches(max_chunksize=random.randint(1, 5)))
        found = [
            (key, None if columns is None else columns[0].tolist())
            for key, columns in whole_keys(batches, ["value"], 6)
        ]
        first = np.cumsum([0, *sizes])
        assert found == [
            (key, list(range(first[key], first[key + 1])) if size <= 6 else None) for key, size in enumerate(sizes)
        ]
