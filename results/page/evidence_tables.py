"""Tables of what a part of the verdict has in its details: one of all single values, and one for each list or object.

A text of several lines, e.g. an error with the last lines of logs, is no cell of a table: `texts_of` has it with its lines.

Details may come from anyone, so tables, rows, columns and cells have limits, and say what they leave out.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from harness.console.plain import counted, name, one_line
from results.words.bounds import label

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from harness.op import Value

MAX_TABLES: Final = 8
MAX_COLUMNS: Final = 8
MAX_TABLE_ROWS: Final = 30
MAX_CELL: Final = 200
MAX_NAME: Final = 40
MAX_LINES: Final = 40
MAX_BESIDE: Final = 4  # columns that stand beside a long text on a narrow page
LONG: Final = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table of texts.

    Attributes:
        title: What it shows.
        heads: The names of its columns.
        rows: Its rows, as long as `heads`.
        left_out: How many rows it does not show.
    """

    title: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    left_out: int = 0

    @property
    def is_broad(self) -> bool:
        """Whether a narrow page shows each row as a block: it has several columns, and one with long texts."""
        return len(self.heads) > MAX_BESIDE and any(self.is_long(cell) for row in self.rows for cell in row)

    def is_long(self, cell: str) -> bool:
        """Returns whether the text of a cell needs the whole width of a narrow page."""
        return len(cell) > LONG


def tables_of(details: Mapping[str, Value]) -> Iterator[Table]:
    """Yields the data of a part as tables: one of all single values, and one for each list or object."""
    single = [(label(key), _text(value)) for key, value in details.items() if _is_single(value) and not _is_long(value)]
    yield from bounded("What was counted", ("figure", "value"), [row for row in single if row[1]])
    several = [(key, value) for key, value in details.items() if not _is_single(value) and value]
    for key, value in several[:MAX_TABLES]:
        yield from bounded(label(key), *_layout(value))
    if len(several) > MAX_TABLES:
        rest = [(label(key), "") for key, _ in several[MAX_TABLES:]]
        yield from bounded("Not shown here; results.json has it", ("member", ""), rest)


def texts_of(details: Mapping[str, Value]) -> Iterator[tuple[str, str]]:
    """Yields the texts of several lines that a part has in its details, each with its name; at most `MAX_TABLES`."""
    texts = [(label(key), value) for key, value in details.items() if isinstance(value, str) and _is_long(value)]
    for title, text in texts[:MAX_TABLES]:
        yield title, first_lines(text)
    if len(texts) > MAX_TABLES:
        yield "Not shown here; results.json has it", "\n".join(title for title, _ in texts[MAX_TABLES:][:MAX_LINES])


def first_lines(text: str) -> str:
    """Returns the first `MAX_LINES` lines of a text; each is cut at `MAX_CELL` characters."""
    lines = text.splitlines()
    left = [f"({counted(len(lines) - MAX_LINES, 'more line')}; results.json has all)"] if len(lines) > MAX_LINES else []
    return "\n".join([*(name(line, MAX_CELL) for line in lines[:MAX_LINES]), *left])


def bounded(title: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[Table]:
    """Returns a table of rows, with the number of those that it leaves out; none without rows."""
    left = max(0, len(rows) - MAX_TABLE_ROWS)
    return [Table(title=title, heads=heads, rows=rows[:MAX_TABLE_ROWS], left_out=left)] if rows else []


def _layout(value: Value) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
    """Returns the heads and the rows of a list or an object."""
    if isinstance(value, dict):
        if all(isinstance(row, dict) for row in value.values()):
            heads = _members(value.values())
            return ("", *map(label, heads)), [
                (label(str(key)), *(_text(row.get(head)) for head in heads)) for key, row in value.items()
            ]
        return ("", "value"), [(label(str(key)), _text(member)) for key, member in value.items()]
    listed = value if isinstance(value, list | tuple) else [value]
    if all(isinstance(row, dict) for row in listed):
        heads = _members(listed)
        return tuple(map(label, heads)), [tuple(_text(row.get(head)) for head in heads) for row in listed]
    if all(map(_is_single, listed)) and not any(
        isinstance(member, str) and len(member) > MAX_NAME for member in listed
    ):
        return ("values",), [(_text(listed),)]
    return ("value",), [(_text(member),) for member in listed]


def _members(rows: object) -> list[str]:
    members: dict[str, None] = {}
    for row in list(rows)[:MAX_TABLE_ROWS]:  # type: ignore[call-overload]  # of dicts, as the callers have checked
        members.update(dict.fromkeys(map(str, row)))
    return list(members)[:MAX_COLUMNS]


def _is_single(value: Value) -> bool:
    return value is None or isinstance(value, bool | int | float | str)


def _is_long(value: Value) -> bool:
    """Returns whether a value is a text of several lines."""
    return isinstance(value, str) and "\n" in value.strip()


def _text(value: Value) -> str:
    """Returns a value as the text of a cell: one line, without line breaks."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, list | tuple) and all(map(_is_single, value)):
        shown = ", ".join(_text(member) for member in value[:MAX_TABLE_ROWS])
        return name(
            shown + (f", and {len(value) - MAX_TABLE_ROWS} more" if len(value) > MAX_TABLE_ROWS else ""), MAX_CELL
        )
    if isinstance(value, str):
        return name(one_line(value) if "\n" in value else value, MAX_CELL)
    return name(json.dumps(value, ensure_ascii=False, default=str), MAX_CELL)
