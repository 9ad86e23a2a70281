"""Decides and explains keys with the code of `labrys check`, from whole operations.

The rule: a key that is not valid gets the words of `labrys check`, because the same functions make them. If columns decided the
key, only the few operations that the explanation names become objects. If the key needs a counterexample, or if columns cannot
represent it, all its operations do, within the budget of a key.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from checker.decide.decision import decide, of_one
from checker.decide.history import OfObjects
from checker.decide.question import Explaining
from checker.explain.sentences import VALID, Evidence, explain
from checker.models.blaming import blaming
from checker.result import Analysis, operation_json
from harness.errors import LabrysError
from harness.op import OpType
from harness.verdict import Verdict
from results.pipeline.decide.kernel import KERNEL
from results.pipeline.decide.rows import OBJECTS, groups
from results.pipeline.schema import VERDICTS, storable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from checker.explain.effort import Effort
    from checker.keyed import KeyedAnalysis
    from harness.op import Operation
    from results.pipeline.decide.asked import Asked
    from results.pipeline.decide.rows import Group

ZONES: Final = "zones"
TOO_LARGE: Final = (
    "It is not known whether the system's own order is a legal one: the key has more operations than fit into its memory "
    "limit, {most}."
)
# The columns that a valid row needs; the last two are null for a key without an operation that matters.
VALID_FROM: Final = ("run", "key", "operations", "orders", "analyzer", "engine")
_ROWS_PER_BATCH: Final = 256


def examined(batches: Iterator[pa.RecordBatch], asked: Asked) -> Iterator[pa.RecordBatch]:
    """Yields rows of verdicts for keys with their operations, in the columns `results.pipeline.decide.rows.TARGETED`."""
    rows: list[dict[str, Any]] = []
    for group in groups(batches, most=asked.most):
        rows.append(examine(group, asked))
        if len(rows) == _ROWS_PER_BATCH:
            yield pa.RecordBatch.from_pylist([storable(row) for row in rows], schema=VERDICTS)
            rows = []
    if rows:
        yield pa.RecordBatch.from_pylist([storable(row) for row in rows], schema=VERDICTS)


def valid(keys: pa.RecordBatch, asked: Asked) -> pa.RecordBatch:
    """Returns rows of verdicts for keys that columns found valid.

    Args:
        keys: The columns `VALID_FROM`.
        asked: What is asked about them.
    """
    count = keys.num_rows
    before, after = VALID.split("{operations}")
    text = pc.binary_join_element_wise(before, keys.column("operations").cast(pa.string()), after, "")
    # Only whole operations are checked against the system's own order, and those of these keys do not fit.
    ordered = pc.greater(keys.column("orders"), 0)
    nothing = pa.nulls(count, pa.string())
    columns = {
        **{name: keys.column(name) for name in ("run", "key", "operations")},
        "verdict": pa.repeat(str(Verdict.VALID), count),
        "model": pa.repeat(asked.question.model.name, count),
        # A key without an operation that matters has no answer; the near-linear analyzer of registers would find it valid.
        "analyzer": pc.fill_null(keys.column("analyzer"), ZONES),
        "engine": pc.fill_null(keys.column("engine"), KERNEL),
        "explanation": text,
        "order_agrees": pc.if_else(ordered, str(Verdict.UNKNOWN), nothing),
        "order_reason": pc.if_else(ordered, TOO_LARGE.format(most=asked.most), nothing),
    }
    arrays = [columns.get(field.name, pa.nulls(count, field.type)) for field in VERDICTS]
    return pa.RecordBatch.from_arrays(arrays, schema=VERDICTS)


def examine(group: Group, asked: Asked) -> dict[str, Any]:
    """Returns the row of verdicts of a key."""
    target = group.target
    result, effort = _analysis(group, asked)
    op, certificate = result.op, result.certificate
    counterexample = [operation_json(operation) for operation in result.counterexample]
    return {
        "run": target.run,
        "key": target.key,
        "verdict": str(result.valid),
        "model": asked.question.model.name,
        "analyzer": result.analyzer,
        "engine": target.engine,
        "cause": result.cause,
        "kind": result.kind,
        "operations": target.operations,
        "op_invoke_index": None if op is None else op.invoke_index,
        "op_complete_index": None if op is None or op.type is OpType.INFO else op.complete_index,
        "explanation": result.explanation,
        "counterexample": json.dumps(counterexample, ensure_ascii=False, sort_keys=True) if counterexample else None,
        "certificate": None if certificate is None else [op.invoke_index for op in certificate],
        "effort": None if effort is None else json.dumps(effort.to_json()),
        **_order(group, result, asked),
    }


def _order(group: Group, result: Analysis, asked: Asked) -> dict[str, str | None]:
    """Returns the verdict on the system's own order; it is unknown if the whole key was too large to examine."""
    target = group.target
    if target.orders and target.operations > asked.most:
        return {"order_agrees": str(Verdict.UNKNOWN), "order_reason": TOO_LARGE.format(most=asked.most)}
    if target.engine != OBJECTS or result.order_agrees is None:
        return {"order_agrees": None, "order_reason": None}
    return {"order_agrees": str(result.order_agrees), "order_reason": result.order_reason}


