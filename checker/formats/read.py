"""Reads a history of any format: detects the format by the content, pairs the events, and collects warnings.

The content decides, not the name, so standard input, renamed and compressed files work alike. `checker.formats.readers` has the
formats.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final

from checker.formats.errors import BadHistory
from checker.formats.pairing import hold_to_rules
from checker.formats.readers import PARQUET, TEXT, detect, events_of, on_disk
from checker.formats.source import KEPT_BYTES, NoCopy, opened
from checker.formats.transaction_texts import read_text
from checker.formats.transactional import REALTIME, TransactionPairing
from harness.pairing import Pairing

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from checker.formats.plain import Plain
    from checker.formats.source import Source
    from harness.op import Operation

LONG_BYTES: Final = KEPT_BYTES  # of a file, as it is; shorter histories are read event by event, without numpy


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """A history.

    Attributes:
        name: Its name on the command line; `-` is standard input.
        format: One of the formats in `checker.formats.readers`.
        operations: The clients' operations, in the order of their invokes; empty if they were read as arrays.
        events: The number of its events, with faults.
        timed: Whether it has times; if not, all are 0.
        keyed: Whether its operations have keys.
        warnings: Warnings as sentences.
        conventions: The conventions that the file defines; empty if it defines none.
        plain: The same as arrays, if they were read as arrays.
        lacks: What it does not tell, as in `checker.formats.columns.Columns`.
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
            `checker.formats.foreign.ForeignEvents` for those without.

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
    format_name = detect(source, transactions=transactions)
    if format_name == TEXT and transactions is not None:
        source.rewind(last=True)
        return [_of_text(source, transactions)]
    if format_name == PARQUET:
        with on_disk(source) as path:
            return from_parquet(path, source.name)
    plain = _plain(format_name, source, keyed=keyed, transactions=transactions) if source.has(LONG_BYTES) else None
    if plain is not None:
        return [plain]
    source.rewind(last=True)
    return [_paired(format_name, source, keyed=keyed, transactional=transactions is not None)]


def _of_text(source: Source, transactions: str) -> History:
    operations, warnings, conventions = read_text(source, transactions)
    return History(
        name=source.name,
        format=TEXT,
        operations=operations,
        events=len(operations),
        timed=False,
        keyed=False,
        warnings=warnings,
        conventions=conventions,
        lacks=(REALTIME,),
    )


def _plain(format_name: str, source: Source, *, keyed: bool | None, transactions: str | None) -> History | None:
    """Reads a history as arrays; None if it is not plain, or if it is from a pipe and there is no space for its copy."""
    from checker.formats.plain import read_plain  # noqa: PLC0415 - loads numpy, which short histories do not need

    try:
        plain = read_plain(format_name, source, keyed=keyed, transactions=transactions)
    except NoCopy:
        return None
    if plain is None:
        return None
    return History(
        name=source.name,
        format=format_name,
        operations=plain.operations,
        events=plain.events,
        timed=plain.timed,
        keyed=any(key is not None for key in plain.columns.keys),
        warnings=plain.warnings,
        conventions=plain.conventions,
        plain=plain,
    )


def _paired(format_name: str, source: Source, *, keyed: bool | None, transactional: bool) -> History:
    refused = partial(BadHistory, source.name)
    pairing = TransactionPairing(refused) if transactional else Pairing(refused)
    with events_of(format_name, source, keyed=keyed, transactional=transactional) as events:
        for event in events:
            pairing.add(event)
    operations = pairing.finish()
    if not pairing.events and not events.may_be_empty:
        raise BadHistory(source.name, None, "expected a history, found no event in it")
    return History(
        name=source.name,
        format=format_name,
        operations=operations,
        events=pairing.events,
        timed=events.timed,
        keyed=any(operation.key is not None for operation in operations),
        warnings=[*events.warnings, *pairing.warnings],
        conventions=events.conventions,
        lacks=pairing.lacks if isinstance(pairing, TransactionPairing) else (),
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
