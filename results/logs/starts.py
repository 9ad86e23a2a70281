"""When the process of a node started during a run, and which lines of its log tell of trouble.

A node starts when a fault that had ended its process lets it run again, or when Labrys restarts all nodes; before that, the run
itself has started it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from harness.reached import RECOVERED
from harness.units import NS_PER_MS, NS_PER_S

if TYPE_CHECKING:
    from results.record.record import RunRecord

MAX_FIRST: Final = 6  # lines of a start
_DYING_NS: Final = 500 * NS_PER_MS  # a process that a fault ends may log until then
_SEVERE: Final = re.compile(
    rb"\b(?:WARN|WARNING|WRN|ERROR|ERR|FATAL|FTL|SEVERE|CRITICAL|PANIC|PNC)\b|\[(?:warn|error|fatal|panic)\w*\]"
    rb"|^panic:|^[WEF]\d{4} \d"
    rb"|\blevel\"?[:=] ?\"?(?:warn|error|fatal|panic|crit)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """A start of a node's process.

    Attributes:
        after_ns: The lines of the start have a later time.
        why: What ended the process before, e.g. `power-loss (fault 0)`.
    """

    after_ns: int
    why: str


def is_severe(line: bytes) -> bool:
    """Returns whether a line of a log is a warning or an error, by the words that common programs write."""
    return _SEVERE.search(line) is not None


def starts_of(record: RunRecord, node: str) -> list[Start]:
    """Returns the starts of a node's process during a run, in the order of time."""
    starts = []
    for fault in record.faults:
        if node in fault.stopped:
            dying_ns = min(_DYING_NS, (fault.end_ns - fault.start_ns) // 2)
            why = f"{fault.planned.called} (fault {fault.planned.id})"
            starts.append(Start(after_ns=fault.start_ns + dying_ns, why=why))
    for part in record.parts:
        restarted_s = part.details.get("restarted_s") if part.name == RECOVERED else None
        if isinstance(restarted_s, int | float) and not isinstance(restarted_s, bool):
            starts.append(Start(after_ns=round(restarted_s * NS_PER_S), why="the restart of all nodes by Labrys"))
    return sorted(starts, key=lambda start: start.after_ns)
