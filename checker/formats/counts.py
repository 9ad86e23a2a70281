"""Validates the numbers in operations.parquet: the number of rows, and times, processes and indexes.

With a wrong number of rows, readers drop rows silently, and a history with missing rows proves nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from checker.formats.errors import BadHistory
from harness.event_lines import ORDER, TOO_GREAT, is_order

if TYPE_CHECKING:
    from collections.abc import Collection

_NUMBERS: Final = ("process", "start_ns", "end_ns", "scheduled_ns", "invoke_index", "complete_index")


def hold_counts(name: str, metadata: Any, columns: Collection[str]) -> None:
    """Refuses a file whose row counts contradict each other, because readers would then leave out rows, each in its own way.

    Args:
        name: The file's name in errors.
        metadata: The file's metadata, as a pyarrow object.
        columns: The names of the columns that must have every row.

    Raises:
        BadHistory: The counts contradict each other.
    """
    rows = 0
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        for index in range(group.num_columns):
            column = group.column(index)
            if column.path_in_schema in columns and column.num_values != group.num_rows:
                raise BadHistory(
                    name,
                    None,
                    f"row {rows + 1}: expected {group.num_rows} rows from here on, by the row group, found "
                    f"{column.num_values} in column {column.path_in_schema!r}",
                )
        rows += group.num_rows
    hold_row_count(name, metadata, rows)


def hold_row_count(name: str, metadata: Any, rows: int) -> None:
    """Refuses a file whose number of rows differs from the number in its footer.

    Args:
        name: The file's name in errors.
        metadata: The file's metadata, as a pyarrow object.
        rows: The number of rows that were read.

    Raises:
        BadHistory: The numbers differ.
    """
    if rows != metadata.num_rows:
        raise BadHistory(
            name,
            None,
            f"row {rows}: expected {metadata.num_rows} rows, by the metadata at the end of the file, found {rows}",
        )


def hold_numbers(*numbers: int | None) -> None:
    """Refuses a row with a number that no operation can have.

    Args:
        numbers: The row's process, start_ns, end_ns, scheduled_ns, invoke_index and complete_index.

    Raises:
        ValueError: One is below 0, or does not fit into 64 bits.
    """
    for index, number in enumerate(numbers):
        if number is not None and not 0 <= number < TOO_GREAT:
            raise ValueError(f"expected a number from 0 to 2^63 - 1 in column {_NUMBERS[index]!r}, found {number}")


def hold_order(order: int, *, returned: bool) -> None:
    """Refuses a row with an order that no operation can have.

    Args:
        order: The row's order.
        returned: Whether the operation has a completion.

    Raises:
        ValueError: It does not fit into 64 bits, or the operation has no completion.
    """
    if not is_order(order):
        raise ValueError(f"expected {ORDER} in column 'order', found {order}")
    if not returned:
        raise ValueError(f"expected null in column 'order' of an operation without a completion, found {order}")
