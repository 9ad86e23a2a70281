"""Runs `results.pipeline.measure.timelines` on the workers: one slice of a run at a time, and then each run."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F  # noqa: N812 - the name that all of Spark's users know

from results.pipeline.measure.spans import MEASURED, SPANNED, Span, joined, slices_of, span_of
from results.pipeline.measure.timelines import Subject, part_of, shown_keys
from results.pipeline.measure.timelines import joined as joined_parts
from results.pipeline.schema import OPERATIONS
from results.pipeline.spark.envelopes import ENVELOPE, by_run, mapped, opened, posted, sealed
from results.pipeline.spark.types import struct_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pyspark.sql import DataFrame

    from results.pipeline.spark.envelopes import Contents

_SLICED: Final = pa.schema([*(OPERATIONS.field(name) for name in MEASURED), pa.field("slice", pa.int64())])
_SPAN, _PART, _SHOWN = "span", "part", "shown"


def measured(operations: DataFrame, records: DataFrame, verdicts: DataFrame) -> DataFrame:
    """Measures the timelines of all runs.

    Args:
        operations: The columns of `schema.OPERATIONS`. Spark reads them three times.
        records: The tables of runs, faults and sightings, as envelopes.
        verdicts: The columns of `schema.VERDICTS`.

    Returns:
        The rows of the timelines, as envelopes.
    """
    spark = operations.sparkSession
    spans_of: defaultdict[str, list[Span]] = defaultdict(list)
    for row in mapped(operations.select(*SPANNED), _spans).collect():
        spans_of[row["run"]].append(Span(**json.loads(row["content"])))
    spans = {run: joined(parts) for run, parts in spans_of.items()}
    subjects = records.unionByName(_shown(operations, verdicts)).unionByName(
        posted(spark, ((run, _SPAN, span.document()) for run, span in spans.items()))
    )
    slices = spark.createDataFrame(
        [(run, number) for run, span in spans.items() for number in range(span.slices)], "run string, slice long"
    )
    sliced = operations.select(*MEASURED).mapInArrow(_slicer(spans), struct_of(_SLICED))
    headed = subjects.join(F.broadcast(slices), "run")
    parts = (
        sliced.groupBy("run", "slice").cogroup(headed.groupBy("run", "slice")).applyInArrow(_part, struct_of(ENVELOPE))
    )
    return by_run(subjects.unionByName(parts), _tables)


def _runs(batch: pa.RecordBatch) -> Iterator[tuple[str, pa.Table]]:
    """Yields each run of a batch with its rows."""
    rows = pa.Table.from_batches([batch])
    runs = batch.column("run").dictionary_encode()
    names = runs.dictionary.to_pylist()
    if len(names) == 1:
        yield names[0], rows
        return
    codes = runs.indices.to_numpy()
    order = np.argsort(codes, kind="stable")
    rows = rows.take(pa.array(order))
    bounds = np.searchsorted(codes[order], np.arange(len(names) + 1)).tolist()
    for index, name in enumerate(names):
        yield name, rows.slice(bounds[index], bounds[index + 1] - bounds[index])


def _spans(batch: pa.RecordBatch) -> Iterator[tuple[str, str, Any]]:
    for run, rows in _runs(batch):
        span = span_of(rows)
        if span is not None:
            yield run, _SPAN, span.document()


def _slicer(spans: Mapping[str, Span]) -> Any:
    """Returns a function that gives operations the numbers of their slices."""

    def sliced(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for run, rows in _runs(batch):
                for number, its in slices_of(rows, spans[run]) if run in spans else ():
                    numbers = pa.array(np.full(its.num_rows, number, np.int64))
                    yield from its.append_column("slice", numbers).to_batches()

    return sliced


def _subject(run: str, contents: Contents) -> tuple[Subject, Span | None]:
    [about] = contents["runs"]
    spans = [Span(**fields) for fields in contents.get(_SPAN, ())]
    subject = Subject(
        run=run,
        faults=contents.get("faults", ()),
        sightings=contents.get("sightings", ()),
        answers=about["answers"] or (),
        refusals=about["refusals"] or (),
        shown=[key for keys in contents.get(_SHOWN, ()) for key in keys],
    )
    return subject, spans[0] if spans else None


def _part(operations: pa.Table, envelopes: pa.Table) -> pa.Table:
    """Measures one slice of a run."""
    if not operations.num_rows:
        return ENVELOPE.empty_table()
    run, number = operations.column("run")[0].as_py(), operations.column("slice")[0].as_py()
    subject, span = _subject(run, opened(envelopes))
    assert span is not None  # noqa: S101 - the run has operations
    part = part_of(subject, span, number, operations)
    return sealed([(run, _PART, {**part, "slice": number})])


def _tables(run: str, contents: Contents) -> Mapping[str, Iterable[Any]]:
    subject, span = _subject(run, contents)
    return joined_parts(subject, span, sorted(contents.get(_PART, ()), key=lambda part: part["slice"]))


def _shown(operations: DataFrame, verdicts: DataFrame) -> DataFrame:
    """Returns the keys of each run that `heat` shows, as envelopes."""
    own = operations.where("phase is null and key is not null")
    counted = own.groupBy("run", "key").count().join(verdicts.select("run", "key", "verdict"), ["run", "key"], "left")

    def chosen(its: pa.Table) -> pa.Table:
        keys = its.column("key").to_pylist()
        known = its.filter(pc.is_valid(its.column("verdict")))
        verdict = dict(zip(known.column("key").to_pylist(), known.column("verdict").to_pylist(), strict=True))
        counts = zip(keys, its.column("count").to_pylist(), strict=True)
        return sealed([(its.column("run")[0].as_py(), _SHOWN, shown_keys(counts, verdict))])

    return counted.groupBy("run").applyInArrow(chosen, struct_of(ENVELOPE))
