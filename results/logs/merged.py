"""All logs of all nodes of a run as one list, in the order of the run's clock.

The order of the lines within a file stays. Between files, the time of a line decides; a line without a time, e.g. of a stack
trace, stands after the line before it. A time long after the end of the run is not believed: it would hold back the rest of
its file. The files are foreign and can be of any size: no link is followed, a line has a limit, and only one line of each file
is in memory.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from harness.console import below
from harness.console.plain import counted, name
from harness.units import NS_PER_S
from results.logs.lines import log_files

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from pathlib import Path
    from typing import BinaryIO

    from results.logs.times import LogTimes
    from results.record.record import RunRecord
    from results.store.store import Run

MAX_OPEN: Final = 400  # files; each has a descriptor while the lines are read
MAX_LINE: Final = 64 << 10
LATE_NS: Final = 3600 * NS_PER_S
_BEFORE: Final = -math.inf


class Entry(NamedTuple):
    """A line of a node's log.

    Attributes:
        time_ns: Its own time on the run's clock; None if it has none.
        place_ns: The time that gives it its place: its own, or that of the line before; -inf before the first time of a file.
        node: The name of the node's folder.
        file: The name of the file.
        text: The line without its time, not yet safe for a terminal.
    """

    time_ns: int | None
    place_ns: float
    node: str
    file: str
    text: str


@dataclass(slots=True, kw_only=True)
class MergedLogs:
    """The logs of some nodes of a run.

    Attributes:
        run: The run's folder.
        times: Reads the time of each line.
        files: The files, in the order of the nodes.
        late_ns: The latest time that is believed.
        notes: Sentences about what was not read, or not as it is; complete when all lines were read.
    """

    run: Run
    times: LogTimes
    files: Sequence[Path]
    late_ns: int
    notes: list[str] = field(default_factory=list)

    def entries(self, from_ns: float = _BEFORE, to_ns: float = math.inf) -> Iterator[Entry]:
        """Yields the lines from a time to a time, in order."""
        cut: Counter[Path] = Counter()
        doubted: Counter[Path] = Counter()
        with ExitStack() as opened:
            lines = [self._lines(path, file, cut, doubted) for path, file in self._open(opened)]
            for entry in heapq.merge(*lines, key=lambda entry: entry.place_ns):
                if from_ns <= entry.place_ns <= to_ns:
                    yield entry
        self.notes += [
            f"{counted(count, 'line')} of {_shown(path)} {'is' if count == 1 else 'are'} cut at {MAX_LINE:,} bytes."
            for path, count in cut.items()
        ]
        self.notes += [
            f"{counted(count, 'time')} in {_shown(path)} {'is' if count == 1 else 'are'} long after the run, and did not count."
            for path, count in doubted.items()
        ]

    def _open(self, opened: ExitStack) -> list[tuple[Path, BinaryIO]]:
        files = []
        for path in self.files[:MAX_OPEN]:
            try:
                files.append((path, opened.enter_context(below.open_file(self.run.path, path))))
            except OSError as error:
                self.notes.append(f"{_shown(path)} was not read: {error.strerror}.")
        if len(self.files) > MAX_OPEN:
            self.notes.append(
                f"{counted(len(self.files) - MAX_OPEN, 'more file')} left out; --node shows those of one node."
            )
        return files

    def _lines(self, path: Path, file: BinaryIO, cut: Counter[Path], doubted: Counter[Path]) -> Iterator[Entry]:
        node, place_ns = path.parent.name, _BEFORE
        try:
            while raw := file.readline(MAX_LINE):
                if len(raw) == MAX_LINE and not raw.endswith(b"\n"):
                    cut[path] += 1
                    while (rest := file.readline(MAX_LINE)) and not rest.endswith(b"\n"):
                        pass
                text = raw.decode("utf-8", errors="replace").removesuffix("\n").removesuffix("\r")
                stamp = self.times.stamp(node, text)
                if stamp is not None and stamp.time_ns > self.late_ns:
                    doubted[path] += 1
                    stamp = None
                if stamp is None:
                    yield Entry(None, place_ns, node, path.name, text)
                    continue
                place_ns = stamp.time_ns
                # What closes the time is no part of the text; a mark after a space is.
                closes = "" if text[stamp.end - 1] == " " else "]>,:"
                yield Entry(stamp.time_ns, place_ns, node, path.name, text[stamp.end :].lstrip(f" \t{closes}"))
        except OSError as error:
            self.notes.append(f"{_shown(path)} was not read to its end: {error.strerror}.")


def merged_logs(run: Run, record: RunRecord, times: LogTimes, nodes: Collection[str] = ()) -> MergedLogs:
    """Returns the logs of a run.

    Args:
        run: The run's folder.
        record: The run's record.
        times: Reads the time of each line.
        nodes: The nodes whose logs are wanted; empty: all.
    """
    files = [path for path in log_files(run, most=None) if not nodes or path.parent.name in nodes]
    ends_ns = [*(operation.last_ns for operation in record.operations), *(fault.end_ns for fault in record.faults)]
    late_ns = max(ends_ns, default=0) + round(record.duration_s * NS_PER_S) + LATE_NS
    return MergedLogs(run=run, times=times, files=files, late_ns=late_ns)


def _shown(path: Path) -> str:
    return f"{name(path.name)} of {name(path.parent.name)}"
