"""Decides long histories in operations.parquet from arrays, without a Python object for each operation.

The result is that of `checker.independent.check_keys` for the same operations. An operation becomes an object only if the
result shows it. The answer is None if arrays cannot represent the model or the values, or if a row breaks a rule of histories
and so needs an error with its place. Then the caller uses objects.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from checker.analysis import analysis, contradiction
from checker.columns import (
    BATCH_ROWS,
    FAIL,
    GREAT,
    INFO,
    INTEGER,
    NEEDED,
    NEVER,
    NOTHING,
    OK,
    OTHER,
    PAIR,
    ColumnReader,
    batches_of,
)
from checker.errors import Disagreement, Unsuited
from checker.explain.contradictions import MAKERS, observed
from checker.explain.hardness import CAUSES, of_columns
from checker.explain.sentences import Evidence, explain
from checker.explain.weakening import CONVENTION, READS_OF_NIL, silenced
from checker.formats.parquet import decode_value, json_text, open_parquet, read_rows_of
from checker.identity import identity
from checker.keyed import EXPLAINED, KeyedAnalysis
from checker.models import NativeModel
from checker.models.opcodes import CAS, CAS_FAIL, DEQUEUE, ENQUEUE, OBSERVERS, WRITE
from checker.result import Analysis
from checker.search.coding import Coded
from checker.search.deciding import decide_all
from harness.errors import LabrysError
from harness.op import OpType
from harness.verdict import Verdict, worst

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence
    from pathlib import Path

    import numpy.typing as npt

    from checker._kernel import Outcome
    from checker.columns import Columns
    from checker.explain.hardness import Why
    from checker.formats.plain import Plain
    from checker.models import Model
    from checker.search.coding import Arrays, KernelColumns
    from checker.search.solving import Limits
    from harness.op import Operation, Value

    Int64s = npt.NDArray[np.int64]

ORDER: Final = "order"
# Up to this many operations before a failure become objects; of longer histories, only those that the failure depends on.
OBJECTS: Final = 100_000
_CLOSURE_ROUNDS: Final = 64
_SPARSE: Final = 8
_EXPLAIN_S: Final = 20.0
_TYPES: Final = {OpType.OK: OK, OpType.FAIL: FAIL, OpType.INFO: INFO}
_MAKERS: Final = (WRITE, CAS, ENQUEUE, DEQUEUE)


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


class Rules:
    """Checks operations by the rules of `checker.formats.pairing.hold_to_rules`, and counts their events."""

    def __init__(self) -> None:
        self.events = 0
        self._run: str | None = None
        self._start = -1
        self._free: dict[int, int] = {}  # by process: the end of its last operation
        self._indexes: list[Int64s] = []  # the indexes of all events

    def add(self, columns: Columns, batch: pa.RecordBatch) -> None:
        """Checks the next operations.

        Raises:
            Unsuited: They break a rule, or are from several runs.
        """
        if not len(columns):
            return
        runs = pc.unique(batch.column("run")).to_pylist()
        if len(runs) != 1 or runs[0] is None or self._run not in {None, runs[0]}:
            raise Unsuited
        self._run = runs[0]
        completions = batch.column("complete_index")
        self.events += 2 * len(columns) - completions.null_count
        start = columns.start
        completed = pc.fill_null(completions.cast(pa.int64()), NEVER).to_numpy(zero_copy_only=False)
        ended = pc.fill_null(batch.column("end_ns").cast(pa.int64()), NEVER).to_numpy(zero_copy_only=False)
        rising = start[0] > self._start and bool((start[1:] > start[:-1]).all())
        if not rising or (completed <= start).any() or (ended < columns.start_ns).any():
            raise Unsuited
        self._start = int(start[-1])
        self._indexes += [start, completed[completed != NEVER]]
        order = np.argsort(columns.process, kind="stable")
        process, begin, end = columns.process[order], start[order], columns.end[order]
        first = np.concatenate([[True], process[1:] != process[:-1]])
        if (~first[1:] & (end[:-1] > begin[1:])).any():
            raise Unsuited
        last = np.concatenate([first[1:], [True]])
        for who, at in zip(process[first].tolist(), begin[first].tolist(), strict=True):
            if self._free.get(who, -1) > at:
                raise Unsuited
        self._free.update(zip(process[last].tolist(), end[last].tolist(), strict=True))

    def finish(self) -> None:
        """Makes the check that needs all operations.

        Raises:
            Unsuited: Two events have the same index.
        """
        if not _all_different(self._indexes):
            raise Unsuited


def _all_different(parts: Sequence[Int64s]) -> bool:
    """Returns whether numbers from 0 on are all different."""
    numbers = np.concatenate([np.zeros(0, np.int64), *parts])
    greatest = int(numbers.max(initial=0))
    if greatest >= _SPARSE * (len(numbers) + 1):
        return len(np.unique(numbers)) == len(numbers)
    seen = np.zeros(greatest + 1, np.bool_)  # cheaper than sorting
    seen[numbers] = True
    return int(np.count_nonzero(seen)) == len(numbers)


def check_table(table: Table, limits: Limits, *, cross_check: bool) -> KeyedAnalysis:
    """Decides a history; see `checker.independent.check_keys`.

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """The result for a history that was read as arrays.

    Attributes:
        valid: The results of keys that are linearizable, if they name no operation.
        others: The outcomes of the other keys.
        operations: The operations of the other keys.
    """

    valid: Mapping[str | None, Analysis]
    others: Mapping[str | None, Outcome]
    operations: Mapping[str | None, Sequence[Operation]]


