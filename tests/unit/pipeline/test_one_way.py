"""A history has one analysis: as objects, as text that is read as arrays, as a table in a file, and as rows of the pipeline."""

from __future__ import annotations

import json
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from pyarrow import parquet

from checker.decide.arrays import OfPlain
from checker.decide.decision import decide
from checker.decide.history import OfObjects
from checker.decide.question import Explaining
from checker.decide.tables import read_table
from checker.formats import read
from checker.formats.parquet import read_operations, write_operations
from checker.formats.source import opened
from harness.history import HistoryWriter
from harness.op import OpType
from harness.verdict import Verdict
from results.pipeline.decide.asked import VerdictOptions
from results.pipeline.decide.verdicts import decided
from tests.spark.histories import fields_of
from tests.unit.checker.conftest import draw_history

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from checker.decide.history import Decidable
    from checker.decide.question import Question
    from checker.formats.plain import Plain
    from checker.keyed import KeyedAnalysis
    from harness.op import Operation

HISTORIES = 12
KEYS = 3
MODELS = ["register", "cas-register", "counter", "fifo-queue", "owner-mutex"]
ASKED: list[dict[str, Any]] = [
    {},
    {"explained": 1},
    {"explained": 0},
    {"cross_check": True},
    {"certificate": True},
    {"explain_model": True, "cross_check": True},
    {"algorithm": "linear"},
    {"algorithm": "wgl", "certificate": True},
    {"algorithm": "zones"},
]


def _drawn(name: str, random: Random) -> list[Operation]:
    """Draws a history of several keys, in the order of its invokes."""
    merged = []
    for index in range(KEYS):
        _, operations = draw_history(name, random, unique=random.random() < 0.5)
        for op in operations:
            assert isinstance(op.process, int)
            last = op.complete_index if op.type is OpType.INFO else KEYS * (op.complete_index or 0) + index
            merged.append(
                replace(
                    op,
                    process=10 * index + op.process,
                    key=f"k{index}",
                    invoke_index=KEYS * op.invoke_index + index,
                    complete_index=last,
                )
            )
    return sorted(merged, key=lambda op: op.invoke_index)


def _written(path: Path, operations: Sequence[Operation]) -> None:
    """Writes the events of operations."""
    events: list[tuple[int, Operation, OpType]] = [(op.invoke_index, op, OpType.INVOKE) for op in operations]
    latest = 2 * max((op.complete_index or op.invoke_index for op in operations), default=0)
    events += [
        (latest if op.type is OpType.INFO or op.complete_index is None else op.complete_index, op, op.type)
        for op in operations
    ]
    writer = HistoryWriter(path, {"test": "t"})
    for time_ns, (_, op, kind) in enumerate(sorted(events, key=lambda event: event[0])):
        value = op.result if kind is OpType.OK and op.result is not None else op.value
        writer.append(time_ns=time_ns, op_type=kind, process=op.process, f=op.f, value=value, key=op.key)
    writer.close()


def _read(path: Path) -> Plain:
    """Returns a history as arrays."""
    with opened(str(path)) as source:
        [history] = read.read_source(source)
    assert history.plain is not None
    return history.plain


def _untimed(keyed: KeyedAnalysis) -> KeyedAnalysis:
    """Returns an analysis without the times that it took."""
    keys = {key: replace(analysis, seconds=0.0) for key, analysis in keyed.keys.items()}
    search = None if keyed.search is None else replace(keyed.search, key="the slowest", seconds=0.0)
    return replace(keyed, seconds=0.0, keys=keys, search=search)


def _in_file(path: Path, question: Question) -> Decidable:
    """Returns the history of a file, from arrays if they suffice."""
    table = None if question.needs_objects else read_table(path, "table", question.model)
    return OfObjects.of(read_operations(path)) if table is None else table


def _rows(path: Path, options: VerdictOptions) -> dict[str, dict[str, Any]]:
    """Returns the rows of the pipeline, by key."""
    rows = {row["key"]: row for row in decided(parquet.read_table(path), options)}
    for row in rows.values():
        row["counterexample"] = json.loads(row["counterexample"] or "[]")
    return rows


@pytest.mark.parametrize("asked", ASKED, ids=lambda asked: "-".join(asked) or "nothing")
@pytest.mark.parametrize("name", MODELS)
def test_each_way_has_the_same_analysis(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, asked: dict[str, Any]
) -> None:
    """Verdicts, words, counterexamples, linearizations and the effort do not depend on where the operations are."""
    monkeypatch.setattr(read, "LONG_BYTES", 0)
    random = Random(f"{name}{asked}")
    options = VerdictOptions(model=name, time_limit_s=None, **asked)
    question = replace(options.asked().question, explaining=Explaining(most=options.explained))
    file = tmp_path / "operations.parquet"
    seen: set[Verdict] = set()
    for number in range(HISTORIES):
        text = tmp_path / f"{number}.jsonl"
        _written(text, _drawn(name, random))
        plain = _read(text)
        operations = list(plain.operations)
        if not operations:
            continue
        write_operations(file, operations, run="r")
        expected = _untimed(decide(OfObjects.of(operations), question))
        seen |= {analysis.valid for analysis in expected.keys.values()}
        effort = expected.search if question.explain_model else None
        for way in (OfPlain(plain), _in_file(file, question)):
            found = _untimed(decide(way, question))
            if effort is not None:  # which key is the slowest, the clock decides
                assert found.search is not None
                found = replace(found, search=effort)
            assert found == expected
        rows = _rows(file, options)
        assert rows.keys() == expected.keys.keys()
        for key, analysis in expected.keys.items():
            wanted = fields_of(analysis)
            assert {field: rows[key or ""][field] for field in wanted} == wanted
            assert (rows[key or ""]["effort"] is not None) == question.explain_model
    assert Verdict.VALID in seen
    assert {Verdict.INVALID, Verdict.UNKNOWN} & seen
