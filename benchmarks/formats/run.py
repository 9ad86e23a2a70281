"""The speed of reading and writing histories, beside the standard library's JSON on the same events in the same run.

Each row is the processor time of one process, the best of a few rounds. The peer of every row is `json.loads` of the same
events, one object per line, without interpretation: a practical limit for a reader in Python.
"""

from __future__ import annotations

import io
import json
import random
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from checker.edn.reader import Reader
from checker.formats.columns import ColumnReader, batches_of, joined
from checker.formats.jepsen import write_history
from checker.formats.parquet import open_parquet, read_operations, write_operations
from checker.formats.read import read_histories
from harness.event_lines import FORMAT, VERSION, LineEncoder
from harness.history import pair
from harness.op import Op, OpType

if TYPE_CHECKING:
    from collections.abc import Callable

    from checker.formats.columns import Columns

EVENTS = 200_000
ROUNDS = 3
PROCESSES = 10


def history(events: int) -> list[Op]:
    """Returns a synthetic history of a register: reads, writes and compare-and-sets of small numbers."""
    chance = random.Random(1)
    ops: list[Op] = []
    begun: dict[int, Op] = {}
    for index in range(events):
        process = index % PROCESSES
        invoke = begun.pop(process, None)
        if invoke is not None:
            result = chance.randrange(5) if invoke.f == "read" else invoke.value
            ops.append(invoke._replace(index=index, time_ns=1000 * index, type=OpType.OK, value=result))
            continue
        f = chance.choice(["read", "write", "cas"])
        arguments = {"read": None, "write": chance.randrange(5), "cas": [chance.randrange(5), chance.randrange(5)]}
        begun[process] = Op(index, 1000 * index, OpType.INVOKE, process, f, arguments[f], node=f"n{process % 5 + 1}")
        ops.append(begun[process])
    return ops


def rate(count: int, action: Callable[[], object]) -> float:
    """Returns how many of `count` items `action` handles per second of processor time."""
    best = float("inf")
    for _ in range(ROUNDS):
        began = time.process_time()
        action()
        best = min(best, time.process_time() - began)
    return count / best


def main() -> None:
    """Prints the table."""
    ops = history(EVENTS)
    operations = pair(ops)
    encoder = LineEncoder()
    lines = [encoder.event(op) for op in ops]
    with tempfile.TemporaryDirectory() as directory:
        edn, pretty, jsonl, table = (Path(directory) / name for name in ("h.edn", "p.edn", "h.jsonl", "o.parquet"))
        write_history(edn, ops)
        jsonl.write_text("\n".join([json.dumps({"format": FORMAT, "version": VERSION}), *lines]) + "\n")
        write_operations(table, operations, run="benchmark")
        text = edn.read_text()
        spread = "[" + text.replace(", ", ",\n ") + "]"  # like a pretty-printer's output
        pretty.write_text(spread)

        def arrays() -> Columns:
            reader = ColumnReader(str(table))
            return joined([columns for _, columns in batches_of(open_parquet(table), reader)], reader)

        def forms(source: str) -> int:
            return sum(1 for _ in Reader(io.StringIO(source), see_through=True))

        peer = rate(EVENTS, lambda: [json.loads(line) for line in lines])
        rows = [
            ("json.loads, for comparison", "events", peer),
            ("EDN reader, one map on a line", "maps", rate(EVENTS, lambda: forms(text))),
            ("EDN reader, pretty-printed", "maps", rate(EVENTS, lambda: forms(spread))),
            ("history.edn to operations", "events", rate(EVENTS, lambda: read_histories(str(edn)))),
            ("the same, pretty-printed", "events", rate(EVENTS, lambda: read_histories(str(pretty)))),
            ("history.jsonl to operations", "events", rate(EVENTS, lambda: read_histories(str(jsonl)))),
            ("operations.parquet to operations", "rows", rate(len(operations), lambda: list(read_operations(table)))),
            ("operations.parquet to arrays", "rows", rate(len(operations), arrays)),
            ("writing history.edn", "events", rate(EVENTS, lambda: write_history(edn, ops))),
            (
                "writing operations.parquet",
                "rows",
                rate(len(operations), lambda: write_operations(table, operations, run="b")),
            ),
        ]
    print(f"{'what':34}{'per second':>14}  {'of':8}{'to json.loads':>14}")
    for what, unit, per_s in rows:
        print(f"{what:34}{per_s:>14,.0f}  {unit:8}{per_s / peer:>13.2f}x")


if __name__ == "__main__":
    main()
