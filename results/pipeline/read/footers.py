"""The footer of a Parquet file: shows, before any row is read, whether the file is complete and a table of operations.

A run that ends while it writes its table leaves a file without a footer. Such a file would end the whole Spark job, so the
driver checks footers first. Damaged pages show only when the rows are read; see `results.pipeline.spark.broken`.
"""

from __future__ import annotations

from typing import Final

from checker.formats.parquet import COLUMNS

FOOTER_BYTES: Final = 1 << 16
_MAGIC: Final = b"PAR1"
_LENGTH_BYTES: Final = 4


def footer_trouble(tail: bytes, size: int) -> str | None:
    """Returns the problem of a Parquet file as a sentence; None if the footer shows none.

    Args:
        tail: The last bytes of the file, at most `FOOTER_BYTES`.
        size: The size of the file in bytes.
    """
    import pyarrow as pa  # noqa: PLC0415 - slow to import
    from pyarrow import parquet  # noqa: PLC0415

    end = len(_MAGIC) + _LENGTH_BYTES
    if len(tail) < end + len(_MAGIC) or not tail.endswith(_MAGIC):
        return f"expected a whole Parquet file, found {size:,} bytes without a footer at the end"
    length = int.from_bytes(tail[-end : -len(_MAGIC)], "little")
    if length + end + len(_MAGIC) > size:
        return f"expected a whole Parquet file, found a footer of {length:,} bytes in a file of {size:,}"
    if length + end > len(tail):
        return None  # a footer of many row groups; Spark reads it
    try:
        metadata = parquet.read_metadata(pa.BufferReader(_MAGIC + tail[-(length + end) :]))
    except (OSError, ValueError) as error:
        return f"expected a Parquet file, found an unreadable footer: {error}"
    names = metadata.schema.names
    missing = [column.name for column in COLUMNS if not column.optional and column.name not in names]
    if missing:
        return f"expected a column {missing[0]!r}, found {', '.join(names) or 'no column'}"
    return None
