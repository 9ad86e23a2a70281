"""Divides transactions by their keys, and finds what each key shows by itself."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from checker._kernel import transaction_dependencies, transaction_parts
from checker.columns import FAIL, ColumnReader, Values
from checker.formats.parquet import decode_value, json_text
from checker.transactions.judge import FUNCTION
from harness.errors import LabrysError
from results.pipeline.large_transactions.pieces import (
    EDGE,
    FINDING,
    GROUP,
    NONE,
    PARTS,
    PIECES,
    READER,
    TOLD,
    VERTEX,
    WRITER,
)  # fmt: skip

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from checker.transactions.models import Question

BYTES_PER_PART: Final = 600  # the memory of a part without its text, with the pieces that it makes
# Texts whose canonical form is evident. Others are read and written again.
_PLAIN: Final = r'^(?:(?:null|"[A-Za-z0-9_.:+/ -]*"|-?[1-9][0-9]{0,17}|0)[\],]|[\[\],])*$'
# The step of the kernel that finds an anomaly, and whether findings of the step come in the order of keys.
_STEPS: Final = {"internal": 2, "lost-update": 3, "dirty-update": 4, "incompatible-order": 0, "cyclic-versions": 6}
_ELEMENTS: Final = 1
_MISPLACED: Final = 5


def parts(batches: Iterator[pa.RecordBatch], question: Question) -> Iterator[pa.RecordBatch]:
    """Yields the parts (`PARTS`) of operations, which come in the columns of `checker.columns.NEEDED`."""
    for batch in batches:
        if batch.num_rows:
            try:
                yield _parts(batch, question)
            except LabrysError as error:
                yield _told({"error": str(error)})


def _told(what: Any, start: int = 0) -> pa.RecordBatch:
    row = {"start": start, "end": 0, "process": 0, "kind": 0, "place": 0, "places": [], "text": json.dumps(what)}
    return pa.RecordBatch.from_pylist([row], schema=PARTS)


def _parts(batch: pa.RecordBatch, question: Question) -> pa.RecordBatch:
    nothing = np.zeros(batch.num_rows, np.int64)
    none = Values(kind=nothing.astype(np.int8), first=nothing, second=nothing)
    columns = ColumnReader("the history").of_batch(batch, value=none, result=none)
    other = np.flatnonzero(np.array([name != FUNCTION for name in columns.functions])[columns.function])
    if len(other):
        return _told({"wrong": "function"}, int(columns.start[other].min()))
    order = np.argsort(columns.start, kind="stable")
    batch, columns = batch.take(pa.array(order)), columns.only(order)
    found = transaction_parts(
        question.workload,
        kind=columns.type,
        request=_texts(batch.column("value")),
        answer=_texts(batch.column("result")),
    )
    if "malformed" in found:
        row, answer = found["malformed"]
        return _told({"wrong": "answer" if answer else "request"}, int(columns.start[row]))
    rows = np.frombuffer(found["row"], np.uint32)
    flat, ends = (np.frombuffer(part, np.uint32) for part in found["places"])
    if len(flat):
        place = np.where(np.diff(ends) > 0, flat[np.minimum(ends[:-1], len(flat) - 1)], 0)
    else:
        place = np.zeros(len(rows), np.int32)
    arrays = [
        pa.array(columns.start[rows]),
        pa.array(columns.end[rows]),
        pa.array(columns.process[rows]),
        pa.array(columns.type[rows]),
        pa.array(place.astype(np.int32)),
        pa.ListArray.from_arrays(pa.array(ends.astype(np.int32)), pa.array(flat.astype(np.int32))),
        _strings(*found["key"]),
        _strings(*found["text"]),
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=PARTS)


def _strings(text: bytes, ends: bytes) -> pa.Array:
    return pa.StringArray.from_buffers(len(ends) // 4 - 1, pa.py_buffer(ends), pa.py_buffer(text))


def _texts(column: pa.Array) -> list[str | None]:
    """Returns canonical JSON."""
    texts = column.cast(pa.string())
    found: list[str | None] = texts.to_pylist()
    odd = pc.invert(pc.fill_null(pc.match_substring_regex(texts, _PLAIN), True))  # noqa: FBT003 - pyarrow has no name for it
    for row in np.flatnonzero(odd.to_numpy(zero_copy_only=False)).tolist():
        try:
            found[row] = json_text(decode_value(found[row] or ""))
        except ValueError:
            found[row] = None  # so it is malformed, and the check of this row alone says why
    return found


def pieces(
    batches: Iterator[pa.RecordBatch], question: Question, left_out: Sequence[int], memory_limit: int
) -> Iterator[pa.RecordBatch]:
    """Yields the pieces (`PIECES`) of whole keys; their parts come in the order of starts and places."""
    kept: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        keyed = pc.is_valid(batch.column("key"))
        for row in batch.filter(pc.invert(keyed)).to_pylist():
            yield _made([], [_about({**json.loads(row["text"]), "start": row["start"]})])
        batch = batch.filter(keyed)  # noqa: PLW2901 - the same rows
        rows += batch.num_rows
        size += batch.num_rows * BYTES_PER_PART + 2 * batch.column("text").nbytes
        kept.append(batch)
        if size > memory_limit:
            kept.clear()
    if size > memory_limit:
        yield _made([], [_about({"large": rows, "bytes": size})])
    elif rows:
        yield from _of_keys(pa.Table.from_batches(kept).combine_chunks(), question, left_out)


def _about(what: Any) -> dict[str, Any]:
    return {"what": TOLD, "key": json.dumps(what)}


def _of_keys(table: pa.Table, question: Question, left_out: Sequence[int]) -> Iterator[pa.RecordBatch]:
    rows = {name: table.column(name).to_numpy() for name in ("start", "end", "process", "kind")}
    found = transaction_dependencies(
        question.workload,
        **rows,
        text=table.column("text").to_pylist(),
        sources=list(question.sources),
        left_out=list(left_out),
    )
    at = table.column("places").combine_chunks()
    flat, ends = at.flatten().to_numpy(), at.offsets.to_numpy() - at.offsets[0].as_py()
    if "written_twice" in found:
        key, elem, two, places = found["written_twice"]
        original = [int(flat[ends[row] + place]) for row, place in zip(two, places, strict=True)]
        starts = [int(rows["start"][row]) for row in two]
        yield _made([], [_about({"twice": [key, elem, starts, original]})])
        return
    first = np.frombuffer(found["first"], np.uint32)
    key_at, key_place = rows["start"][first], table.column("place").to_numpy()[first]
    keys, elems = _strings(*found["keys"]), _strings(*found["elems"])

    def side(name: str, of: Any) -> dict[str, Any]:
        return {name: rows["start"][of], **{f"{name}_{each}": rows[each][of] for each in ("end", "process", "kind")}}

    def of_key(number: Any) -> dict[str, Any]:
        return {"key_at": key_at[number], "key_place": key_place[number], "key": keys.take(pa.array(number))}

    def version(name: str, number: Any) -> dict[str, Any]:
        text = elems.take(pa.array(number, mask=number == NONE))
        return {name: number.astype(np.int64), f"{name}_text": text}

    edge = {
        name: np.frombuffer(found[name], np.uint32)
        for name in ("from", "to", "kind", "key", "before", "after", "source")
    }
    source = np.where(edge["source"] == NONE, -1, edge["source"]).astype(np.int8)
    made = [
        (EDGE, len(edge["from"]), {
            **side("a", edge["from"]), **side("b", edge["to"]), **of_key(edge["key"]), **version("before", edge["before"]),
            **version("after", edge["after"]), "kind": edge["kind"].astype(np.int8), "source": source,
        }),
    ]  # fmt: skip
    key, row, elem, writes = (np.frombuffer(part, np.uint32) for part in found["fans"])
    for what, some in ((READER, writes == 0), (WRITER, writes == 1)):
        name = "before" if what == READER else "after"
        made.append((what, int(some.sum()), {**side("a", row[some]), **of_key(key[some]), **version(name, elem[some])}))
    group_key, group_row, _ = (np.frombuffer(part, np.uint32) for part in found["groups"])
    made.append((GROUP, len(group_key), {**side("a", group_row), **of_key(group_key)}))
    lone = rows["kind"] != FAIL
    lone[np.concatenate([edge["from"], edge["to"], row])] = False
    alone = np.flatnonzero(lone)
    made.append((VERTEX, len(alone), side("a", alone)))
    told = [_about({"edges": found["data_edges"], "contradicted": list(found["contradicted"])})]
    for number, (kind, of, some, where, values) in enumerate(found["findings"]):
        starts = [int(rows["start"][row]) for row in some]
        original = [int(flat[ends[row] + place]) for row, place in zip(some, where, strict=True)]
        step = _MISPLACED if kind == "incompatible-order" and values else _STEPS.get(kind, _ELEMENTS)
        by_row = step in {_ELEMENTS, 2} or (step == 3 and question.workload == "list-append")
        order = (starts[0], original[0]) if by_row else (int(key_at[of]), int(key_place[of]))
        told.append(
            {
                "what": FINDING, "kind": step, "a": order[0], "b": order[1], "before": number, "before_text": kind,
                "after_text": json.dumps([keys[of].as_py(), starts, original, values]),
            }
        )  # fmt: skip
    yield _made(made, told)


def _made(columns: Sequence[tuple[int, int, dict[str, Any]]], rows: Sequence[dict[str, Any]]) -> pa.RecordBatch:
    """Returns pieces from columns, each with its number of rows, and from rows."""
    tables = [pa.Table.from_pylist(list(rows), schema=PIECES)]
    for what, count, known in columns:
        arrays = []
        for field in PIECES:
            if field.name == "what":
                arrays.append(pa.array(np.full(count, what, np.int8)))
            elif field.name in known:
                arrays.append(pa.array(known[field.name]).cast(field.type))
            else:
                arrays.append(pa.nulls(count, field.type))
        tables.append(pa.Table.from_arrays(arrays, schema=PIECES))
    return pa.concat_tables(tables).combine_chunks().to_batches()[0]
