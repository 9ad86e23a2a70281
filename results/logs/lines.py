"""Lines of the nodes' logs with the time of the run, so that they stand beside the operations.

`results.logs.times` turns the time that a node wrote into the time of the run. If the system names telling texts, only
lines with one of them are read; else all lines near the moments that a page is about. Three or more successive lines that
differ only in their numbers become one; the number in a name, such as n1, is none of these. The first lines of a start of a
node, and its warnings and errors, are kept whatever their time. Logs are foreign: no link is followed, lines and files have
limits, and what was not read is told.
"""

from __future__ import annotations

import re
import stat
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Final

from harness.console import below
from harness.console.plain import counted, name
from harness.units import NS_PER_S
from results.logs.starts import MAX_FIRST, is_severe, starts_of
from results.logs.times import UNKNOWN, log_times
from results.logs.transcripts import FILE as TRANSCRIPT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path
    from typing import BinaryIO

    from harness.counterexample import Counterexample
    from results.logs.times import LogTimes
    from results.record.record import RunRecord
    from results.store.store import Run

Span = tuple[int, int]

MAX_FILES: Final = 40
MAX_BYTES: Final = 64 << 20  # of one log
MAX_TOTAL_BYTES: Final = 256 << 20
MAX_LINE: Final = 4_096
MAX_TEXT: Final = 240
MAX_TEXTS: Final = 50
MAX_KEPT: Final = 4_000
BATCH: Final = 256
MAX_NEAR: Final = 20
NEAR_NS: Final = 2 * NS_PER_S
ALIKE_NS: Final = 5 * NS_PER_S
_NUMBER: Final = re.compile(rb"(?<![A-Za-z0-9])\d+")  # the number of a name, such as n1, tells who it is about


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLine:
    """A line of a node's log, or several that differ only in their numbers.

    Attributes:
        time_ns: Its time on the run's clock.
        node: The name of the node.
        text: The line without its time; of several lines, the first.
        more: How many similar lines follow.
        last_ns: The time of the last of them.
        last: The text of the last of them.
        is_severe: Whether it is known to be a warning or an error.
        is_first: Whether it is one of the first lines after a start of the node.
    """

    time_ns: int
    node: str
    text: str
    more: int = 0
    last_ns: int = 0
    last: str = ""
    is_severe: bool = False
    is_first: bool = False

    @property
    def shown(self) -> str:
        """Returns the line as a sentence of a story, without its time."""
        if not self.more:
            return f"{self.node} logs: {self.text}"
        until = f"{counted(self.more, 'more line')} like this until {self.last_ns / NS_PER_S:.3f} s"
        return f"{self.node} logs: {self.text} ({until}, the last: {self.last})"

    def apart(self) -> list[LogLine]:
        """Returns two lines as two, because their numbers may tell more than the first one; else the line itself."""
        if self.more != 1:
            return [self]
        last = replace(self, time_ns=self.last_ns, text=self.last, more=0, last_ns=0, last="")
        return [replace(self, more=0, last_ns=0, last=""), last]


@dataclass(frozen=True, slots=True, kw_only=True)
class Logs:
    """What the logs of a run say.

    Attributes:
        lines: The lines, in the order of time.
        notes: Sentences about what is missing or uncertain.
        since: The first lines of starts, and all warnings and errors; `results.logs.since_start` chooses among them.
    """

    lines: Sequence[LogLine] = ()
    notes: Sequence[str] = ()
    since: Sequence[LogLine] = ()

    def near(self, spans: Sequence[Span], most: int = MAX_NEAR) -> list[LogLine]:
        """Returns the lines within or nearest to some spans, at most `most`, in the order of time.

        Of too many within a span, those nearest to its end: they tell how the violation came about.
        """
        within = [line for line in self.lines if _distance(line, spans) <= NEAR_NS]
        chosen = sorted(within, key=lambda line: (_distance(line, spans), _before_end(line, spans)))[:most]
        return sorted(chosen, key=lambda line: line.time_ns)


NO_LOGS: Final = Logs()


def read_logs(run: Run, record: RunRecord, spans: Sequence[Span]) -> Logs:
    """Reads the lines of a run.

    Args:
        run: The run's folder.
        record: The run's record.
        spans: The moments that a page is about, as starts and ends; they matter if the system names no telling texts.
    """
    files = [path for path in log_files(run) if path.name != TRANSCRIPT]
    times = log_times(record)
    if times is None:
        return Logs(notes=[UNKNOWN] if files else [])
    notes = list(times.notes)
    texts = [text.encode() for text in record.test.log_texts[:MAX_TEXTS] if text]
    lines: list[LogLine] = []
    since: list[LogLine] = []
    left = MAX_TOTAL_BYTES
    for path in files:
        if not times.knows(path.parent.name):
            continue
        try:
            with below.open_file(run.path, path) as file:
                room = min(left, MAX_BYTES)
                node = path.parent.name
                starts_ns = [start.after_ns for start in starts_of(record, node)]
                near, later = _lines(file, node, times, texts=texts, spans=spans, room=room, starts_ns=starts_ns)
                lines += near
                since += later
                read = file.tell()
                if file.read(1):
                    notes.append(
                        f"Only the first {read:,} bytes of {name(path.name)} of {name(path.parent.name)} were searched."
                    )
                left -= read
        except OSError as error:
            notes.append(f"{name(path.name)} of {name(path.parent.name)} was not read: {error.strerror}.")
    lines.sort(key=lambda line: line.time_ns)
    if len(lines) > MAX_KEPT:
        notes.append(f"{len(lines) - MAX_KEPT:,} lines far from the violation are left out.")
        lines = sorted(sorted(lines, key=lambda line: _distance(line, spans))[:MAX_KEPT], key=lambda line: line.time_ns)
    since.sort(key=lambda line: line.time_ns)
    if len(since) > MAX_KEPT:
        notes.append(f"{len(since) - MAX_KEPT:,} early warnings and errors are left out.")
    return Logs(lines=lines, notes=notes, since=since[-MAX_KEPT:])


