"""The sources at the user's paths: folders of runs, stores, single histories, and tables of operations.

The rule: every path leads to a source or is an error, and no source is read twice; pointers such as `latest` are skipped. As in
`labrys check`, the first bytes of a file determine its format. The driver reads only names, sizes, first bytes and the footers
of Parquet files; Spark reads the rows. An unreadable file is a source with the reason. It is never left out, and does not end
the job.
"""

from __future__ import annotations

import io
import zlib
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from checker.formats.jepsen_reader import conventions_at
from checker.formats.json_events import begins_events
from checker.formats.log_lines import CONSOLE_LOG, DROP, conventions_of_log
from checker.formats.readers import EDN, JSONL, NO_CSV, PARQUET, detect, is_csv
from checker.formats.source import Source
from harness.console.below import LINK
from harness.errors import InputError
from harness.event_lines import decode_object
from results.pipeline.errors import BadInput
from results.pipeline.read.footers import FOOTER_BYTES, footer_trouble

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from results.pipeline.read.files import Entry, Files

HEAD_BYTES: Final = 1 << 16
_LONGEST_EVENT: Final = 1 << 23
_LONGEST_LOG: Final = 1 << 26
DEPTH: Final = 4  # store/<test>/<time>, and one more for a folder of stores
OPERATIONS: Final = "operations.parquet"
HISTORY: Final = "history.jsonl"
HISTORIES: Final = (OPERATIONS, HISTORY, "history.edn")
JEPSENS: Final = ("history.edn", "test.jepsen", "history.txt")  # the same history, in the folder of a run of Jepsen
TEST: Final = "test.json"
RESULTS: Final = "results.json"
REPORT: Final = "report.html"
POINTERS: Final = frozenset({"latest", "current"})
SUFFIXES: Final = (".jsonl", ".edn", ".parquet", ".jsonl.gz", ".edn.gz")
_GZIP: Final = b"\x1f\x8b"
_FILE: Final = "file:"
UNKNOWN: Final = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """A source.

    Attributes:
        path: The URI of the run's folder, or of the history or table itself.
        data: The URI of its operations or events.
        format: One of the formats in `checker.formats.readers`, or `UNKNOWN`.
        run: The run's name, if the path determines it; in a table, each row has it.
        day: The day of the last change, in UTC.
        is_folder: Whether `data` is a folder, as Spark writes tables.
        is_run: Whether it is a run's folder.
        has_test: Whether there is a `test.json`.
        has_results: Whether there is a `results.json`.
        report: The URI of its report; None if it has none.
        bare: Whether it is lines of JSON without a header; the order of the lines is then the order of the events.
        fingerprint: Sizes and times of its files; a different one means that the source has changed.
        conventions: The conventions that a history in EDN defines itself, by name and word.
        trouble: Why it is unreadable, as a sentence that names the file; None if it is not.
    """

    path: str
    data: str
    format: str
    run: str | None
    day: str
    is_folder: bool = False
    is_run: bool = False
    has_test: bool = False
    has_results: bool = False
    report: str | None = None
    bare: bool = False
    fingerprint: str
    conventions: tuple[tuple[str, str], ...] = ()
    trouble: str | None = None

    @property
    def name(self) -> str:
        """The run's name; the path if the name is not known before the rows are read."""
        return self.run or self.path.removeprefix(_FILE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A run in the input.

    Attributes:
        run: Its name.
        source: Its source.
        operations: How many operations it has; None for events that are not counted yet.
    """

    run: str
    source: Input
    operations: int | None


def find_sources(files: Files, paths: Sequence[str]) -> list[Input]:
    """Returns the sources at paths and patterns, each once, sorted by path.

    Raises:
        BadInput: A path leads to nothing that the job can read; the message lists what the job can read.
    """
    sources: dict[str, Input] = {}
    for path in paths:
        matches = files.glob(path)
        if not matches:
            raise BadInput(f"{path}: expected runs, histories or tables of operations, but nothing has this name")
        csv = next((match.path for match in matches if not match.is_folder and is_csv(match.path)), None)
        if csv is not None:
            raise BadInput(f"{csv.removeprefix(_FILE)}: {NO_CSV}")
        before = len(sources)
        seen = 0
        for match in matches:
            if len(matches) > 1 and not POINTERS.isdisjoint(match.path.split("/")):
                continue  # the pattern also matches the run's own name
            for source in _below(files, match):
                seen += 1
                sources.setdefault(source.data, source)
        if not seen and len(sources) == before:
            raise BadInput(
                f"{path}: expected a run's folder, a store, a history (.jsonl, .edn, or .gz of these) or a table of "
                "operations (.parquet), found none of these"
            )
    return sorted(sources.values(), key=lambda source: source.path)


def _below(files: Files, entry: Entry) -> Iterator[Input]:
    if not entry.is_folder:
        yield _file(files, entry)
    else:
        yield from _folder(files, entry.path, DEPTH)


def _folder(files: Files, path: str, depth: int) -> Iterator[Input]:
    """Yields the sources in a folder, down to `depth` folders below."""
    try:
        inside = files.folder(path)
    except BadInput as error:
        yield _source(path, path, UNKNOWN, None, [], trouble=str(error))
        return
    by_name = {entry.name: entry for entry in inside}
    history = by_name.get(OPERATIONS) or by_name.get(HISTORY)
    if _has(by_name, TEST) or (history is not None and not history.is_folder):
        yield from _run(files, path, by_name)
        return
    if not by_name.keys().isdisjoint(JEPSENS[1:]):
        history = next(by_name[name] for name in JEPSENS if name in by_name)
        _refuse_link(history)
        yield _file(files, history)
        return
    if _is_table(inside):
        yield _source(path, path, PARQUET, None, inside, is_folder=True)
        return
    for entry in inside:
        if entry.name not in POINTERS:
            _refuse_link(entry)
        if entry.is_folder:
            if depth > 1 and entry.name not in POINTERS and not entry.name.startswith((".", "_")):
                yield from _folder(files, entry.path, depth - 1)
        elif entry.name.endswith(SUFFIXES) or is_csv(entry.name):
            yield _file(files, entry)


def _refuse_link(entry: Entry) -> None:
    if _is_link(entry):
        raise BadInput(f"{entry.path}: is {LINK}; give the target of the link on the command line to read it")


def _run(files: Files, path: str, by_name: dict[str, Entry]) -> Iterator[Input]:
    """Yields the run of a folder."""
    data = next((by_name[name] for name in HISTORIES if name in by_name), None)
    read = [by_name[name] for name in (TEST, RESULTS) if name in by_name]
    linked = next((entry for entry in [*([data] if data else []), *read] if _is_link(entry)), None)
    kind: str
    trouble: str | None
    if linked is not None:
        kind, trouble = UNKNOWN, f"{linked.path}: is {LINK}"
        data, read, by_name = None, [], {}
    elif data is None:
        kind, trouble = UNKNOWN, f"{path}: expected {', '.join(HISTORIES[:-1])} or {HISTORIES[-1]}, found none of them"
    else:
        kind, trouble = (PARQUET, None) if data.is_folder else _format(files, data)
        read.insert(0, data)
    yield _source(
        path,
        path if data is None else data.path,
        kind,
        "/".join(path.rstrip("/").split("/")[-2:]),
        read,
        is_folder=data is not None and data.is_folder,
        is_run=True,
        has_test=_has(by_name, TEST),
        has_results=_has(by_name, RESULTS),
        report=by_name[REPORT].path if _has(by_name, REPORT) else None,
        bare=data is not None and trouble is None and _is_bare(files, data, kind),
        conventions=() if data is None or trouble is not None else _conventions(files, data, kind),
        trouble=trouble,
    )


def _has(by_name: dict[str, Entry], name: str) -> bool:
    return name in by_name and not by_name[name].is_folder


def _is_link(entry: Entry) -> bool:
    """Returns whether this is a symbolic link on a local disk; Hadoop follows links of no other file system."""
    return entry.path.startswith(_FILE) and Path(entry.path.removeprefix(_FILE)).is_symlink()


def _file(files: Files, entry: Entry) -> Input:
    kind, trouble = _format(files, entry)
    run = None if kind == PARQUET else entry.path.removeprefix(_FILE)
    conventions = () if trouble is not None else _conventions(files, entry, kind)
    bare = trouble is None and _is_bare(files, entry, kind)
    return _source(entry.path, entry.path, kind, run, [entry], bare=bare, conventions=conventions, trouble=trouble)


def _format(files: Files, entry: Entry) -> tuple[str, str | None]:
    """Returns the format of a file by its first bytes, and why the file is unreadable; None if these bytes show no problem."""
    try:
        head = files.read(entry.path, HEAD_BYTES)
        if head.startswith(_GZIP) and not entry.name.endswith(".gz"):
            return (
                UNKNOWN,
                f"{entry.path}: is compressed; rename it so that it ends in .gz, because Spark goes by the name",
            )
        kind = detect(Source(entry.path, io.BytesIO(head)))
        if kind != PARQUET:
            return kind, None
        trouble = footer_trouble(files.tail(entry.path, entry.size, FOOTER_BYTES), entry.size)
    except (InputError, OSError, EOFError, zlib.error) as error:
        return UNKNOWN, _of_file(entry.path, str(error))
    return kind, None if trouble is None else _of_file(entry.path, trouble)


def _of_file(path: str, problem: str) -> str:
    """Returns a sentence about a file, which begins with the file."""
    return problem if problem.startswith(path) else f"{path}: {problem}"


def _conventions(files: Files, entry: Entry, kind: str) -> tuple[tuple[str, str], ...]:
    """Reads the conventions in the first event of a history in EDN, and those that an old log of Jepsen shows.

    An unreadable event has none; the reader of the events will meet the same problem, and put it into quarantine. A first event
    longer than `_LONGEST_EVENT` is not one of ours, whose lines have bounds.
    """
    if kind == CONSOLE_LOG:
        return _of_log(files, entry)
    if kind != EDN:
        return ()
    for length in (HEAD_BYTES, _LONGEST_EVENT):
        try:
            own = conventions_at(Source(entry.path, io.BytesIO(files.read(entry.path, length))))
        except InputError:
            if entry.size <= length:
                break
        else:
            return tuple(sorted(own.items()))
    return ()


def _of_log(files: Files, entry: Entry) -> tuple[tuple[str, str], ...]:
    if entry.size > _LONGEST_LOG:
        return tuple(DROP.items())  # the weaker ones hold of every log
    try:
        return tuple(conventions_of_log(Source(entry.path, io.BytesIO(files.read(entry.path, _LONGEST_LOG)))).items())
    except InputError:
        return ()


def _is_bare(files: Files, entry: Entry, kind: str) -> bool:
    """Returns whether a history begins with an event instead of a header; an unreadable one shows when its rows are read."""
    if kind != JSONL:
        return False
    try:
        line = Source(entry.path, io.BytesIO(files.read(entry.path, HEAD_BYTES))).readline_bytes(HEAD_BYTES)
        return begins_events(decode_object(line))
    except (InputError, ValueError):
        return False


def _source(
    path: str,
    data: str,
    kind: str,
    run: str | None,
    read: Sequence[Entry],
    *,
    is_folder: bool = False,
    is_run: bool = False,
    has_test: bool = False,
    has_results: bool = False,
    report: str | None = None,
    bare: bool = False,
    conventions: tuple[tuple[str, str], ...] = (),
    trouble: str | None = None,
) -> Input:
    changed_ms = max((entry.modified_ms for entry in read), default=0)
    return Input(
        path=path,
        data=data,
        format=kind,
        run=run,
        day=datetime.fromtimestamp(changed_ms / 1000, UTC).date().isoformat(),
        is_folder=is_folder,
        is_run=is_run,
        has_test=has_test,
        has_results=has_results,
        report=report,
        bare=bare,
        fingerprint=" ".join(f"{entry.name}:{entry.size}:{entry.modified_ms}" for entry in read),
        conventions=conventions,
        trouble=trouble,
    )


def _is_table(inside: Sequence[Entry]) -> bool:
    """Returns whether a folder is a data set as Spark writes it: Parquet parts, or folders of partitions."""
    return any(
        ("=" in entry.name) if entry.is_folder else entry.name.startswith("part-") and entry.name.endswith(".parquet")
        for entry in inside
        if not entry.name.startswith((".", "_"))
    )


def literal(path: str) -> str:
    """Returns an escaped path; Spark takes every path for a pattern."""
    return "".join(f"\\{character}" if character in "{}[]*?\\" else character for character in path)
