"""Reads a history of any format: detects the format by the content, pairs the events, and collects warnings.

The content decides, not the name, so standard input, renamed and compressed files work alike. A format is recognized only by a
beginning that no other format has. Any other beginning is an error that shows it.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from checker.formats.errors import BadHistory, shown
from checker.formats.etcd_log import MARK, EtcdLogEvents
from checker.formats.jepsen_reader import JepsenEvents
from checker.formats.jsonl import JsonlEvents
from checker.formats.pairing import hold_to_rules
from checker.formats.source import KEPT_BYTES, STANDARD_INPUT, UNPACK_LIMIT, NoCopy, opened, room_bytes
from checker.formats.transaction_texts import TEXT_START, read_text
from checker.formats.transactional import REALTIME, ArrayObjects, TransactionPairing
from harness.errors import InfrastructureError
from harness.pairing import Pairing

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from checker.formats.plain import Plain
    from checker.formats.source import Source
    from harness.op import Operation

JSONL: Final = "jsonl"
PARQUET: Final = "parquet"
EDN: Final = "edn"
ETCD_LOG: Final = "etcd-log"
JSON_ARRAY: Final = "json-array"
TEXT: Final = "transactions-text"
LONG_BYTES: Final = KEPT_BYTES  # of a file, as it is; shorter histories are read event by event, without numpy
CSV_SUFFIXES: Final = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
NO_CSV: Final = (
    "expected a history, found a table in CSV, which Labrys does not read, because its values have no types; write a JSON "
    "object for each event on a line of its own, or a Parquet table of operations (docs/formats.md)"
)
FORMATS: Final = (JSONL, PARQUET, EDN, ETCD_LOG)
FORMATS_OF_TRANSACTIONS: Final = (JSON_ARRAY, TEXT)

_PARQUET_MAGIC: Final = b"PAR1"
_EDN_START: Final = re.compile(rb"(?:[\s,]|;[^\n]*\n)*+(?:[{\[(#;]|\Z)")
_JSON_START: Final = re.compile(rb"\s*\{\s*[\"}]")
_JSON_ARRAY_START: Final = re.compile(rb'\s*\[\s*\{\s*"[^"\\]{0,100}":')  # EDN has a space before a keyword
_LOG_START: Final = re.compile(rb"(?:INFO|WARN|DEBUG|ERROR)\s")


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """A history.

    Attributes:
        name: Its name on the command line; `-` is standard input.
        format: One of `FORMATS`, or of `FORMATS_OF_TRANSACTIONS`.
        operations: The clients' operations, in the order of their invokes; empty if they were read as arrays.
        events: The number of its events, with faults.
        timed: Whether it has times; if not, all are 0.
        keyed: Whether its operations have keys.
        warnings: Warnings as sentences.
        conventions: The conventions that the file defines; empty if it defines none.
        plain: The same as arrays, if they were read as arrays.
        lacks: What it does not tell, as in `checker.columns.Columns`.
    """

    name: str
    format: str
    operations: Sequence[Operation]
    events: int
    timed: bool
    keyed: bool
    warnings: Sequence[str]
    conventions: Mapping[str, str] = field(default_factory=dict)
    plain: Plain | None = None
    lacks: Sequence[str] = ()


def read_histories(name: str, *, keyed: bool | None = None) -> list[History]:
    """Reads all histories in a file: one, or one for each run in a Parquet file of several runs.

    Args:
        name: The file, or `-` for standard input.
        keyed: Whether values are pairs of a key and a value; None: detected. Formats with a field for keys ignore it; see
            `JepsenEvents` for those without.

    Raises:
        InputError: It is not a history; the message has the place and the reason.
    """
    with opened(name) as source:
        return read_source(source, keyed=keyed)


def read_source(source: Source, *, keyed: bool | None = None, transactions: str | None = None) -> list[History]:
    """Reads all histories in an open source; see `read_histories`.

    Args:
        source: The source.
        keyed: See `read_histories`.
        transactions: As in `read_plain`; then the softer rules of `checker.formats.transactional` hold.

    Raises:
        InputError: It is not a history; the message has the place and the reason.
    """
    found = detect(source, transactions=transactions)
    if transactions is not None and found in FORMATS_OF_TRANSACTIONS:
        return [_array_or_text(found, source, keyed=keyed, transactions=transactions)]
    if found == PARQUET:
        with on_disk(source) as path:
            return from_parquet(path, source.name)
    plain = _plain(found, source, keyed=keyed, transactions=transactions) if source.has(LONG_BYTES) else None
    if plain is not None:
        return [plain]
    source.rewind(last=True)
    if found == ETCD_LOG:
        return [_paired(found, source.name, EtcdLogEvents(source))]
    soft = transactions is not None
    if found == JSONL:
        return [_paired(found, source.name, JsonlEvents(source, keyed=keyed, transactional=soft), soft=soft)]
    return [_paired(found, source.name, JepsenEvents(source, keyed=keyed, transactional=soft), soft=soft)]


def _array_or_text(found: str, source: Source, *, keyed: bool | None, transactions: str) -> History:
    source.rewind(last=True)
    if found == JSON_ARRAY:
        return _paired(
            found, source.name, JsonlEvents(ArrayObjects(source), keyed=keyed, transactional=True), soft=True
        )
    operations, warnings, conventions = read_text(source, transactions)
    return History(
        name=source.name,
        format=found,
        operations=operations,
        events=len(operations),
        timed=False,
        keyed=False,
        warnings=warnings,
        conventions=conventions,
        lacks=(REALTIME,),
    )


def _plain(found: str, source: Source, *, keyed: bool | None, transactions: str | None) -> History | None:
    """Reads a history as arrays; None if it is not plain, or if it is from a pipe and there is no space for its copy."""
    from checker.formats.plain import read_plain  # noqa: PLC0415 - loads numpy, which short histories do not need

    try:
        plain = read_plain(found, source, keyed=keyed, transactions=transactions)
    except NoCopy:
        return None
    if plain is None:
        return None
    return History(
        name=source.name,
        format=found,
        operations=plain.operations,
        events=plain.events,
        timed=plain.timed,
        keyed=any(key is not None for key in plain.columns.keys),
        warnings=plain.warnings,
        conventions=plain.conventions,
        plain=plain,
    )


def detect(source: Source, *, transactions: str | None = None) -> str:
    """Returns the format, by the first bytes.

    Args:
        source: The text.
        transactions: As in `read_plain`; None: the formats that only transactions have are errors.

    Raises:
        BadHistory: No format begins like this.
    """
    head = source.head
    if is_csv(source.name):
        raise BadHistory(source.name, None, NO_CSV)
    if head.startswith(_PARQUET_MAGIC):
        return PARQUET
    if not head.strip():
        raise BadHistory(source.name, None, "expected a history, found an empty file")
    if _JSON_START.match(head):
        return JSONL
    if _JSON_ARRAY_START.match(head) or TEXT_START.match(head):
        return _of_transactions(source, transactions)
    if _EDN_START.match(head):
        return EDN
    if _LOG_START.match(head) or MARK.search(head):
        return ETCD_LOG
    found = "binary data" if b"\0" in head else shown(head.decode(errors="backslashreplace"))
    raise BadHistory(
        source.name,
        1,
        "expected a history: history.jsonl or operations.parquet of Labrys, Jepsen's EDN, or a log as porcupine reads; "
        f"found {found}",
    )


def _of_transactions(source: Source, transactions: str | None) -> str:
    """Returns the format of a text that only a history of transactions may have."""
    is_array = _JSON_ARRAY_START.match(source.head) is not None
    if transactions is not None:
        return JSON_ARRAY if is_array else TEXT
    raise BadHistory(
        source.name,
        1,
        "expected one JSON object on each line, found a JSON array; write each of its elements on a line of its own, "
        "e.g. with jq -c '.[]' FILE"
        if is_array
        else "expected a history, found transactions as text; check it with --workload rw-register",
    )


def is_csv(name: str) -> bool:
    """Returns whether a name is that of a table in CSV, which Labrys does not read."""
    return name.lower().endswith(CSV_SUFFIXES)


def _paired(
    found: str, name: str, events: EtcdLogEvents | JsonlEvents | JepsenEvents, *, soft: bool = False
) -> History:
    pairing = TransactionPairing(partial(BadHistory, name)) if soft else Pairing(partial(BadHistory, name))
    for event in events:
        pairing.add(event)
    operations = pairing.finish()
    if not pairing.events and not events.may_be_empty:
        raise BadHistory(name, None, "expected a history, found no event in it")
    return History(
        name=name,
        format=found,
        operations=operations,
        events=pairing.events,
        timed=events.timed,
        keyed=any(operation.key is not None for operation in operations),
        warnings=[*events.warnings, *pairing.warnings],
        conventions=events.conventions if isinstance(events, JepsenEvents) else {},
        lacks=pairing.lacks if isinstance(pairing, TransactionPairing) else (),
    )


@contextmanager
def on_disk(source: Source) -> Iterator[Path]:
    """Yields a file with the content of a source: its own file, or a temporary copy.

    Raises:
        BadHistory: The source breaks off, or is larger than the limit.
        InfrastructureError: There is no space for a copy.
    """
    from tempfile import NamedTemporaryFile  # noqa: PLC0415 - only this format needs it

    path = Path(source.name)
    if source.name != STANDARD_INPUT and not source.compressed and path.is_file():
        yield path
        return
    try:
        copy = NamedTemporaryFile(prefix="labrys-", suffix=".parquet", buffering=0)  # noqa: SIM115 - closed below
    except OSError as error:
        raise _no_copy(source, error) from error
    with copy:
        for part in source.parts(_copy_limit(source, Path(copy.name).parent)):
            rest = memoryview(part)
            while rest:
                try:
                    rest = rest[copy.write(rest) :]
                except OSError as error:
                    raise _no_copy(source, error) from error
        yield Path(copy.name)


def _copy_limit(source: Source, folder: Path) -> int:
    """Returns the maximum size of a copy: the user's limit, or the default, at most the free space less a reserve."""
    if source.unpack_limit is not None:
        return source.unpack_limit
    return min(UNPACK_LIMIT, room_bytes(folder))


def _no_copy(source: Source, error: OSError) -> InfrastructureError:
    return InfrastructureError(
        f"{source.name}: no temporary copy can be made, which compressed Parquet needs: {error.strerror or error}; set TMPDIR "
        "to a folder with room"
    )


def from_parquet(path: Path, name: str) -> list[History]:
    """Reads the history of each run in a Parquet file.

    Args:
        path: The file.
        name: Its name in errors.

    Raises:
        BadHistory: It has another format, or a run is not a history.
    """
    from checker.formats import parquet  # noqa: PLC0415 - only this format needs it

    by_run: dict[str, list[Operation]] = {}
    for run, operation in parquet.read_rows(path, name=name):
        by_run.setdefault(run, []).append(operation)
    if not by_run:
        by_run[""] = []
    return [
        _of_operations(name if len(by_run) == 1 else f"{name}#{run}", operations) for run, operations in by_run.items()
    ]


def _of_operations(name: str, operations: list[Operation]) -> History:
    hold_to_rules(name, operations)
    return History(
        name=name,
        format=PARQUET,
        operations=operations,
        events=sum(1 + (operation.complete_index is not None) for operation in operations),
        timed=True,
        keyed=any(operation.key is not None for operation in operations),
        warnings=[],
    )
