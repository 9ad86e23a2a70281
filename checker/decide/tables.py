"""Decides long histories in operations.parquet from arrays, without a Python object for each operation.

The result is that of `independent.check_keys` for the same operations. An operation becomes an object only if the
result shows it. The answer is None if arrays cannot represent the model or the values, or if a row breaks a rule of histories
and so needs an error with its place. Then the caller uses objects.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from checker.decide.analysis import analysis, contradiction
from checker.decide.coding import Coded
from checker.decide.deciding import decide_all
from checker.decide.excerpts import is_long, makers, of_key, part_of, previous_ok
from checker.errors import Disagreement, Unsuited
from checker.explain.hardness import CAUSES, of_columns
from checker.explain.sentences import Evidence, explain
from checker.explain.weakening import CONVENTION, READS_OF_NIL, silenced
from checker.formats.columns import FAIL, INFO, NEVER, NOTHING, OK, ORDER, ColumnReader, batches_of
from checker.formats.parquet import open_parquet, read_rows_of
from checker.formats.row_rules import Rules
from checker.keyed import EXPLAINED, KeyedAnalysis
from checker.models import NativeModel
from checker.result import Analysis
from harness.errors import LabrysError
from harness.op import OpType
from harness.verdict import Verdict, worst

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from checker._kernel import Outcome
    from checker.decide.coding import Arrays
    from checker.explain.hardness import Why
    from checker.formats.columns import Columns
    from checker.models import Model
    from checker.search.solving import Limits
    from harness.op import Operation

_EXPLAIN_S: Final = 20.0
_TYPES: Final = {OpType.OK: OK, OpType.FAIL: FAIL, OpType.INFO: INFO}


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A history as arrays.

    Attributes:
        path: The file; its operations are read for the result.
        model: The model of each object.
        keys: The keys, in the order of the history.
        arrays: The history of each key, in the kernel's form.
        counts: The number of operations of each key.
        events: The number of events in the history.
        weakened: See `checker.explain.weakening.weakened`.
    """

    path: Path
    model: NativeModel
    keys: Sequence[str | None]
    arrays: Sequence[Arrays]
    counts: Sequence[int]
    events: int
    weakened: Mapping[str, int]


def read_table(path: Path, name: str, model: Model) -> Table | None:
    """Reads a file of one run as arrays; None if it has several runs, or arrays cannot represent it.

    Raises:
        BadHistory: The file has another format.
    """
    if not isinstance(model, NativeModel):
        return None
    file = open_parquet(path, name=name)
    reader = ColumnReader(name)
    rules = Rules()
    weak = WeakRows(model)
    try:
        coded = Coded(model, reader, file.metadata.num_rows)
        # Only objects are checked against the system's own order.
        hints = [name for name in file.schema_arrow.names if name == ORDER]
        for batch, columns in batches_of(file, reader, more=["run", *hints]):
            if any(batch.column(name).null_count < len(batch) for name in hints):
                return None
            rules.add(columns, batch)
            weak.add(columns)
            coded.add(columns)
        rules.finish()
        arrays = coded.finish()
    except (Unsuited, LabrysError, ValueError, MemoryError):
        return None
    return Table(
        path=path,
        model=model,
        keys=reader.keys,
        arrays=arrays,
        counts=coded.by_key.tolist(),
        events=rules.events,
        weakened=weak.counts(),
    )


class WeakRows:
    """Counts operations that conventions weaken, as `checker.explain.weakening.weakened` does."""

    def __init__(self, model: Model) -> None:
        """Starts without rows."""
        self._silenced = silenced(model)
        self._counts = dict.fromkeys(self._silenced, 0)

    def add(self, columns: Columns) -> None:
        """Adds the next rows."""
        for name in self._silenced:
            f, op_type = CONVENTION[name]
            if f not in columns.functions:
                continue
            chosen = (columns.function == list(columns.functions).index(f)) & (columns.type == _TYPES[op_type])
            if name == READS_OF_NIL:
                chosen &= columns.result.kind == NOTHING
            self._counts[name] += int(np.count_nonzero(chosen))

    def counts(self) -> dict[str, int]:
        """Returns the number of operations that each convention weakens, without zeros."""
        return {name: count for name, count in self._counts.items() if count}


