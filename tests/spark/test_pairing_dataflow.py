"""Pairing by windows gives the same results as pairing in one process."""

from __future__ import annotations

import random
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F  # noqa: N812 - the name that all of Spark's users know

from checker.formats.errors import BadHistory
from checker.formats.parquet import NAMES, json_text
from harness.op import Op, OpType
from harness.pairing import Event, Pairing
from results.pipeline.spark.events import SCHEMA, _event
from results.pipeline.spark.pairing import paired

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

HISTORIES = 600
PROCESSES = 3


def random_events(rng: random.Random, *, careless: float) -> list[Event]:
    """Returns a history whose processes sometimes break the rules."""
    events: list[Event] = []
    begun: dict[int, Op] = {}
    ended: set[int] = set()
    time_ns = 0
    for index in range(rng.randrange(1, 24)):
        process = rng.randrange(PROCESSES)
        wrong = rng.random() < careless
        time_ns = max(0, time_ns + (rng.randrange(-3, 3) if wrong else rng.randrange(3)))
        before = begun.get(process)
        if process in ended and not wrong:
            process = PROCESSES + index
            before = None
        if before is None or (wrong and rng.random() < 0.3):
            f = rng.choice(["read", "write", "cas"])
            value: Any = {"read": None, "write": rng.randrange(5), "cas": [rng.randrange(3), rng.randrange(3)]}[f]
            kind, key, node = OpType.INVOKE, rng.choice([None, "a", "b"]), rng.choice([None, "n1"])
            op = Op(
                index,
                time_ns,
                kind,
                process,
                f,
                value,
                key,
                node,
                None,
                rng.choice([None, 7]),
                rng.choice([None, "final"]),
            )
            begun[process] = op
            has_value = True
        else:
            kind = rng.choice([OpType.OK, OpType.FAIL, OpType.INFO])
            f, value, key = before.f, before.value, before.key
            has_value = kind is OpType.OK or rng.random() < 0.7
            if kind is OpType.OK and f == "read":
                value = rng.choice([None, 3, "x"])
            if wrong:
                f, key = rng.choice([f, "read"]), rng.choice([key, "a", None])
                value = rng.choice([value, 9])
            if not has_value:
                value, key = None, rng.choice([None, key])
            error, order = rng.choice([None, "timeout"]), rng.choice([None, 5, -(2**63)])
            op = Op(index, time_ns, kind, process, f, value, key, error=error, order=order)
            begun.pop(process, None)
            ended |= {process} if kind is OpType.INFO else set()
        events.append(Event(index + 2, op, has_value))
    return events


def test_pairing_as_dataflow_is_pairing(spark: SparkSession) -> None:
    """Both give the same operations of a history. If one refuses it, the other has a breach in the same line."""
    rng = random.Random(20)
    histories = {f"run-{number}": random_events(rng, careless=(number % 3) / 20) for number in range(HISTORIES)}
    rows = [
        _event(run, "somewhere", event.line, event.op, has_value=event.has_value)
        for run, events in histories.items()
        for event in events
    ]
    rng.shuffle(rows)
    found = paired(spark.createDataFrame(rows, SCHEMA)).orderBy("run", "invoke_index").collect()
    operations: dict[str, list[tuple[Any, ...]]] = {run: [] for run in histories}
    breaches: dict[str, set[int]] = {run: set() for run in histories}
    for row in found:
        if row["reason"] is None:
            operations[row["run"]].append(tuple(row[name] for name in NAMES[1:]))
        else:
            breaches[row["run"]].add(row["line"])
    refused = 0
    for run, events in histories.items():
        pairing = Pairing(partial(BadHistory, run))
        try:
            for event in events:
                pairing.add(event)
        except BadHistory as error:
            line = error.line
        else:
            line = None
        assert (line in breaches[run]) if line is not None else not breaches[run], (run, line, events)
        if line is not None:
            refused += 1
            continue
        expected = [
            tuple(
                json_text(getattr(operation, name)) if name in {"value", "result"} else getattr(operation, name)
                for name in NAMES[1:]
            )
            for operation in pairing.finish()
        ]
        assert operations[run] == expected, (run, events)
    assert HISTORIES / 20 < refused < HISTORIES / 2


def test_a_breach_costs_no_other_operation(spark: SparkSession) -> None:
    """The events after a breach are paired as usual, and the wrongly completed invoke stays open."""
    ops = [
        Op(0, 0, OpType.INVOKE, 1, "write", 1),
        Op(1, 1, OpType.OK, 1, "read", 1),
        Op(2, 2, OpType.INVOKE, 2, "write", 2),
        Op(3, 3, OpType.OK, 2, "write", 2),
    ]
    rows = [_event("run", "somewhere", op.index + 2, op, has_value=True) for op in ops]
    found = paired(spark.createDataFrame(rows, SCHEMA))
    kept = found.where(F.col("reason").isNull()).orderBy("invoke_index").select("type", "complete_index").collect()
    assert [tuple(row) for row in kept] == [("info", None), ("ok", 3)]
    (breach,) = found.where(F.col("reason").isNotNull()).collect()
    assert (breach["line"], breach["reason"]) == (3, "expected the completion of write of line 2, found read")