def _analysis(group: Group, asked: Asked) -> tuple[Analysis, Effort | None]:
    """Returns the result of a key, and the effort of its search if it is wanted."""
    target = group.target
    if group.trouble is not None:
        return _unknown(group, asked, "error", group.trouble), None
    # A part may be too large with all operations that make its values. Then the columns' answer stays.
    is_named = not target.whole or (group.too_many and target.part is not None)
    if group.too_many and not is_named:
        text = f"The key has more operations than fit into its memory limit, {asked.most}."
        return _unknown(group, asked, "out-of-memory", text), None
    if is_named:
        return _named(group, asked), None
    try:
        with blaming(type(asked.question.model)):
            keyed = _decided(group, asked)
    except LabrysError as error:
        return _unknown(group, asked, "error", str(error)), None
    result = of_one(keyed)
    if target.engine != KERNEL or target.part is None:
        return result, keyed.search
    # The kernel decided the whole key; the part serves for the explanation only.
    known = _named(group, asked)
    explained = result if result.valid is Verdict.INVALID else known
    shown = replace(
        known, kind=explained.kind, explanation=explained.explanation, counterexample=explained.counterexample
    )
    return shown, None


def _decided(group: Group, asked: Asked) -> KeyedAnalysis:
    target, part = group.target, group.target.part
    operations = group.operations if part is None else _of_invokes(group.operations, part)
    history = OfObjects.of_one(
        operations, is_part=part is not None, makers=None if target.observed is None else group.operations
    )
    return decide(history, replace(asked.question, explaining=Explaining(most=1 if target.shrink else 0)))


def _of_invokes(operations: Sequence[Operation], invokes: Sequence[int]) -> list[Operation]:
    chosen = frozenset(invokes)
    return [op for op in operations if op.invoke_index in chosen]


def _unknown(group: Group, asked: Asked, cause: str, explanation: str) -> Analysis:
    return Analysis(
        valid=Verdict.UNKNOWN,
        model=asked.question.model.name,
        analyzer=group.target.analyzer or "none",
        operations=group.target.operations,
        seconds=0.0,
        cause=cause,
        explanation=explanation,
    )


def _named(group: Group, asked: Asked) -> Analysis:
    """Returns the result that columns gave, with the operations that it names."""
    target = group.target
    by_start = {op.invoke_index: op for op in group.operations}
    result = Analysis(
        valid=Verdict(target.verdict or Verdict.UNKNOWN),
        model=asked.question.model.name,
        analyzer=target.analyzer or "none",
        operations=target.operations,
        seconds=0.0,
        op=None if target.op_start is None else by_start.get(target.op_start),
        cause=target.cause,
        kind=target.kind,
    )
    core = [by_start[start] for start in target.core if start in by_start]
    evidence = Evidence(core=core, unsuited=target.unsuited)
    return replace(result, explanation=explain(result, asked.question.model, evidence))
