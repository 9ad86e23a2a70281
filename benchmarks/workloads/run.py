"""The judges of workloads beside a sort: processor time as a multiple of numpy's argsort of as many random integers.

The sort and the judge run in one process, one after the other. A row has ten million operations without its reads, or
`--operations`.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1]))

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.workloads.rows import Row

OPERATIONS = 10_000_000
REPEATS = 2


def main() -> int:
    """Prints the table. Returns 1 if a judge misses an expected anomaly."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--operations", type=int, default=OPERATIONS, help="operations of a history beside its reads")
    parser.add_argument("--rows", default="", help="only rows with this in their names")
    options = parser.parse_args()
    chosen = [row for row in rows() if options.rows in row.name]
    sort = _sort(options.operations)
    print(f"{'':40}{'seconds':>10}{'sorts':>10}")
    print(f"{f'argsort of {options.operations:,} integers':40}{sort:>10.2f}{1:>10.2f}")
    return sum(_measure(row, options.operations, sort) for row in chosen)


def _sort(count: int) -> float:
    numbers = np.random.default_rng(1).integers(0, 2**62, count)
    return _best(lambda: np.argsort(numbers))


def rows() -> list[Row]:
    """Returns the rows of all workloads, in order of the modules' names."""
    names = sorted(path.stem for path in HERE.glob("*_rows.py"))
    return [row for name in names for row in importlib.import_module(f"benchmarks.workloads.{name}").ROWS]


def _measure(row: Row, operations: int, sort: float) -> bool:
    """Prints a row. Returns whether the judge's findings differ from the expected ones."""
    history = row.make(operations)
    judgement = row.judge.judge(history)
    kinds = frozenset(anomaly.kind for anomaly in judgement.anomalies)
    right = kinds == row.kinds and (str(judgement.verdict) == ("invalid" if row.kinds else "valid"))
    del judgement
    gc.collect()
    seconds = _best(lambda: row.judge.judge(history))
    remark = "" if right else f"  BUT FOUND {', '.join(sorted(kinds)) or 'nothing'}"
    print(f"{row.name:40}{seconds:>10.2f}{seconds / sort:>10.2f}{remark}", flush=True)
    return not right


def _best(action: Callable[[], object]) -> float:
    best = float("inf")
    for _ in range(REPEATS):
        began = time.process_time()
        action()
        best = min(best, time.process_time() - began)
    return best


if __name__ == "__main__":
    sys.exit(main())
