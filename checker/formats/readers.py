"""The formats of histories, each with its reader: the one place where a format is registered.

A format is recognized only by a beginning that no other format has.
"""

from __future__ import annotations

import io
import re
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final, TypeAlias

from checker.formats import transaction_texts
from checker.formats.blocks import MAGIC, BlockEvents
from checker.formats.errors import BadHistory, shown
from checker.formats.jepsen_reader import JepsenEvents
from checker.formats.json_events import ARRAY_START, SPREAD_START, JsonEvents, JsonObjects
from checker.formats.jsonl import JsonlEvents
from checker.formats.log_lines import CONSOLE_LOG, HISTORY_TXT, JEPSEN_LOG, LogEvents, kind_of_lines
from checker.formats.parquet import MAY_LACK as OF_PARQUET
from checker.formats.source import STANDARD_INPUT, UNPACK_LIMIT, Source, room_bytes
from harness.errors import InfrastructureError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from checker.formats.missing import May
    from checker.formats.source import Lines

JSONL: Final = "jsonl"
PARQUET: Final = "parquet"
EDN: Final = "edn"
JSON_ARRAY: Final = "json-array"
JEPSEN_FILE: Final = "jepsen-file"
TEXT: Final = "transactions-text"
LINES: Final = frozenset({CONSOLE_LOG, JEPSEN_LOG, HISTORY_TXT})

# What an event may lack, by the format; lines of JSON with a header have other rules than those without one.
MAY_LACK: Final[Mapping[str, Mapping[str, May]]] = {
    "`history.jsonl`": JsonlEvents.MAY_LACK,
    "JSON Lines of other tools": JsonEvents.MAY_LACK,
    "JSON array": JsonEvents.MAY_LACK,
    "EDN": JepsenEvents.MAY_LACK,
    "logs of Jepsen, `history.txt`": LogEvents.MAY_LACK,
    "`test.jepsen`": BlockEvents.MAY_LACK,
    "`operations.parquet`": OF_PARQUET,
    "text forms of transactions": transaction_texts.MAY_LACK,
}
Events: TypeAlias = JsonlEvents | JsonEvents | JepsenEvents | LogEvents | BlockEvents

CSV_SUFFIXES: Final = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
NO_CSV: Final = (
    "expected a history, found a table in CSV, which Labrys does not read, because its values have no types; write a JSON "
    "object for each event on a line of its own, or a Parquet table of operations (docs/reference/formats.md)"
)
_PARQUET_MAGIC: Final = b"PAR1"
_EDN_START: Final = re.compile(rb"(?:[\s,]|;[^\n]*\n)*+(?:[{\[(#;]|\Z)")
_JSON_START: Final = re.compile(rb"\s*\{\s*[\"}]")


def detect(source: Source, *, transactions: str | None = None) -> str:
    """Returns the format, by the first bytes.

    Args:
        source: The text.
        transactions: The micro-operations of its values; None: the formats that only transactions have are errors.

    Raises:
        BadHistory: No format begins like this.
    """
    head = source.head
    if is_csv(source.name):
        raise BadHistory(source.name, None, NO_CSV)
    if not head.strip():
        raise BadHistory(source.name, None, "expected a history, found an empty file")
    if transaction_texts.TEXT_START.match(head):
        if transactions is None:
            raise BadHistory(
                source.name,
                1,
                "expected a history, found transactions as text; check it with --workload rw-register",
            )
        return TEXT
    format_name = _of_events(head)
    if format_name is not None:
        return format_name
    what = "binary data" if b"\0" in head else shown(head.decode(errors="backslashreplace"))
    raise BadHistory(
        source.name,
        1,
        "expected a history: history.jsonl or operations.parquet of Labrys, Jepsen's EDN, its history.txt, test.jepsen or log, "
        f"JSON, or a log as porcupine reads; found {what}",
    )


def _of_events(head: bytes) -> str | None:
    if head.startswith(_PARQUET_MAGIC):
        return PARQUET
    if head.startswith(MAGIC):
        return JEPSEN_FILE
    if ARRAY_START.match(head) or SPREAD_START.match(head):
        return JSON_ARRAY
    if _JSON_START.match(head):
        return JSONL
    return EDN if _EDN_START.match(head) else kind_of_lines(head)


def is_csv(name: str) -> bool:
    """Returns whether a name is that of a table in CSV, which Labrys does not read."""
    return name.lower().endswith(CSV_SUFFIXES)


@contextmanager
def events_of(format_name: str, lines: Lines, *, keyed: bool | None, transactional: bool = False) -> Iterator[Events]:
    """Yields the reader of the events of an open file.

    Args:
        format_name: The format, one of events.
        lines: The file, at its beginning.
        keyed: As in `checker.formats.foreign.ForeignEvents`.
        transactional: As in `ForeignEvents`.
    """
    if format_name == JEPSEN_FILE:
        with _seekable(lines) as file:
            yield BlockEvents(file, lines.name, keyed=keyed, transactional=transactional)
    elif format_name == JSONL:
        yield JsonlEvents(lines, keyed=keyed, transactional=transactional)
    elif format_name == JSON_ARRAY:
        yield JsonEvents(JsonObjects(lines), lines.name, keyed=keyed, transactional=transactional)
    elif format_name == EDN:
        yield JepsenEvents(lines, keyed=keyed, transactional=transactional)
    else:
        yield LogEvents(lines, format_name, keyed=keyed, transactional=transactional)


@contextmanager
def _seekable(lines: Lines) -> Iterator[BinaryIO]:
    """Yields the bytes of a file, whose place can be changed."""
    if not isinstance(lines, Source):
        yield io.BytesIO(b"".join(iter(lambda: lines.readline_bytes(UNPACK_LIMIT), b"")))
        return
    with on_disk(lines) as path, path.open("rb") as file:
        yield file


@contextmanager
def on_disk(source: Source) -> Iterator[Path]:
    """Yields a file with the content of a source: its own file, or a temporary copy.

    Raises:
        BadHistory: The source breaks off, or is larger than the limit.
        InfrastructureError: There is no space for a copy.
    """
    from tempfile import NamedTemporaryFile  # noqa: PLC0415 - only binary formats need it

    path = Path(source.name)
    if source.name != STANDARD_INPUT and not source.compressed and path.is_file():
        yield path
        return
    try:
        copy = NamedTemporaryFile(prefix="labrys-", buffering=0)  # noqa: SIM115 - closed below
    except OSError as error:
        raise _no_copy(source, error) from error
    with copy:
        for part in source.parts(copy_limit(source, Path(copy.name).parent)):
            rest = memoryview(part)
            while rest:
                try:
                    rest = rest[copy.write(rest) :]
                except OSError as error:
                    raise _no_copy(source, error) from error
        yield Path(copy.name)


def copy_limit(source: Source, folder: Path) -> int:
    """Returns the maximum size of a copy: the user's limit, or the default, at most the free space less a reserve."""
    if source.unpack_limit is not None:
        return source.unpack_limit
    return min(UNPACK_LIMIT, room_bytes(folder))


def _no_copy(source: Source, error: OSError) -> InfrastructureError:
    return InfrastructureError(
        f"{source.name}: no temporary copy can be made, which a binary file needs that is compressed or comes through a pipe: "
        f"{error.strerror or error}; set TMPDIR to a folder with room"
    )
