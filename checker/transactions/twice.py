"""Histories in which a value was written to a key twice: a read of it does not tell its writer.

Only the key is lost. If an execution of a model explains a history, then the same execution without the micro-operations
on some keys explains the rest of it. So the rest is judged alone: what contradicts a model there contradicts it in the
whole history.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from checker.columns import NOTHING, OTHER, Values
from checker.formats.parquet import decode_value, json_text
from checker.judging import UNSUITED, Judgement, value_at
from harness.console.documents import shown
from harness.verdict import Verdict

if TYPE_CHECKING:
    from checker.columns import Columns
    from harness.op import Value

_READS = frozenset({"r", "read"})


def keys_written_twice(history: Columns, initial: str | None) -> set[str]:
    """Returns the keys, as canonical JSON, to which a value was written twice, or that of the beginning."""
    seen = set[tuple[str, str]]()
    found = set[str]()
    for row in range(len(history)):
        for function, key, value in _mops(history, history.value, row):
            if function not in _READS:
                pair = _text(key), _text(value)
                if pair in seen or pair[1] == initial:
                    found.add(pair[0])
                seen.add(pair)
    return found


def without_keys(history: Columns, keys: set[str]) -> Columns:
    """Returns the same operations without their micro-operations on some keys."""
    texts: list[str] = []

    def kept(values: Values) -> Values:
        first = np.zeros(len(history), np.int64)
        for row in range(len(history)):
            if values.kind[row] == OTHER:
                first[row] = len(texts)
                texts.append(_text([mop for mop in _mops(history, values, row) if _text(mop[1]) not in keys]))
        kind = np.where(values.kind == OTHER, OTHER, NOTHING).astype(np.int8)
        return Values(kind=kind, first=first, second=np.zeros(len(history), np.int64))

    value, result = kept(history.value), kept(history.result)
    return replace(history, value=value, result=result, texts=texts)


def _text(value: Value) -> str:
    """Returns the canonical JSON of a value."""
    return json_text(value) or "null"


def _mops(history: Columns, values: Values, row: int) -> list[Any]:
    found: Value = value_at(history, values, row) if values.kind[row] == OTHER else None
    return found if isinstance(found, list) else []


def of_the_rest(rest: Judgement, keys: set[str], found: Judgement) -> Judgement:
    """Returns the judgement of a history, from that of its other keys and the one that names the two writes."""
    names = ", ".join(shown(decode_value(key)) for key in sorted(keys)[:5])
    more = f" and {len(keys) - 5} more" if len(keys) > 5 else ""
    which = f"The key {names} was" if len(keys) == 1 else f"The keys {names}{more} were"
    left = f"{which} left out. {found.reason}"
    if rest.verdict is Verdict.INVALID:
        return replace(rest, reason=f"{rest.reason} {left}")
    return replace(found, reason=f"{found.reason} The other keys show no anomaly that is prohibited.")


def written_twice(history: Columns, key: str, elem: str, rows: tuple[int, int], places: tuple[int, int]) -> Judgement:
    """Returns the judgement of a history with two writes of a value, or with one of the value of the beginning."""
    first, second = (
        f"event {history.start[row]}, micro-operation {at + 1}" for row, at in zip(rows, places, strict=True)
    )
    what = f"{shown(decode_value(elem))} to the key {shown(decode_value(key))}"
    if rows[0] == rows[1] and places[0] == places[1]:
        return Judgement(
            verdict=Verdict.UNKNOWN,
            cause=UNSUITED,
            reason=f"{second[0].upper()}{second[1:]} writes {what}, which is the initial value; expected another value in each "
            "write, because a read shows its writer by the value alone.",
        )
    return Judgement(
        verdict=Verdict.UNKNOWN,
        cause=UNSUITED,
        reason=f"{second[0].upper()}{second[1:]} writes {what} again, after {first}; expected each value at most once for a "
        "key, because a read shows its writer by the value alone.",
    )
