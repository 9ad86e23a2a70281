"""The tables of an output folder on this machine, written and read."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, Protocol

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import dataset, parquet

from results.pipeline.read.local_files import local
from results.pipeline.schema import TABLES, storable
from results.pipeline.write.output import GENERATIONS, WHOLE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from results.pipeline.write.output import Manifest

# The partitions of the table of operations. `run` stays a column, so that each file is complete; `run_folder` follows from it.
PARTITIONS: Final = ("day", "run_folder")
MAX_FOLDER_NAME: Final = 120


class Reading(Protocol):
    """Reads a table of an output folder, without the runs that a later generation has read again."""

    def __call__(self, name: str, columns: Sequence[str], /, **where: Sequence[str]) -> pa.Table:
        """Returns some columns of a table.

        Args:
            name: The table's name.
            columns: The columns; one that an earlier version lacks is null.
            where: By column, the texts of which a row must have one.
        """


def write_table(folder: str, name: str, rows: Iterable[Mapping[str, Any]]) -> None:
    """Writes a table.

    Args:
        folder: Its folder's URI; the folder does not exist yet.
        name: The table's name, one of `schema.TABLES`.
        rows: Its rows; missing columns become null.
    """
    write_tables(folder, name, [table_of(name, rows)])


def table_of(name: str, rows: Iterable[Mapping[str, Any]]) -> pa.Table:
    """Returns rows as a table of `schema.TABLES`; missing columns become null."""
    layout = TABLES[name]
    cells = [storable({name: row.get(name) for name in layout.names}) for row in rows]
    return pa.Table.from_pylist(cells, schema=layout)


def write_tables(folder: str, name: str, parts: Sequence[pa.Table]) -> None:
    """Writes a table whose rows are those of its parts; see `write_table`."""
    _write(folder, pa.concat_tables([TABLES[name].empty_table(), *parts]).combine_chunks())


def write_operations(folder: str, operations: pa.Table, *, run: str, day: str) -> None:
    """Writes the operations of a run, in a folder of its day and its name, as Spark's job does."""
    name = re.sub(r"[^A-Za-z0-9._+-]", "_", run)[-MAX_FOLDER_NAME:]
    parts = "/".join(f"{part}={value}" for part, value in zip(PARTITIONS, (day, name), strict=True))
    _write(f"{folder}/{parts}", operations)


def _write(folder: str, rows: pa.Table) -> None:
    target = local(folder)
    target.mkdir(parents=True)
    parquet.write_table(rows, target / "part-00000.parquet")
    (target / "_SUCCESS").touch()


def reading(root: str, manifest: Manifest) -> Reading:
    """Returns the function that reads the tables of an output folder.

    Args:
        root: The folder's URI.
        manifest: Its manifest.
    """

    def read(name: str, columns: Sequence[str], /, **where: Sequence[str]) -> pa.Table:
        layout = pa.schema([TABLES[name].field(column) for column in columns])
        parts: list[pa.Table] = []
        for generation in manifest.generations:
            if name not in generation.tables:
                continue
            if name in WHOLE:
                parts.clear()
            stored = dataset.dataset(local(f"{root}/{GENERATIONS}/{generation.id}/{name}"), format="parquet")
            wanted = [_isin(column, texts) for column, texts in where.items()]
            wanted += [~_isin("run", generation.superseded)] if generation.superseded else []
            rows = stored.to_table(
                columns=[column for column in columns if column in stored.schema.names], filter=_all_of(wanted)
            )
            parts.append(_completed(rows, layout))
        return pa.concat_tables(parts) if parts else layout.empty_table()

    return read


def _isin(column: str, texts: Sequence[str]) -> pc.Expression:
    return pc.field(column).isin(pa.array(texts, pa.string()))


def _all_of(conditions: Sequence[pc.Expression]) -> pc.Expression | None:
    joined: pc.Expression | None = None
    for condition in conditions:
        joined = condition if joined is None else joined & condition
    return joined


def _completed(rows: pa.Table, layout: pa.Schema) -> pa.Table:
    """Returns exactly these columns, with their types; one that is missing is null."""
    nothing = pa.nulls(rows.num_rows)
    columns = [rows.column(name) if name in rows.column_names else nothing for name in layout.names]
    return pa.table(
        [column.cast(field.type) for column, field in zip(columns, layout, strict=True)], names=layout.names
    )
