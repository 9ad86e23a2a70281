"""Divides transactions by their keys, and finds what each key shows by itself."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from checker._kernel import Malformed, WrittenTwice, transaction_dependencies, transaction_parts
from checker.consistency import searched
from checker.formats.columns import FAIL, INFO, OK, ColumnOfValues, ColumnReader
from checker.values import decode_value, json_text
from harness.errors import LabrysError
from results.pipeline.read.texts import kernel_texts, odd_texts
from results.pipeline.spark.large_transactions.pieces import (
    EDGE,
    FINDINGS,
    GROUP,
    NONE,
    NUMBERS,
    PARTS,
    READ,
    READER,
    VERTEX,
    WORDS,
    WRITE,
    WRITER,
)  # fmt: skip

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from checker._kernel import PartFinding
    from checker.consistency import Question
    from checker.formats.columns import Int64s

BYTES_PER_PART: Final = 600  # the memory of a part without its text, with the pieces that it makes
# The step of the kernel that finds an anomaly, and whether findings of the step come in the order of keys.
_STEPS: Final = {"internal": 2, "lost-update": 3, "dirty-update": 4, "incompatible-order": 0, "cyclic-versions": 6}
_ELEMENTS: Final = 1
_RW: Final = 4  # the kind of an anti-dependency, as in the kernel
_MISPLACED: Final = 5
KEPT: Final = 100  # findings of each type in the order of the history; the kernel keeps as many
INTERNAL: Final = "internal"  # one transaction may show it in several keys, so all are kept


@dataclass(frozen=True, slots=True, kw_only=True)
class OfKeys:
    """What some keys show by themselves.

    Attributes:
        numbers: Pieces of the graph (`NUMBERS`).
        words: Their words (`WORDS`), row by row.
        findings: Anomalies that are no cycles (`FINDINGS`), of each type the first ones.
        told: What the keys tell about the whole history.
    """

    numbers: pa.RecordBatch
    words: pa.RecordBatch
    findings: pa.RecordBatch
    told: list[dict[str, Any]]


def parts(batches: Iterator[pa.RecordBatch], question: Question) -> Iterator[pa.RecordBatch]:
    """Yields the parts (`PARTS`) of operations, which come in the columns of `checker.formats.columns.NEEDED`."""
    for batch in batches:
        if batch.num_rows:
            try:
                yield _parts(batch, question)
            except LabrysError as error:
                yield _told({"error": str(error)})


def _told(what: Any, start: int = 0) -> pa.RecordBatch:
    row: dict[str, Any] = {
        **dict.fromkeys(PARTS.names, 0),
        "start": start,
        "places": [],
        "key": None,
        "text": json.dumps(what),
    }
    return pa.RecordBatch.from_pylist([row], schema=PARTS)


def _parts(batch: pa.RecordBatch, question: Question) -> pa.RecordBatch:
    nothing = np.zeros(batch.num_rows, np.int64)
    none = ColumnOfValues(kind=nothing.astype(np.int8), first=nothing, second=nothing)
    columns = ColumnReader("the history").of_batch(batch, value=none, result=none)
    order = np.argsort(columns.start, kind="stable")
    batch, columns = batch.take(pa.array(order)), columns.only(order)
    pieces = transaction_parts(
        question.workload,
        kind=columns.type,
        request=kernel_texts(canonical(batch.column("value"))),
        answer=kernel_texts(canonical(batch.column("result"))),
    )
    if isinstance(pieces, Malformed):
        return _told({"wrong": "answer" if pieces.answer else "request"}, int(columns.start[pieces.row]))
    rows = np.frombuffer(pieces.row, np.uint32)
    flat, ends = (np.frombuffer(part, np.uint32) for part in pieces.places)
    if len(flat):
        first = np.where(np.diff(ends) > 0, flat[np.minimum(ends[:-1], len(flat) - 1)], 0)
    else:
        first = np.zeros(len(rows), np.int32)
    arrays = [
        pa.array(columns.start[rows]),
        pa.array(columns.end[rows]),
        pa.array(columns.process[rows]),
        pa.array(columns.type[rows]),
        pa.array(first.astype(np.int32)),
        pa.ListArray.from_arrays(pa.array(ends.astype(np.int32)), pa.array(flat.astype(np.int32))),
        _strings(*pieces.key),
        _strings(*pieces.text),
        pa.array(np.frombuffer(pieces.address, np.uint32)),
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=PARTS)


def _strings(text: bytes, ends: bytes) -> pa.Array:
    return pa.StringArray.from_buffers(len(ends) // 4 - 1, pa.py_buffer(ends), pa.py_buffer(text))


def canonical(column: pa.Array) -> pa.Array:
    """Returns canonical JSON."""
    texts = column.cast(pa.string())
    odd = odd_texts(texts)
    if not len(odd):
        return texts
    made: list[str | None] = []
    for text in texts.take(pa.array(odd)).to_pylist():
        try:
            made.append(json_text(decode_value(text)))
        except ValueError:
            made.append(None)  # so it is malformed, and the check of this row alone says why
    mask = np.zeros(len(texts), bool)
    mask[odd] = True
    return pc.replace_with_mask(texts, pa.array(mask), pa.array(made, pa.string()))


def of_keys(
    batches: Iterator[pa.RecordBatch], question: Question, left_out: Sequence[int], memory_limit: int
) -> OfKeys:
    """Returns what whole keys show, from their parts (`PARTS`) in any order."""
    kept: list[pa.RecordBatch] = []
    told: list[dict[str, Any]] = []
    rows = size = 0
    for batch in batches:
        keyed = pc.is_valid(batch.column("key"))
        if batch.column("key").null_count:
            wrong = batch.filter(pc.invert(keyed)).select(["text", "start"]).to_pylist()
            told += [{**json.loads(row["text"]), "start": row["start"]} for row in wrong]
            batch = batch.filter(keyed)  # noqa: PLW2901 - the same rows
        rows += batch.num_rows
        size += batch.num_rows * BYTES_PER_PART + 2 * batch.column("text").nbytes
        kept.append(batch)
        if size > memory_limit:
            kept.clear()
    if size > memory_limit:
        told.append({"large": rows, "bytes": size})
    elif rows:
        table = pa.Table.from_batches(kept).combine_chunks()
        kept.clear()
        order = np.lexsort((table.column("place").to_numpy(), table.column("start").to_numpy()))
        answers = _of_keys(table.take(pa.array(order)).combine_chunks(), question, left_out)
        return replace(answers, told=told + answers.told)
    return OfKeys(numbers=_none(NUMBERS), words=_none(WORDS), findings=_none(FINDINGS), told=told)


def _none(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([], schema=schema)


def _of_keys(table: pa.Table, question: Question, left_out: Sequence[int]) -> OfKeys:
    rows = {name: table.column(name).to_numpy() for name in ("start", "end", "process", "kind")}
    dependencies = transaction_dependencies(
        question.workload,
        **rows,
        text=kernel_texts(table.column("text").chunk(0)),
        sources=list(question.sources),
        left_out=list(left_out),
        more=list(searched(question.model, question.anomalies)),
        initial=question.initial,
    )
    at = table.column("places").combine_chunks()
    flat, ends = at.flatten().to_numpy(), at.offsets.to_numpy() - at.offsets[0].as_py()
    if isinstance(dependencies, WrittenTwice):
        original = [
            int(flat[ends[row] + position])
            for row, position in zip(dependencies.rows, dependencies.places, strict=True)
        ]
        starts = [int(rows["start"][row]) for row in dependencies.rows]
        twice = {"twice": [dependencies.key, dependencies.element, starts, original]}
        return OfKeys(numbers=_none(NUMBERS), words=_none(WORDS), findings=_none(FINDINGS), told=[twice])
    first = np.frombuffer(dependencies.first, np.uint32)
    key_at, key_place = rows["start"][first], table.column("place").to_numpy()[first]
    keys, elems = _strings(*dependencies.keys), _strings(*dependencies.elements)

    def side(name: str, of: Any) -> dict[str, Any]:
        return {
            name: rows["start"][of],
            **{f"{name}_{column}": rows[column][of] for column in ("end", "process", "kind")},
        }

    def of_key(number: Any) -> dict[str, Any]:
        return {"key_at": key_at[number], "key_place": key_place[number], "key": keys.take(pa.array(number))}

    def version(name: str, number: Any) -> dict[str, Any]:
        text = elems.take(pa.array(number, mask=number == NONE))
        return {name: number.astype(np.int64), f"{name}_text": text}

    def place_of(of: Any, local: Any) -> Any:
        """Returns places in transactions, from those in their parts; -1 for none."""
        known = local != NONE
        return np.where(known, flat[np.where(known, ends[of] + local, 0)] if len(flat) else -1, -1)

    names = ("from", "to", "kind", "key", "before", "after", "source")
    edge = {name: np.frombuffer(column, np.uint32) for name, column in zip(names, dependencies.edges, strict=True)}
    key, row, elem, writes = (np.frombuffer(part, np.uint32) for part in dependencies.fans)
    if dependencies.at is not None:
        of_edges, of_fans = (np.frombuffer(part, np.uint32) for part in dependencies.at)
        edge_at = place_of(np.where(edge["kind"] == _RW, edge["from"], edge["to"]), of_edges)
        fan_at = place_of(row, of_fans)
    else:
        edge_at, fan_at = np.full(len(edge["from"]), -1), np.full(len(row), -1)
    source = np.where(edge["source"] == NONE, -1, edge["source"]).astype(np.int8)
    made = [
        (EDGE, len(edge["from"]), {
            **side("a", edge["from"]), **side("b", edge["to"]), **of_key(edge["key"]), **version("before", edge["before"]),
            **version("after", edge["after"]), "kind": edge["kind"].astype(np.int8), "source": source, "at": edge_at,
        }),
    ]  # fmt: skip
    for what, some in ((READER, writes == 0), (WRITER, writes == 1)):
        name = "before" if what == READER else "after"
        about = {**side("a", row[some]), **of_key(key[some]), **version(name, elem[some]), "at": fan_at[some]}
        made.append((what, int(some.sum()), about))
    group_key, group_row, _ = (np.frombuffer(part, np.uint32) for part in dependencies.groups)
    made.append((GROUP, len(group_key), {**side("a", group_row), **of_key(group_key)}))
    for what, accesses in ((READ, dependencies.reads), (WRITE, dependencies.writes)):
        if accesses is None:
            continue
        its_key, of, local, position, elem = (np.frombuffer(part, np.uint32) for part in accesses)
        words = version("before", elem) | (version("after", elem) if what == WRITE else {})
        about = {**side("a", of), **of_key(its_key), **words, "at": place_of(of, local), "position": position}
        made.append((what, len(of), about))
    lone = rows["kind"] != FAIL
    lone[np.concatenate([edge["from"], edge["to"], row])] = False
    alone = np.flatnonzero(lone)
    made.append((VERTEX, len(alone), side("a", alone)))
    findings, counts = _findings(
        dependencies.findings, question, rows["start"], (flat, ends), (keys, key_at, key_place)
    )
    told = {"edges": dependencies.data_edges, "contradicted": list(dependencies.contradicted), "counts": counts}
    return OfKeys(numbers=_made(made, NUMBERS), words=_made(made, WORDS), findings=findings, told=[told])


def _findings(
    findings: Sequence[PartFinding], question: Question, start: Int64s, at: tuple[Any, Any], names: tuple[Any, Any, Any]
) -> tuple[pa.RecordBatch, dict[str, int]]:
    """Returns findings in the order of the kernel, and the number of those of each type but `INTERNAL`."""
    (flat, ends), (keys, key_at, key_place) = at, names
    some: list[tuple[Any, ...]] = []
    for number, finding in enumerate(findings):
        kind, of, values = finding.kind, finding.key, finding.elements
        starts = [int(start[row]) for row in finding.rows]
        places = zip(finding.rows, finding.places, strict=True)
        original = [int(flat[ends[row] + position]) for row, position in places]
        step = _MISPLACED if kind == "incompatible-order" and values else _STEPS.get(kind, _ELEMENTS)
        by_row = step in {_ELEMENTS, 2} or (step == 3 and question.workload == "list-append")
        order = (starts[0], original[0]) if by_row else (int(key_at[of]), int(key_place[of]))
        some.append((step, *order, number, kind, (of, starts, original, values)))
    counts: Counter[str] = Counter()
    kept = []
    for *row, (of, starts, original, values) in sorted(some):
        counts[row[4]] += 1
        if row[4] == INTERNAL or counts[row[4]] <= KEPT:
            about = json.dumps([keys[of].as_py(), starts, original, values])
            kept.append(dict(zip(FINDINGS.names, [*row, about], strict=True)))
    del counts[INTERNAL]
    return pa.RecordBatch.from_pylist(kept, schema=FINDINGS), dict(counts)


def _made(columns: Sequence[tuple[int, int, dict[str, Any]]], schema: pa.Schema) -> pa.RecordBatch:
    """Returns pieces from columns, each with what they are and their number."""
    tables = []
    for what, count, known in columns:
        arrays = []
        for field in schema:
            if field.name == "what":
                arrays.append(pa.array(np.full(count, what, np.int8)))
            elif field.name in known:
                arrays.append(pa.array(known[field.name]).cast(field.type))
            else:
                arrays.append(pa.nulls(count, field.type))
        tables.append(pa.RecordBatch.from_arrays(arrays, schema=schema))
    return pa.concat_batches(tables)


def open_ones(numbers: Any) -> tuple[Int64s, Int64s]:
    """Returns the starts of transactions without an answer that others depend on, and their earliest completions, -1 for none.

    Args:
        numbers: Pieces of the graph, as arrays.
    """
    leads = np.flatnonzero(np.isin(numbers["what"], (EDGE, READER)) & (numbers["a_kind"] == INFO))
    ends = (numbers["what"][leads] == EDGE) & (numbers["b_kind"][leads] == OK)
    return earliest(numbers["a"][leads], np.where(ends, numbers["b_end"][leads], -1))


def earliest(starts: Int64s, ends: Int64s) -> tuple[Int64s, Int64s]:
    """Returns each start once, in ascending order, with the least of its ends; -1 is none."""
    order = np.lexsort((np.where(ends < 0, np.iinfo(np.int64).max, ends), starts))
    starts, ends = starts[order], ends[order]
    first = np.flatnonzero(np.diff(starts, prepend=-1))
    return starts[first], ends[first]
