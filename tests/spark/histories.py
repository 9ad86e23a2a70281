"""Random histories of registers, many in one table, and the results of `labrys check` for them."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from checker.decide.decision import decide
from checker.decide.history import OfObjects
from checker.formats.parquet import NAMES, schema
from checker.result import operation_json
from checker.values import json_text
from harness.op import Operation, OpType
from harness.randomness import stream

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path
    from random import Random

    from checker.result import Analysis
    from harness.op import Value
    from results.pipeline.decide.asked import VerdictOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """The properties of a register's history.

    Attributes:
        cas: Whether there is compare-and-set.
        unique: Whether no value is written twice.
        size: The number of operations.
        events: The average number of events per index. More than one makes ties.
        spoken: The kind of values that are not integers of up to 18 digits; None: there are none.
    """

    cas: bool
    unique: bool
    size: int
    events: int = 1
    spoken: Callable[[int], Value] | None = None


SPOKEN: Sequence[Callable[[int], Value]] = (
    lambda number: f"v{number}",
    lambda number: number * 10**18,
    lambda number: number + 0.5,
    lambda number: [number, None],
    lambda number: bool(number % 2),
)


def any_kind(random: Random) -> Kind:
    """Draws a kind."""
    return Kind(
        cas=random.random() < 0.4,
        unique=random.random() < 0.6,
        size=random.randint(1, random.choice([3, 8, 14, 14, 25])),
        events=random.choice([1, 1, 2, 3, 5]),
        spoken=random.choice(SPOKEN) if random.random() < 0.05 else None,
    )


class Register:
    """A register that mostly works correctly."""

    def __init__(self, random: Random, kind: Kind) -> None:
        """Starts with nil."""
        self._random = random
        self._functions = ["read", "write", "cas"] if kind.cas else ["read", "read", "write"]
        self._unique = kind.unique
        self._lies = random.choice([0.0, 0.05, 0.3])
        self._written: list[int | None] = [None]

    def do(self) -> tuple[str, Any, int | None, bool]:
        """Returns a function, its argument, its result and whether it succeeded."""
        random, state = self._random, self._written[-1]
        f = random.choice(self._functions)
        lie = random.random() < self._lies
        if f == "read":
            return f, None, random.choice([*self._written, 77]) if lie else state, True
        new = len(self._written) if self._unique else random.choice([0, 1, 2, None])
        if f == "write":
            self._written.append(new)
            return f, new, None, True
        expected = random.choice(self._written[-2:])
        succeeds = expected == state or lie
        if succeeds:
            self._written.append(new)
        return f, [expected, new], None, succeeds


def register_history(random: Random, kind: Kind, key: str | None) -> list[Operation]:
    """Returns a history of one register with wrong results, crashes and failures. n operations have indexes below 2 * n."""
    register = Register(random, kind)
    done = [register.do() for _ in range(kind.size)]
    spread = random.choice([0.8, 3.0])
    times = [(index - spread * random.random(), index + spread * random.random()) for index in range(len(done))]
    rank = {time: index // kind.events for index, time in enumerate(sorted(time for pair in times for time in pair))}
    operations = []
    for process, ((f, value, result, ok), (start, end)) in enumerate(zip(done, times, strict=True)):
        outcome = OpType.OK if ok else OpType.FAIL
        if random.random() < 0.1:
            outcome = random.choice([OpType.INFO, OpType.FAIL])
        first, last = rank[start], max(rank[end], rank[start] + 1)
        operations.append(
            Operation(
                process=process,
                f=f,
                value=_said(value, kind),
                result=_said(result, kind) if outcome is OpType.OK else None,
                type=outcome,
                start_ns=first * 1000,
                end_ns=last * 1000,
                invoke_index=first,
                complete_index=last,
                key=key,
                node=f"n{process % 3}",
            )
        )
    return sorted(operations, key=row_order)


def _said(value: Any, kind: Kind) -> Value:
    if value is None or kind.spoken is None:
        return value
    return [_said(member, kind) for member in value] if isinstance(value, list) else kind.spoken(value)


def row_order(op: Operation) -> tuple[int, int, Any]:
    """Returns the sort key of an operation in its table. The job orders ties in the same way."""
    return op.invoke_index, op.complete_index or 0, op.process


def in_their_order(random: Random, operations: Sequence[Operation]) -> list[Operation]:
    """Numbers operations in the order of their ends, so that many of these orders are legal. A few have no number."""
    ends = sorted({op.complete_index or 0 for op in operations if op.type is OpType.OK})
    return [
        replace(op, order=ends.index(op.complete_index or 0) + random.choice([0, 0, 0, 0, 2]))
        if op.type is OpType.OK and random.random() < 0.9
        else op
        for op in operations
    ]


def histories(seed: int, count: int, *, cas: bool, unique: bool, size: int = 14) -> dict[str, list[Operation]]:
    """Returns runs of one key by name, with at most `size` operations each."""
    return mixed_histories(seed, count, lambda random: Kind(cas=cas, unique=unique, size=random.randint(1, size)))


def mixed_histories(
    seed: int, count: int, kind: Callable[[Random], Kind], keys: Sequence[int] = ()
) -> dict[str, list[Operation]]:
    """Returns runs by name, each with one of these numbers of keys. The key of a run with a single key has no name."""
    random = stream(seed, "histories")
    runs = {}
    for number in range(count):
        named = random.choice(keys) if keys else 1
        names = [str(k) for k in range(named)] if named > 1 else [None]
        parts = [register_history(random, kind(random), name) for name in names]
        runs[f"run-{number}"] = _interleaved(random, parts)
    return runs


def _interleaved(random: Random, parts: Sequence[Sequence[Operation]]) -> list[Operation]:
    """Gives the events of several keys the indexes of one history, in a random order that keeps each key's order."""
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
    return sorted(moved, key=row_order)


