"""The time and memory of `labrys analyze` on whole stores: many operations, many runs, and a small memory limit.

Each row is one command in a process of its own, with Spark or without, and without pictures. The stores have known anomalies;
the benchmark fails if a command finds other verdicts.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow import parquet

from benchmarks.memory import Memory
from benchmarks.pipeline.histories import Plan, chunk, plan
from benchmarks.pipeline.records import record
from checker.formats.parquet import schema

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

LABRYS = [sys.executable, "-c", "from harness.console.process import main; main()"]
RUNS = 1000
RUN_OPERATIONS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """A store.

    Attributes:
        name: Its name in the table.
        folder: Its folder.
        keys: The number of keys in all of its runs.
        invalid: How many of them are invalid.
        options: Options of the command.
    """

    name: str
    folder: Path
    keys: int
    invalid: int
    options: Sequence[str] = ()


def run_folder(folder: Path, made: Plan, name: str) -> None:
    """Writes a run: its operations in the order of their invokes, `test.json` and `results.json`."""
    folder.mkdir(parents=True)
    length = min(made.per_key, 1 << 16)
    group = max(1, (1 << 16) // length)
    batches = [
        chunk(made, key=key, keys=min(group, made.keys - key), base=base, length=min(length, made.per_key - base))
        for key in range(0, made.keys, group)
        for base in range(0, made.per_key, length)
    ]
    rows = pa.Table.from_batches(batches).sort_by("invoke_index")
    names = pa.repeat(name, rows.num_rows)
    rows = rows.set_column(rows.column_names.index("run"), "run", names)
    layout = schema()
    with parquet.ParquetWriter(folder / "operations.parquet", layout, compression="zstd") as writer:
        for batch in rows.to_batches(max_chunksize=1 << 17):
            writer.write_table(pa.Table.from_batches([batch]).cast(layout))
    record(made, folder)


def stores(folder: Path, names: Sequence[str]) -> list[Store]:
    """Makes the named stores below a folder: `1e6`, `1e7`, `runs` and `limit`."""
    made_stores = []
    for name in names:
        folder_of_store = folder / name
        if name == "runs":
            for number in range(RUNS):
                made = Plan(operations=RUN_OPERATIONS, keys=5, cas=0.1, seed=number, planted=[])
                run_folder(folder_of_store / "synthetic" / f"{number:04}", made, f"synthetic/{number:04}")
            made_stores.append(Store(name=f"{RUNS:,} runs", folder=folder_of_store, keys=5 * RUNS, invalid=0))
            continue
        one = name == "limit"
        operations = 1_000_000 if one else int(float(name))
        made = plan(
            operations, one_key=one, cas=0.1, seed=1, kinds=("stale",) if one else ("stale", "lost", "phantom", "cas")
        )
        run_folder(folder_of_store / "synthetic" / "1", made, "synthetic/1")
        options = ["--memory-limit", "64"] if one else []
        title = "10^6 operations on one key, 64 MiB" if one else f"{operations:,} operations"
        made_stores.append(
            Store(name=title, folder=folder_of_store, keys=made.keys, invalid=len(made.planted), options=options)
        )
    return made_stores


def measured(store: Store, folder: Path, *, spark: bool) -> dict[str, Any]:
    """Runs the command, and returns its `seconds`, its `peak` in bytes, and its summary.

    Raises:
        SystemExit: The verdicts are not those of the store.
    """
    way = ["--spark"] if spark else ["--in-process", "100000000"]
    command = [
        "analyze",
        str(store.folder),
        "--out",
        str(folder),
        "--no-pictures",
        "--format",
        "json",
        *way,
        *store.options,
    ]
    with Memory(own=False) as memory:
        began_s = time.monotonic()
        ended = subprocess.run([*LABRYS, *command], capture_output=True, text=True, check=False)
        seconds = time.monotonic() - began_s
    if ended.returncode not in {0, 1}:
        sys.exit(f"{' '.join(command)} ended with {ended.returncode}: {ended.stderr}{ended.stdout}")
    summary = json.loads(ended.stdout)
    expected = {"valid": store.keys - store.invalid, "invalid": store.invalid, "unknown": 0}
    if summary["verdicts"] != expected:
        sys.exit(f"{store.name}: expected {expected}, found {summary['verdicts']}")
    return {"seconds": seconds, "peak": memory.peak, "summary": summary}


def table(folder: Path, names: Sequence[str], ways: Sequence[str]) -> None:
    """Prints the table."""
    print("| store | way | seconds | peak memory | steps |\n|---|---|---|---|---|", flush=True)
    for store in stores(folder, names):
        for way in ways:
            figures = measured(store, folder / f"{store.folder.name}-{way}", spark=way == "spark")
            steps = ", ".join(f"{name} {seconds:.1f}" for name, seconds in figures["summary"]["seconds"].items())
            path = figures["summary"]["path"]
            print(
                f"| {store.name} | {path} | {figures['seconds']:.1f} | {figures['peak'] / 1e9:.1f} GB | {steps} |",
                flush=True,
            )
