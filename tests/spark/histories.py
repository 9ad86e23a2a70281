"""Random histories of registers, many in one table, and what `labrys check` says of them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from checker.formats.parquet import write_operations
from checker.independent import check_keys
from checker.result import operation_json
from harness.op import Operation, OpType
from harness.randomness import stream

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path
    from random import Random

    from checker.models import Model
    from harness.op import Value


class Register:
    """A register that mostly does what it is asked, in the order of what it is asked."""

    def __init__(self, random: Random, *, cas: bool, unique: bool, lies: float) -> None:
        """Begins with nil."""
        self._random = random
        self._functions = ["read", "write", "cas"] if cas else ["read", "read", "write"]
        self._unique = unique
        self._lies = lies
        self._written: list[Value] = [None]

    def do(self) -> tuple[str, Value, Value, bool]:
        """Returns a function, its argument, its result and whether it succeeded."""
        random, state = self._random, self._written[-1]
        f = random.choice(self._functions)
        lie = random.random() < self._lies
        if f == "read":
            return f, None, random.choice([*self._written, 77]) if lie else state, True
        new: Value = len(self._written) if self._unique else random.randrange(3)
        if f == "write":
            self._written.append(new)
            return f, new, None, True
        expected = random.choice(self._written[-2:])
        succeeds = expected == state or lie
        if succeeds:
            self._written.append(new)
        return f, [expected, new], None, succeeds


def register_history(random: Random, *, size: int, cas: bool, unique: bool, key: str | None) -> list[Operation]:
    """Returns a history of one register, with lies, crashes and failures; its events have the indexes 0, 1, ..."""
    register = Register(random, cas=cas, unique=unique, lies=random.choice([0.0, 0.05, 0.3]))
    done = [register.do() for _ in range(size)]
    spread = random.choice([0.8, 3.0])
    times = [(place - spread * random.random(), place + spread * random.random()) for place in range(size)]
    rank = {time: index for index, time in enumerate(sorted(time for pair in times for time in pair))}
    operations = []
    for process, ((f, value, result, ok), (start, end)) in enumerate(zip(done, times, strict=True)):
        kind = OpType.OK if ok else OpType.FAIL
        if random.random() < 0.1:
            kind = random.choice([OpType.INFO, OpType.FAIL])
        operations.append(
            Operation(
                process=process,
                f=f,
                value=value,
                result=result if kind is OpType.OK else None,
                type=kind,
                start_ns=rank[start] * 1000,
                end_ns=rank[end] * 1000,
                invoke_index=rank[start],
                complete_index=rank[end],
                key=key,
                node=f"n{process % 3}",
            )
        )
    return sorted(operations, key=lambda op: op.invoke_index)


def histories(
    seed: int, count: int, *, cas: bool, unique: bool, keys: int = 1, size: int = 14
) -> dict[str, list[Operation]]:
    """Returns runs by name; each has so many keys, or none if it is one."""
    random = stream(seed, "histories")
    runs = {}
    for number in range(count):
        names = [str(k) for k in range(keys)] if keys > 1 else [None]
        parts = [
            register_history(random, size=random.randint(1, size), cas=cas, unique=unique, key=name) for name in names
        ]
        runs[f"run-{number}"] = _interleaved(random, parts)
    return runs


def _interleaved(random: Random, parts: Sequence[Sequence[Operation]]) -> list[Operation]:
    """Gives the events of several keys the indexes of one history, in some order that keeps each key's own."""
    turns = [k for k, part in enumerate(parts) for _ in range(2 * len(part))]
    random.shuffle(turns)
    places: list[list[int]] = [[] for _ in parts]
    for index, k in enumerate(turns):
        places[k].append(index)
    moved = [
        replace(op, invoke_index=places[k][op.invoke_index], complete_index=places[k][op.complete_index or 0])
        for k, part in enumerate(parts)
        for op in part
    ]
    return sorted(moved, key=lambda op: op.invoke_index)


def two_writes_and_a_read(*, stale: bool, key: str = "k", since: int = 0) -> list[Operation]:
    """Returns two writes, one after the other, and a read after both; it returns the first one's value if it is stale."""
    told = [("write", 1, 1), ("write", 2, 2), ("read", None, 1 if stale else 2)]
    return [
        Operation(
            process=number,
            f=f,
            value=value,
            result=result,
            type=OpType.OK,
            start_ns=since + 2 * number,
            end_ns=since + 2 * number + 1,
            invoke_index=since + 2 * number,
            complete_index=since + 2 * number + 1,
            key=key,
        )
        for number, (f, value, result) in enumerate(told)
    ]


def write_runs(folder: Path, runs: Mapping[str, Sequence[Operation]]) -> list[str]:
    """Writes each run's operations; returns the files."""
    import pyarrow as pa  # noqa: PLC0415 - only tests of Spark need it
    from pyarrow import parquet  # noqa: PLC0415

    tables = []
    for name, operations in runs.items():
        path = folder / "part.parquet"
        write_operations(path, operations, run=name)
        tables.append(parquet.read_table(path))
    path.unlink()
    whole = folder / "operations.parquet"
    parquet.write_table(pa.concat_tables(tables).unify_dictionaries(), whole, row_group_size=5000)
    return [str(whole)]


def by_check(model: Model, runs: Mapping[str, Sequence[Operation]]) -> dict[tuple[str, str | None], dict[str, Any]]:
    """Returns what `labrys check` says of each run and key, in the fields of a row of verdicts."""
    rows = {}
    for name, operations in runs.items():
        for key, result in check_keys(model, operations, memory_limit=1 << 30, threads=1).keys.items():
            op = result.op
            shown = [operation_json(each) for each in result.counterexample]
            rows[name, key] = {
                "verdict": str(result.valid),
                "analyzer": result.analyzer,
                "cause": result.cause,
                "kind": result.kind,
                "operations": result.operations,
                "op_invoke_index": None if op is None else op.invoke_index,
                "op_complete_index": None if op is None else op.complete_index,
                "explanation": result.explanation,
                "counterexample": json.loads(json.dumps(shown)),
            }
    return rows