def check_table(table: Table, limits: Limits, *, cross_check: bool) -> KeyedAnalysis:
    """Decides a history; see `checker.decide.independent.check_keys`.

    Args:
        table: The history.
        limits: The limits of the check.
        cross_check: Whether to run a second algorithm.

    Raises:
        Disagreement: Two algorithms disagree.
        KernelError: The native part failed.
    """
    began = time.perf_counter()
    outcomes = decide_all(table.arrays, limits)
    invalid = [place for place, outcome in enumerate(outcomes) if outcome["verdict"] == "invalid"]
    first = sorted(invalid, key=lambda place: _failed_at(table, place, outcomes[place]))
    explained = set(first[:EXPLAINED])
    hard = [
        of_columns(each.problem, each.events, outcome) if outcome["cause"] in CAUSES else None
        for each, outcome in zip(table.arrays, outcomes, strict=True)
    ]
    shown = _shown(table, outcomes, explained, hard)
    analyses = {
        key: _concluded(
            table,
            place,
            outcomes[place],
            shown,
            explained=limits if place in explained else None,
            hard=hard[place],
        )
        for place, key in enumerate(table.keys)
    }
    if cross_check:
        _confirm(table, outcomes, limits)
    verdict = worst(found.valid for found in analyses.values())
    deciding = table.keys[first[0]] if first else next((k for k, a in analyses.items() if a.valid is verdict), None)
    return KeyedAnalysis(
        valid=verdict,
        model=table.model.name,
        operations=sum(table.counts),
        seconds=time.perf_counter() - began,
        keys=analyses,
        worst_key=deciding,
    )


def _failed_at(table: Table, place: int, outcome: Outcome) -> int:
    op = outcome["op"]
    return NEVER if op is None else int(table.arrays[place].part.e[op])


def _shown(
    table: Table, outcomes: Sequence[Outcome], explained: set[int], hard: Sequence[Why | None]
) -> dict[int, Operation]:
    """Returns the operations that results name, by the index of their invoke, from one pass over the file."""
    indexes = [np.zeros(0, np.int64)]
    for place, outcome in enumerate(outcomes):
        named = [] if outcome["op"] is None or outcome["verdict"] == "valid" else [outcome["op"]]
        named += [] if (why := hard[place]) is None else why.examples
        indexes.append(table.arrays[place].part.s[[*named, *(outcome["core"] if place in explained else [])]])
    wanted = np.unique(np.concatenate(indexes))
    return {op.invoke_index: op for op in read_rows_of(table.path, wanted)} if len(wanted) else {}


def _concluded(
    table: Table,
    place: int,
    outcome: Outcome,
    shown: Mapping[int, Operation],
    *,
    explained: Limits | None,
    hard: Why | None,
) -> Analysis:
    """Makes the result of a key from the kernel's outcome.

    Args:
        table: The history.
        place: The place of the key.
        outcome: The kernel's outcome.
        shown: The operations that results name, by the index of their invoke.
        explained: The limits of the explanation; None if the key gets none.
        hard: Why the search reached a limit; None if it did not.
    """
    path, model, s = table.path, table.model, table.arrays[place].part.s
    verdict = Verdict(outcome["verdict"])
    op = None if outcome["op"] is None or verdict is Verdict.VALID else shown[int(s[outcome["op"]])]
    result = Analysis(
        valid=verdict,
        model=model.name,
        analyzer=outcome["analyzer"],
        operations=table.counts[place],
        seconds=outcome["seconds"],
        steps=outcome["steps"],
        op=op,
        cause=outcome["cause"],
        hardness=() if hard is None else hard.reasons(lambda i: shown[int(s[i])]),
        kind=outcome["kind"],
    )
    if verdict is Verdict.INVALID and op is not None and explained is not None:
        result = replace(result, previous_ok=previous_ok(path, table.keys[place], op))
        is_part = is_long(table.counts[place])
        few = part_of(path, table.arrays[place].part, outcome) if is_part else of_key(path, table.keys[place])
        made = makers(path, table.keys[place], few) if is_part and few else None
        found = analysis(model, few, part=is_part, makers=made, time_limit=_limit_s(explained)) if few else None
        if found is not None and found.valid is Verdict.INVALID:
            return replace(
                result,
                kind=found.kind,
                configs=found.configs,
                final_paths=found.final_paths,
                counterexample=found.counterexample,
                culprit=found.culprit,
                explanation=found.explanation,
            )
    core = [] if explained is None else [shown[int(s[i])] for i in outcome["core"]]
    return replace(result, explanation=explain(result, model, Evidence(core=core, unsuited=outcome["unsuited"])))


def _limit_s(limits: Limits) -> float:
    return _EXPLAIN_S if limits.time_limit_s is None else min(_EXPLAIN_S, limits.time_limit_s)


def _confirm(table: Table, outcomes: Sequence[Outcome], limits: Limits) -> None:
    """Runs a second algorithm on each key, as `checker.decide.analysis.confirm` does.

    Raises:
        Disagreement: Its verdict is the opposite.
    """
    for arrays, outcome in zip(table.arrays, outcomes, strict=True):
        message = contradiction(table.model, arrays.problem, Verdict(outcome["verdict"]), outcome["analyzer"], limits)
        if message is not None:
            raise Disagreement(message, read_rows_of(table.path, np.sort(arrays.part.s)))
