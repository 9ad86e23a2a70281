"""The classes of warnings and errors in the logs of a run: lines that differ only in values, names and times are one class.

Each run has them, also a valid one: `labrys triage` leaves out the classes that valid runs of the same software have. Logs are
foreign: no link is followed, and files, lines and classes have limits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from harness.console import below
from results.logs.lines import MAX_LINE, log_files
from results.logs.starts import is_severe
from results.logs.transcripts import FILE as TRANSCRIPT
from results.record.signatures import MAX_CLASSES
from results.signatures.stripping import Stripper

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from results.store.store import Run

MAX_BYTES: Final = 16 << 20  # of one log
MAX_TOTAL_BYTES: Final = 64 << 20
MAX_FORMS: Final = 5_000  # different lines, before their classes


def warning_classes(run: Run, nodes: Sequence[str]) -> dict[str, int]:
    """Returns the number of lines of each class in the logs of a run; see `classes_in`."""
    return classes_in(run.path, log_files(run), nodes)


def classes_in(root: Path, files: Iterable[Path], nodes: Sequence[str]) -> dict[str, int]:
    """Returns the number of lines of each class in log files, the most frequent class first.

    Args:
        root: The folder that no link may lead out of.
        files: The files.
        nodes: The names of the nodes.
    """
    stripper = Stripper(nodes)
    counts: dict[str, int] = {}
    classes: dict[bytes, str] = {}
    left = MAX_TOTAL_BYTES
    for path in files:
        if path.name == TRANSCRIPT:
            continue
        try:
            with below.open_file(root, path) as file:
                room = min(left, MAX_BYTES)
                while file.tell() < room and (raw := file.readline(MAX_LINE)):
                    if not is_severe(raw):
                        continue
                    form = raw.translate(_DIGITS)
                    if form not in classes:
                        if len(classes) == MAX_FORMS:
                            continue
                        classes[form] = stripper.line(raw.decode("utf-8", errors="replace"))
                    counts[classes[form]] = counts.get(classes[form], 0) + 1
                left -= file.tell()
        except OSError:
            continue  # the part `log-patterns` and the report name logs that cannot be read
    ordered = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    return dict(ordered[:MAX_CLASSES])


_DIGITS: Final = bytes(b"0"[0] if chr(code).isdigit() and code < 128 else code for code in range(256))