def decide_plain(model: Model, plain: Plain, limits: Limits, *, cross_check: bool, fail_fast: bool) -> Decided | None:
    """Decides each key of a history from arrays; None if only objects can represent it.

    Args:
        model: The model of each object.
        plain: The history.
        limits: The limits of the check.
        cross_check: Whether to run a second algorithm on the keys that are linearizable.
        fail_fast: See `checker.independent.check_keys`.

    Raises:
        Disagreement: Two algorithms disagree.
        KernelError: The native part failed.
    """
    columns, operations = plain.columns, plain.operations
    # Only objects are checked against the system's own order.
    if not isinstance(model, NativeModel) or operations.has_order:
        return None
    try:
        coded = Coded(model, plain.names, len(columns))
        coded.add(columns)
        arrays = coded.finish()
    except (Unsuited, LabrysError, MemoryError):
        return None
    outcomes = decide_all(arrays, limits, fail_fast=fail_fast)
    valid, others, objects = {}, {}, {}
    for place, (key, outcome) in enumerate(zip(columns.keys, outcomes, strict=True)):
        if outcome["verdict"] != "valid" or outcome["configs"]:
            others[key] = outcome
            objects[key] = operations.at(np.flatnonzero(columns.key == place))
            continue
        result = Analysis(
            valid=Verdict.VALID,
            model=model.name,
            analyzer=outcome["analyzer"],
            operations=int(coded.by_key[place]),
            seconds=outcome["seconds"],
            steps=outcome["steps"],
        )
        valid[key] = replace(result, explanation=explain(result, model, Evidence(core=[])))
        if cross_check:
            message = contradiction(model, arrays[place].problem, Verdict.VALID, outcome["analyzer"], limits)
            if message is not None:
                raise Disagreement(message, operations.at(np.flatnonzero(columns.key == place)))
    return Decided(valid=valid, others=others, operations=objects)


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
        result = replace(result, previous_ok=_previous_ok(path, table.keys[place], op))
        is_part = table.counts[place] > OBJECTS
        few = _part(path, table.arrays[place].part, outcome) if is_part else _of_key(path, table.keys[place])
        makers = _makers(path, table.keys[place], few) if is_part and few else None
        found = analysis(model, few, part=is_part, makers=makers, time_limit=_limit_s(explained)) if few else None
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


def _previous_ok(path: Path, key: str | None, op: Operation) -> Operation | None:
    """Returns the last operation of a key that returned ok before another one did."""
    end = op.complete_index or 0
    invoke, completion = -1, -1
    for batch in open_parquet(path).iter_batches(columns=["key", "type", "invoke_index", "complete_index"]):
        keys, types, _, completions = batch.columns
        same = pc.is_null(keys) if key is None else pc.equal(keys.cast(pa.string()), key)
        mask = pc.and_(pc.and_(same, pc.equal(types.cast(pa.string()), "ok")), pc.less(completions, end))
        wanted = batch.filter(pc.fill_null(mask, fill_value=False))
        if wanted.num_rows:
            ends = wanted.column("complete_index").to_numpy()
            row = int(np.argmax(ends))
            if ends[row] > completion:
                invoke, completion = wanted.column("invoke_index")[row].as_py(), int(ends[row])
    if completion < 0:
        return None
    [found] = read_rows_of(path, np.array([invoke], np.int64))
    return found


def _of_key(path: Path, key: str | None) -> list[Operation]:
    """Returns all operations of a key."""
    indexes = [np.zeros(0, np.int64)]
    for batch in open_parquet(path).iter_batches(columns=["key", "invoke_index"]):
        keys, invokes = batch.columns
        same = pc.is_null(keys) if key is None else pc.equal(keys.cast(pa.string()), key)
        indexes.append(invokes.filter(pc.fill_null(same, fill_value=False)).to_numpy())
    return read_rows_of(path, np.concatenate(indexes))


