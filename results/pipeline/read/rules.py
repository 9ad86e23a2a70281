"""The rules of a row in a table of operations: `labrys check` refuses a table that breaks one, and the pipeline its row.

The rule: a row that breaks a rule goes to quarantine with the first reason of `troubles`; all other rows are operations.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from checker.formats.parquet import COLUMNS
from harness.op import OpType
from results.pipeline.schema import MOST_NS, OPERATIONS, QUARANTINE, TYPES

if TYPE_CHECKING:
    from collections.abc import Iterator

SAMPLE_CHARACTERS: Final = 200
_SHOWN: Final = 60
_TIMES: Final = ("start_ns", "end_ns", "scheduled_ns")
# Nearly all values are integers, or pairs of them; only the others are parsed.
_PLAIN: Final = r"^(-?\d{1,18}|\[-?\d{1,18},-?\d{1,18}\])$"


def troubles(rows: pa.Table) -> pa.Array | None:
    """Returns the reason why each row is no operation, null for an operation; None if all rows are operations.

    Args:
        rows: The columns of `schema.OPERATIONS`.
    """
    problems = [(wrong, why) for wrong, why in _checks(rows) if pc.any(wrong).as_py()]
    if not problems:
        return None
    reasons: Any = pa.nulls(rows.num_rows, pa.string())
    for wrong, (before, name, after) in reversed(problems):
        text: Any = before
        if name is not None:
            shown = pc.utf8_slice_codeunits(rows.column(name).cast(pa.string()), 0, _SHOWN)
            text = pc.binary_join_element_wise(before, pc.fill_null(shown, "null"), after, "")
        reasons = pc.if_else(pc.fill_null(wrong, fill_value=False), text, reasons)
    return reasons.combine_chunks() if isinstance(reasons, pa.ChunkedArray) else reasons


def _checks(rows: pa.Table) -> Iterator[tuple[pa.ChunkedArray, tuple[str, str | None, str]]]:
    """Yields which rows break a rule, and the reason: a text, the column whose value follows it, and more text."""

    def column(name: str) -> pa.ChunkedArray:
        return rows.column(name)

    for field in COLUMNS:
        if not field.nullable:
            yield pc.is_null(column(field.name)), (f"expected a value in column {field.name!r}, found null", None, "")
    kind, first, last = (column(name) for name in ("type", "invoke_index", "complete_index"))
    yield pc.invert(pc.is_in(kind, pa.array(TYPES))), ("expected a type ok, fail or info, found ", "type", "")
    without = pc.and_(pc.not_equal(kind, str(OpType.INFO)), pc.is_null(last))
    yield without, ("expected a complete_index for type ", "type", ", found null")
    for name in _TIMES:
        outside = pc.or_(pc.less(column(name), 0), pc.greater_equal(column(name), MOST_NS))
        yield outside, (f"expected {name} within 0 and {MOST_NS} ns, found ", name, "")
    for name in ("process", "invoke_index"):
        yield pc.less(column(name), 0), (f"expected {name} from 0 on, found ", name, "")
    yield pc.less_equal(last, first), ("expected a complete_index above the invoke_index", None, "")
    ordered = pc.and_(pc.is_null(last), pc.is_valid(column("order")))
    yield ordered, ("expected null in column 'order' of an operation without a completion, found ", "order", "")
    yield pc.less(column("end_ns"), column("start_ns")), ("time decreases, from the invoke to ", "end_ns", " ns")
    for name in ("value", "result"):
        yield _is_no_json(column(name)), (f"expected the JSON of a value in column {name!r}", None, "")


def _is_no_json(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    others = pc.invert(pc.fill_null(pc.match_substring_regex(texts, _PLAIN), fill_value=True))
    wrong = [text for text in pc.unique(texts.filter(others)).to_pylist() if not _is_json(text)]
    return pc.is_in(texts, pa.array(wrong, pa.string()), skip_nulls=True)


def _is_json(text: str) -> bool:
    try:
        json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return False
    return True


def _refuse(word: str) -> None:
    raise ValueError(f"expected JSON, found {word}")


def refused(rows: pa.Table, reasons: pa.Array, sources: pa.ChunkedArray) -> pa.Table:
    """Returns the rows of quarantine for rows with a reason.

    Args:
        rows: The columns of `schema.OPERATIONS`.
        reasons: The result of `troubles`.
        sources: The file of each row.
    """
    bad = pc.is_valid(reasons)
    few = rows.filter(bad).select(OPERATIONS.names).to_pylist()
    records = [
        {
            "source": source,
            **{name: row[name] for name in ("run", "key", "invoke_index")},
            "reason": reason,
            "sample": json.dumps({name: value for name, value in row.items() if value is not None})[:SAMPLE_CHARACTERS],
        }
        for row, reason, source in zip(
            few, reasons.filter(bad).to_pylist(), sources.filter(bad).to_pylist(), strict=True
        )
    ]
    return pa.Table.from_pylist([{name: row.get(name) for name in QUARANTINE.names} for row in records], QUARANTINE)
