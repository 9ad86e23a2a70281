"""Reads a history from whatever holds it: tells the format by the content, pairs the events, and says what it passed over.

The content decides, not the name, so that standard input, renamed and compressed files work alike. A format is only taken for
certain by what no other begins with; what begins like none of them is an error that shows it.
"""

from __future__ import annotations

import re
import shutil
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from checker.formats.errors import BadHistory, shown
from checker.formats.etcd_log import MARK, EtcdLogEvents
from checker.formats.jepsen_reader import JepsenEvents
from checker.formats.jsonl import JsonlEvents
from checker.formats.pairing import Pairing, hold_to_rules
from checker.formats.source import STANDARD_INPUT, UNPACK_LIMIT, opened
from harness.errors import InfrastructureError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from checker.formats.source import Source
    from harness.op import Operation

JSONL: Final = "jsonl"
PARQUET: Final = "parquet"
EDN: Final = "edn"
ETCD_LOG: Final = "etcd-log"
RESERVE_BYTES: Final = 1 << 30  # what a copy leaves free of the temporary folder, where there is that much
FORMATS: Final = (JSONL, PARQUET, EDN, ETCD_LOG)

_PARQUET_MAGIC: Final = b"PAR1"
_EDN_START: Final = re.compile(rb"(?:[\s,]|;[^\n]*\n)*+(?:[{\[(#;]|\Z)")
_JSON_START: Final = re.compile(rb"\s*\{\s*[\"}]")
_JSON_ARRAY_START: Final = re.compile(rb'\s*\[\s*\{\s*"[^"\\]{0,100}":')  # EDN has a space before a keyword
_LOG_START: Final = re.compile(rb"(?:INFO|WARN|DEBUG|ERROR)\s")


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """A history as read.

    Attributes:
        name: What it was called on the command line; `-` is standard input.
        format: One of `FORMATS`.
        operations: The clients' operations, in the order of their invokes; none where they were not made objects.
        events: How many events it had, faults included.
        timed: Whether it had times; if not, all are 0.
        keyed: Whether its operations work on keys.
        warnings: What was passed over, as sentences.
        conventions: What the file itself says of how it is to be judged; empty if it says nothing.
    """

    name: str
    format: str
    operations: Sequence[Operation]
    events: int
    timed: bool
    keyed: bool
    warnings: Sequence[str]
    conventions: Mapping[str, str] = field(default_factory=dict)


def read_histories(name: str, *, keyed: bool | None = None) -> list[History]:
    """Reads all that a file holds: one history, or one for each run in a Parquet file of several.

    Args:
        name: The file, or `-` for standard input.
        keyed: Whether values are pairs of a key and a value; None: as the history shows it. Formats with keys of their own
            show it always; see `JepsenEvents` for those without.

    Raises:
        InputError: It is no history; the message says where and why.
    """
    with opened(name) as source:
        return read_source(source, keyed=keyed)


def read_source(source: Source, *, keyed: bool | None = None) -> list[History]:
    """Reads all that an open source holds; see `read_histories`.

    Raises:
        InputError: It is no history; the message says where and why.
    """
    found = detect(source)
    if found == PARQUET:
        with on_disk(source) as path:
            return from_parquet(path, source.name)
    if found == ETCD_LOG:
        return [_paired(found, source.name, EtcdLogEvents(source))]
    if found == JSONL:
        return [_paired(found, source.name, JsonlEvents(source, keyed=keyed))]
    return [_paired(found, source.name, JepsenEvents(source, keyed=keyed))]


def detect(source: Source) -> str:
    """Tells the format by the first bytes.

    Raises:
        BadHistory: They begin no history.
    """
    head = source.head
    if head.startswith(_PARQUET_MAGIC):
        return PARQUET
    if not head.strip():
        raise BadHistory(source.name, None, "expected a history, found an empty file")
    if _JSON_START.match(head):
        return JSONL
    if _JSON_ARRAY_START.match(head):
        raise BadHistory(
            source.name,
            1,
            "expected one JSON object on each line, found a JSON array; write each of its elements on a line of its own, "
            "e.g. with jq -c '.[]' FILE",
        )
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


def _paired(found: str, name: str, events: EtcdLogEvents | JsonlEvents | JepsenEvents) -> History:
    pairing = Pairing(name)
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
    )


@contextmanager
def on_disk(source: Source) -> Iterator[Path]:
    """Gives a file with what a source holds: its own, or a copy for a while.

    Raises:
        BadHistory: The source breaks off, or is larger than the limit.
        InfrastructureError: There is no room for a copy.
    """
    from tempfile import NamedTemporaryFile  # noqa: PLC0415 - needed for this format alone

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
    """Returns how many bytes a copy may have: as was asked for, or the usual limit and what is free less a reserve."""
    if source.unpack_limit is not None:
        return source.unpack_limit
    free = shutil.disk_usage(folder).free
    return min(UNPACK_LIMIT, free - min(RESERVE_BYTES, free // 2))


def _no_copy(source: Source, error: OSError) -> InfrastructureError:
    return InfrastructureError(
        f"{source.name}: no temporary copy can be made, which compressed Parquet needs: {error.strerror or error}; set TMPDIR "
        "to a folder with room"
    )


def from_parquet(path: Path, name: str) -> list[History]:
    """Reads the history of each run in a Parquet file.

    Args:
        path: The file.
        name: What it is called in errors.

    Raises:
        BadHistory: It is not of this format, or a run is no history.
    """
    from checker.formats import parquet  # noqa: PLC0415 - needed for this format alone

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