def _makers(path: Path, key: str | None, few: Sequence[Operation]) -> list[Operation] | None:
    """Returns the operations of a key that write or add a value that some operations observed, also failed ones.

    They are None if they are too many for objects.
    """
    wanted = {identity(value): value for op in few for value in observed(op)}
    reader = ColumnReader(str(path))
    indexes = [np.zeros(0, np.int64)]
    for batch in open_parquet(path).iter_batches(batch_size=BATCH_ROWS, columns=list(NEEDED)):
        keys, functions = batch.column("key"), batch.column("f").cast(pa.string())
        same = pc.is_null(keys) if key is None else pc.equal(keys.cast(pa.string()), key)
        makes = pc.is_in(functions, value_set=pa.array([*MAKERS, "cas"]))
        columns = reader.of_batch(batch.filter(pc.fill_null(pc.and_(same, makes), fill_value=False)))
        indexes.append(columns.start[_that_make(columns, reader, wanted)])
    found = np.sort(np.concatenate(indexes))
    return read_rows_of(path, found) if len(found) <= OBJECTS else None


def _that_make(columns: Columns, reader: ColumnReader, wanted: Mapping[Hashable, Value]) -> npt.NDArray[np.bool_]:
    """Returns which operations write or add one of these values; a compare-and-set writes its second argument."""
    integers = np.array([value for value in wanted.values() if type(value) is int and abs(value) < GREAT], np.int64)
    texts = [reader.place_of(text) for value in wanted.values() if (text := json_text(value)) is not None]
    kind, first, second = columns.value.kind, columns.value.first, columns.value.second
    swaps = np.isin(columns.function, [place for place, f in enumerate(columns.functions) if f == "cas"])
    made = (kind == INTEGER) & np.isin(first, integers) | (kind == OTHER) & np.isin(first, texts)
    if None in wanted:
        made |= kind == NOTHING
    known = reader.texts
    pairs = []
    for place in np.unique(first[swaps & (kind == OTHER)]).tolist():
        value = decode_value(known[place])
        if isinstance(value, list) and len(value) == 2 and identity(value[1]) in wanted:
            pairs.append(place)
    swapped = (kind == PAIR) & np.isin(second, integers) | (kind == OTHER) & np.isin(first, pairs)
    chosen: npt.NDArray[np.bool_] = np.where(swaps, swapped, made)
    return chosen


def _part(path: Path, part: KernelColumns, outcome: Outcome) -> list[Operation]:
    """Returns the operations of `likely_invalid`."""
    rows = likely_invalid(part, outcome)
    return read_rows_of(path, np.sort(part.s[rows])) if len(rows) else []


def likely_invalid(part: KernelColumns, outcome: Outcome) -> Int64s:
    """Returns rows of a key that are likely to be invalid by themselves, at most `OBJECTS`; none if there are more."""
    op = outcome["op"]
    end = NEVER if op is None else int(part.e[op])
    rows = np.flatnonzero(part.s <= end)
    if len(rows) > OBJECTS:
        rows = _closure(part, rows, outcome["core"])
    return rows if len(rows) <= OBJECTS else rows[:0]


def _closure(part: KernelColumns, rows: Int64s, core: Sequence[int]) -> Int64s:
    """Returns some operations, and all that their observed values come from; none if values cannot determine these."""
    f, a, b = part.f[rows], part.a[rows], part.b[rows]
    if not core or (f == CAS_FAIL).any():
        return rows[:0]
    made = np.isin(f, _MAKERS)
    value = np.where(f == CAS, b, a)
    chosen = np.isin(rows, np.array(core)) | ~(made | np.isin(f, list(OBSERVERS)))
    for _ in range(_CLOSURE_ROUNDS):
        if np.count_nonzero(chosen) > OBJECTS:
            return rows[:0]
        values = np.unique(np.concatenate([a[chosen], b[chosen & (f == CAS)]]))
        more = chosen | (made & np.isin(value, values))
        if np.array_equal(more, chosen):
            return rows[chosen]
        chosen = more
    return rows[:0]


def _confirm(table: Table, outcomes: Sequence[Outcome], limits: Limits) -> None:
    """Runs a second algorithm on each key, as `checker.analysis.confirm` does.

    Raises:
        Disagreement: Its verdict is the opposite.
    """
    for arrays, outcome in zip(table.arrays, outcomes, strict=True):
        message = contradiction(table.model, arrays.problem, Verdict(outcome["verdict"]), outcome["analyzer"], limits)
        if message is not None:
            raise Disagreement(message, read_rows_of(table.path, np.sort(arrays.part.s)))