def spans_of(example: Counterexample) -> list[Span]:
    """Returns the times of the operations of a counterexample."""
    return [(operation.start_ns, operation.last_ns) for operation in example.operations]


def log_files(run: Run, *, most: int | None = MAX_FILES) -> Iterator[Path]:
    """Yields the log files of all nodes in a run's folder, at most a number of them; None: all."""
    if not below.is_folder(run.path, run.nodes_dir):
        return
    yield from islice(
        (
            path
            for path, about in below.walk(run.path, run.nodes_dir, deepest=1)
            if path.parent.parent == run.nodes_dir and not stat.S_ISDIR(about.st_mode)
        ),
        most,
    )


@dataclass(slots=True)
class _Alike:
    """The lines of one log that differ only in their numbers.

    A log can repeat a line a thousand times a second, and the times of a batch need not be read: if its last line is near the
    line before the batch, so are those in between.

    Attributes:
        lines: The lines, near ones as one.
        waiting: Later ones whose time has not been read yet.
    """

    lines: list[LogLine]
    waiting: list[bytes]

    def settle(self, read: Callable[[bytes], LogLine | None]) -> None:
        """Adds the lines that wait."""
        last = read(self.waiting[-1]) if self.waiting else None
        if last is not None and self._near(last):
            self._extend(len(self.waiting), last)
        else:
            for line in filter(None, map(read, self.waiting)):
                if self._near(line):
                    self._extend(1, line)
                else:
                    self.lines.append(line)
        self.waiting.clear()

    def _near(self, line: LogLine) -> bool:
        newest = self.lines[-1]
        return 0 <= line.time_ns - max(newest.time_ns, newest.last_ns) <= ALIKE_NS

    def _extend(self, count: int, last: LogLine) -> None:
        self.lines[-1] = replace(self.lines[-1], more=self.lines[-1].more + count, last_ns=last.time_ns, last=last.text)


def _lines(
    file: BinaryIO,
    node: str,
    times: LogTimes,
    *,
    texts: Sequence[bytes],
    spans: Sequence[Span],
    room: int,
    starts_ns: Sequence[int],
) -> tuple[list[LogLine], list[LogLine]]:
    """Returns the lines of one log near some spans or with a telling text, and those of `Logs.since`."""

    def read(raw: bytes) -> LogLine | None:
        text = raw.decode("utf-8", errors="replace")
        stamp = times.stamp(node, text)
        if stamp is None:
            return None
        return LogLine(
            time_ns=stamp.time_ns,
            node=name(node),
            text=name(text[stamp.end :].strip(" \t\r\n]>,:-"), MAX_TEXT),
        )

    def read_near(raw: bytes) -> LogLine | None:
        line = read(raw)
        return line if line is not None and (texts or _distance(line, spans) <= NEAR_NS) else None

    def read_severe(raw: bytes) -> LogLine | None:
        line = read(raw)
        return None if line is None else replace(line, is_severe=True)

    near = _Groups(read_near, BATCH if texts else 1)  # without texts, each line may be too far from the spans
    severe = _Groups(read_severe, BATCH)
    first: list[LogLine] = []
    coming, left = sorted(starts_ns), 0
    while file.tell() < room and (raw := file.readline(MAX_LINE)):
        is_error = is_severe(raw)
        line = read(raw) if coming or left else None
        if line is not None and coming and line.time_ns > coming[0]:
            coming, left = [start_ns for start_ns in coming if start_ns >= line.time_ns], MAX_FIRST
        if line is not None and left:
            first.append(replace(line, is_first=True, is_severe=is_error))
            left -= 1
        elif is_error:
            severe.add(raw)
        if not texts or any(text in raw for text in texts):
            near.add(raw)
    return near.lines(), [*first, *severe.lines()]


class _Groups:
    """The lines of one log, similar successive ones as one."""

    def __init__(self, read: Callable[[bytes], LogLine | None], batch: int) -> None:
        self._read = read
        self._batch = batch
        self._groups: dict[bytes, _Alike] = {}

    def add(self, raw: bytes) -> None:
        """Adds a line."""
        alike = _NUMBER.sub(b"#", raw)
        group = self._groups.get(alike)
        if group is None:
            line = self._read(raw)
            if line is not None:
                self._groups[alike] = _Alike(lines=[line], waiting=[])
            return
        group.waiting.append(raw)
        if len(group.waiting) == self._batch:
            group.settle(self._read)

    def lines(self) -> list[LogLine]:
        """Returns all lines; two similar ones stay two."""
        for group in self._groups.values():
            group.settle(self._read)
        return [line for group in self._groups.values() for alike in group.lines for line in alike.apart()]


def _before_end(line: LogLine, spans: Sequence[Span]) -> int:
    """Returns how far a line is from the nearest end of a span."""
    return min((abs(end - line.time_ns) for _, end in spans), default=0)


def _distance(line: LogLine, spans: Sequence[Span]) -> int:
    """Returns how far a line is from the nearest span; 0 within one."""
    return min((max(start - line.time_ns, line.time_ns - end, 0) for start, end in spans), default=NEAR_NS + 1)
