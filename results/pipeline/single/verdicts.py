"""Verdicts of one run's keys, by the functions of Spark's workers: rows of `schema.VERDICTS`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from checker.checking import conventions_of, make_model
from checker.independent import EXPLAINED
from harness.verdict import Verdict
from results.pipeline.decide.details import OBJECTS, TARGET, Work, examine
from results.pipeline.decide.judges import decide
from results.pipeline.decide.rows import groups
from results.pipeline.large_keys.columns import ADDRESS
from results.pipeline.single.errors import NotSuited

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from checker.judging import Judge
    from checker.search.deciders import Decider
    from results.pipeline.decide.rows import Group
    from results.pipeline.options import AnalysisOptions
    from results.pipeline.single.read import Run

_NEVER = 2**63


def verdicts_of(run: Run, decider: Decider, options: AnalysisOptions) -> list[dict[str, Any]]:
    """Decides the keys of a run, which has operations.

    Raises:
        NotSuited: A key has too many operations to be decided as a whole.
        InputError: The model cannot have the user's initial state.
    """
    rows = _by_key(run.operations)
    if decider.judge is not None:
        return _judged(rows, decider.judge, options.memory_limit)
    assert decider.model is not None  # noqa: S101 - a decider has a judge or a model
    source = run.seen.source
    conventions = {**conventions_of(source.format), **dict(source.conventions), **options.conventions}
    model = make_model(decider.model, options.initial, conventions)
    work = Work(model=model, time_limit_s=options.time_limit_s, memory_limit=options.memory_limit)
    counts = pc.value_counts(rows.column(ADDRESS)).field("counts").to_pylist()
    if max(counts) > work.most:
        raise NotSuited(
            f"{source.path}: a key has {max(counts):,} operations, and {work.most:,} fit into its memory limit"
        )
    return _decided(rows, work)


def _by_key(operations: pa.Table) -> pa.Table:
    """Returns operations with the number of their key, one key after the other."""
    keys = operations.column("key").combine_chunks().dictionary_encode()
    numbers = pc.fill_null(keys.indices, len(keys.dictionary)).cast(pa.int64())
    rows = operations.append_column(ADDRESS, numbers)
    return rows.sort_by([(name, "ascending") for name in (ADDRESS, "invoke_index", "complete_index", "process")])


def _judged(rows: pa.Table, judge: Judge, memory_limit: int) -> list[dict[str, Any]]:
    return [row for batch in decide(iter(rows.to_batches()), judge, memory_limit) for row in batch.to_pylist()]


def _decided(rows: pa.Table, work: Work) -> list[dict[str, Any]]:
    """Decides keys by a model; those with the earliest violations get a counterexample."""
    found = [examine(_target(group, {}), work) for group in _groups(rows, work)]
    invalid = sorted((row for row in found if row["verdict"] == str(Verdict.INVALID)), key=_order)
    chosen = {row[ADDRESS]: row for row in invalid[:EXPLAINED]}
    if chosen:
        again = rows.filter(pc.is_in(rows.column(ADDRESS), pa.array(chosen, pa.int64())))
        explained = {
            group.about[ADDRESS]: examine(_target(group, chosen[group.about[ADDRESS]]), work)
            for group in _groups(again, work)
        }
        found = [explained.get(row[ADDRESS], row) for row in found]
    return [{name: value for name, value in row.items() if name != ADDRESS} for row in found]


def _order(row: Mapping[str, Any]) -> tuple[int, bool, str]:
    end = row["op_complete_index"]
    return _NEVER if end is None else end, row["key"] is not None, row["key"] or ""


def _groups(rows: pa.Table, work: Work) -> Iterator[Group]:
    return groups(iter(rows.to_batches()), most=work.most)


def _target(group: Group, known: Mapping[str, Any]) -> Group:
    """Returns a key with its task: a verdict, or a counterexample if its verdict is known."""
    target = {
        **dict.fromkeys(TARGET),
        "operations": len(group.operations),
        "engine": OBJECTS,
        "verdict": known.get("verdict"),
        "kind": known.get("kind"),
        "op_end": known.get("op_complete_index"),
        "whole": True,
        "shrink": bool(known),
    }
    return replace(group, about={**group.about, **{f"target_{name}": value for name, value in target.items()}})