def two_writes_and_a_read(*, stale: bool, key: str = "k", since: int = 0) -> list[Operation]:
    """Returns two sequential writes and a later read. The read returns the first value if it is stale."""
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


def alone(index: int, f: str, value: Value, result: Value = None) -> Operation:
    """Returns the operation at one place of a sequential history."""
    return Operation(
        process=index % 5,
        f=f,
        value=value,
        result=result,
        type=OpType.OK,
        start_ns=index,
        end_ns=index,
        invoke_index=2 * index,
        complete_index=2 * index + 1,
    )


def writes_and_reads(size: int, lies: Mapping[int, int]) -> list[Operation]:
    """Writes a number at each even place and reads it at the next. The places of `lies` have reads of these values instead."""
    right = [
        alone(index, "read", None, index - 1) if index % 2 else alone(index, "write", index) for index in range(size)
    ]
    return [alone(index, "read", None, lies[index]) if index in lies else op for index, op in enumerate(right)]


def write_runs(folder: Path, runs: Mapping[str, Sequence[Operation]]) -> list[str]:
    """Writes the operations of all runs as one table, ties included, and returns its files."""
    import pyarrow as pa  # noqa: PLC0415 - only tests of Spark need it
    from pyarrow import parquet  # noqa: PLC0415

    rows = [
        {name: json_text(getattr(op, name)) if name in {"value", "result"} else getattr(op, name) for name in NAMES[1:]}
        | {"run": run, "type": str(op.type)}
        for run, operations in runs.items()
        for op in operations
    ]
    path = folder / "operations.parquet"
    parquet.write_table(pa.Table.from_pylist(rows, schema=schema()), path, row_group_size=5000)
    return [str(path)]


def by_check(
    options: VerdictOptions, runs: Mapping[str, Sequence[Operation]]
) -> dict[tuple[str, str | None], dict[str, Any]]:
    """Returns the results of `labrys check` for each run and key, in the fields of a row of verdicts."""
    question = options.asked().question
    return {
        (name, key): fields_of(result)
        for name, operations in runs.items()
        for key, result in decide(OfObjects.of(operations), question).keys.items()
    }


def fields_of(result: Analysis) -> dict[str, Any]:
    """Returns the fields of a row of verdicts that an analysis determines."""
    op, certificate = result.op, result.certificate
    return {
        "verdict": str(result.valid),
        "analyzer": result.analyzer,
        "cause": result.cause,
        "kind": result.kind,
        "operations": result.operations,
        "op_invoke_index": None if op is None else op.invoke_index,
        "op_complete_index": None if op is None else op.complete_index,
        "explanation": result.explanation,
        "counterexample": json.loads(json.dumps([operation_json(operation) for operation in result.counterexample])),
        "order_agrees": None if result.order_agrees is None else str(result.order_agrees),
        "order_reason": result.order_reason or None,
        "certificate": None if certificate is None else [operation.invoke_index for operation in certificate],
    }
