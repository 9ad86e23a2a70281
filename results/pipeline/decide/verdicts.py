"""Verdicts of the keys of one run, in this process.

The rule: each verdict, operation, explanation and counterexample is the one that `labrys check` gives for the same operations,
or `unknown` with its cause. There are these routes:

- The kernel decides registers whose values are integers. An operation is a few integers, and a call decides many keys.
- The code of `labrys check` decides other models and values, from whole operations, one key at a time.
- The checker of a workload decides its keys from arrays (`results.pipeline.decide.judges`).

`results.pipeline.decide.targets` chooses the route of each key. For keys with the system's own order that do not fit into
memory, it stays unknown whether that order is legal. `results.pipeline.spark.verdicts` runs the same functions on many runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from checker.values import Values
from results.pipeline.decide import judges, kernel
from results.pipeline.decide.coding import ADDRESS, TEXTS, coded, made
from results.pipeline.decide.details import VALID_FROM, examine, valid
from results.pipeline.decide.rows import Target, group_of
from results.pipeline.decide.targets import (
    answered,
    chosen,
    is_doubtful,
    is_general,
    is_refuted,
    needs_objects,
    refuted,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from checker.judging import Judge
    from results.pipeline.decide.asked import Asked, VerdictOptions
    from results.pipeline.decide.coding import RegisterCoding

    Row = dict[str, Any]

_ROWS_AT_ONCE: Final = 1 << 18
_IN_ORDER: Final = ("invoke_index", "complete_index", "process")


def judged(operations: pa.Table, judge: Judge, memory_limit: int) -> list[Row]:
    """Decides the keys of a run by the checker of its workload; see `decided`."""
    rows = _Keys(operations).rows
    return [row for batch in judges.decide(iter(rows.to_batches()), judge, memory_limit) for row in batch.to_pylist()]


def decided(operations: pa.Table, options: VerdictOptions) -> list[Row]:
    """Decides the keys of a run by a model.

    Args:
        operations: The columns of `schema.OPERATIONS`, of one run, with at least one row.
        options: The options of the check.

    Returns:
        A row of `schema.VERDICTS` for each key.

    Raises:
        InputError: The model does not exist, or cannot have this initial state.
    """
    asked = options.asked()
    keys = _Keys(operations)
    coding = asked.coding
    answers = {} if coding is None else _answers(keys, coding, asked)
    values = Values()
    rows: dict[int, Row] = {}
    bad: list[tuple[Target, bool]] = []
    places: dict[str | None, int] = {}
    for index, target in enumerate(keys.targets):
        answer = answers.get(index)
        if coding is None or keys.is_whole(index, asked) or (answer and is_general(answer["verdict"])):
            row = examine(group_of(target, keys.parts(target, index), values, most=asked.most), asked)
            rows[index] = row
            if is_refuted(row["verdict"]):
                bad.append((refuted(target, row), True))
        elif answer and is_doubtful(answer["verdict"]):
            bad.append((answered(target, answer), answer["tied"]))
        places[target.key] = index
    for target in chosen(bad, most=asked.most, explained=options.explained):
        index = places[target.key]
        rows[index] = examine(group_of(target, keys.parts(target, index), values, most=asked.most), asked)
    rest = [index for index in range(len(keys.targets)) if index not in rows]
    return [*rows.values(), *valid(keys.about(rest, answers), asked).to_pylist()]


def _answers(keys: _Keys, coding: RegisterCoding, asked: Asked) -> dict[int, Row]:
    """Returns the answer that columns alone give for each key with an operation that matters."""
    batches = (coded(batch, coding) for batch in keys.batches(asked))
    return {row[ADDRESS]: row for batch in kernel.decide(batches, asked, coding) for row in batch.to_pylist()}


class _Keys:
    """The operations of a run, one key after the other.

    Attributes:
        rows: The operations, with the number of their key in the column `address`.
        targets: The keys, by their numbers.
    """

    def __init__(self, operations: pa.Table) -> None:
        """Sorts the operations of a run."""
        keys = operations.column("key").combine_chunks().dictionary_encode()
        numbers = pc.fill_null(keys.indices, len(keys.dictionary)).cast(pa.int64())
        rows = operations.append_column(ADDRESS, numbers)
        self.rows = rows.sort_by([(name, "ascending") for name in (ADDRESS, *_IN_ORDER)]).combine_chunks()
        names = [*keys.dictionary.to_pylist(), *([None] if keys.null_count else [])]
        self._bounds = np.searchsorted(self.rows.column(ADDRESS).to_numpy(), np.arange(len(names) + 1))
        ordered = np.concatenate(([0], np.cumsum(self.rows.column("order").is_valid().to_numpy())))[self._bounds]
        run = self.rows.column("run")[0].as_py()
        counts = zip(names, np.diff(self._bounds).tolist(), np.diff(ordered).tolist(), strict=True)
        self.targets = [Target(run=run, key=key, operations=count, orders=orders) for key, count, orders in counts]

    def is_whole(self, index: int, asked: Asked) -> bool:
        """Returns whether a key needs whole operations because they have an order, and fits."""
        target = self.targets[index]
        return bool(needs_objects(target.orders, target.operations, asked))

    def batches(self, asked: Asked) -> Iterator[pa.RecordBatch]:
        """Yields the rows that columns may decide, one key after the other."""
        rows = self.rows.select([ADDRESS, *TEXTS])
        if any(target.orders for target in self.targets):
            whole = [index for index in range(len(self.targets)) if self.is_whole(index, asked)]
            rows = rows.filter(pc.invert(pc.is_in(rows.column(ADDRESS), pa.array(whole, pa.int64()))))
        yield from rows.to_batches(max_chunksize=_ROWS_AT_ONCE)

    def parts(self, target: Target, index: int) -> Sequence[pa.RecordBatch]:
        """Returns the rows that are wanted of a key."""
        low, high = self._bounds[index : index + 2].tolist()
        rows = self.rows.slice(low, high - low)
        if target.wanted is not None:
            wanted = np.isin(rows.column("invoke_index").to_numpy(), target.wanted)
            if target.whole and target.observed is not None:
                wanted |= np.isin(made(rows.column("f"), rows.column("value")), target.observed)
            rows = rows.filter(pa.array(wanted))
        batches: list[pa.RecordBatch] = rows.to_batches()
        return batches

    def about(self, places: Sequence[int], answers: Mapping[int, Row]) -> pa.RecordBatch:
        """Returns the columns `details.VALID_FROM` of some keys."""
        nothing: Row = {"analyzer": None, "engine": None}
        targets = [self.targets[index] for index in places]
        known = [answers.get(index, nothing) for index in places]
        columns = [[getattr(target, name) for target in targets] for name in VALID_FROM[:4]]
        columns += [[answer[name] for answer in known] for name in VALID_FROM[4:]]
        kinds = (pa.string(), pa.string(), pa.int64(), pa.int64(), pa.string(), pa.string())
        arrays = [pa.array(column, kind) for column, kind in zip(columns, kinds, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, names=list(VALID_FROM))
