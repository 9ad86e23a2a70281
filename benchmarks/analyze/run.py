"""The time of `labrys analyze` in one process, beside `labrys check` on the same history in the same run.

Each row is the processor time of a command with all its threads. The history is a register's on many keys, without an anomaly,
in each format. `analyze` also measures timelines and writes tables, so its ratio is above 1. It draws nothing here.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.analyze.stores import table
from checker.formats.jepsen import write_history
from checker.formats.parquet import write_operations
from harness.event_lines import FORMAT, VERSION, LineEncoder
from harness.history import pair
from harness.op import Op, OpType

if TYPE_CHECKING:
    from collections.abc import Sequence

LABRYS = [sys.executable, "-c", "from harness.console.process import main; main()"]
KEYS = 1000


def history(operations: int) -> list[Op]:
    """Returns writes of numbers, each with a read of it, one after the other, on many keys."""
    events = []
    for number in range(operations):
        number_of_pair = number // 2
        key, value = f"k{number_of_pair % KEYS}", number_of_pair // KEYS
        f = "read" if number % 2 else "write"
        node = f"n{number % 5 + 1}"
        for later, kind in enumerate((OpType.INVOKE, OpType.OK)):
            index = 2 * number + later
            shown = None if f == "read" and not later else value
            events.append(Op(index, 1000 * index, kind, number % 2, f, shown, key, node))
    return events


def written(events: Sequence[Op], folder: Path) -> list[Path]:
    """Writes the history in each format."""
    encoder = LineEncoder()
    lines = [json.dumps({"format": FORMAT, "version": VERSION}), *(encoder.event(event) for event in events)]
    text = "\n".join(lines) + "\n"
    jsonl, packed, edn, table = (folder / name for name in ("h.jsonl", "h.jsonl.gz", "h.edn", "o.parquet"))
    jsonl.write_text(text)
    packed.write_bytes(gzip.compress(text.encode(), 6))
    write_history(edn, events)
    write_operations(table, pair(events), run="benchmark")
    return [jsonl, packed, edn, table]


def seconds(command: Sequence[str]) -> tuple[float, float]:
    """Runs a command, and returns its seconds on a clock and its processor time.

    Raises:
        SystemExit: It did not find the history valid.
    """
    before, began = os.times(), time.monotonic()
    ended = subprocess.run([*LABRYS, *command], capture_output=True, text=True, check=False)
    if ended.returncode:
        sys.exit(f"{' '.join(command)} ended with {ended.returncode}: {ended.stderr}{ended.stdout}")
    after = os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return time.monotonic() - began, used


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--operations", type=lambda text: int(float(text)), default=1_000_000, help="e.g. 1e5")
    parser.add_argument("--stores", nargs="*", choices=["1e6", "1e7", "runs", "limit"], help="whole stores instead")
    parser.add_argument("--ways", nargs="*", choices=["process", "spark"], default=["process", "spark"])
    args = parser.parse_args()
    if args.stores:
        with tempfile.TemporaryDirectory() as name:
            table(Path(name), args.stores, args.ways)
        return
    operations = args.operations
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        print(f"{operations:,} operations, {KEYS:,} keys; seconds of processor time\n")
        print("| format | size | check | analyze | ratio |\n|---|---|---|---|---|")
        for path in written(history(operations), folder):
            _, check_s = seconds(["check", str(path), "--model", "register"])
            out = str(folder / "out")
            limits = ["--no-spark", "--in-process", str(operations), "--no-pictures"]
            _, analyze_s = seconds(["analyze", str(path), "--model", "register", "--out", out, *limits])
            size = path.stat().st_size / 1e6
            print(
                f"| {path.name} | {size:.0f} MB | {check_s:.1f} | {analyze_s:.1f} | {analyze_s / check_s:.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
