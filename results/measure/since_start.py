"""What the nodes logged since their last start before a violation: the first lines of the start, and warnings and errors.

A node that lost its power tells at its start what it loaded, and a warning may stand seconds or minutes before the violation
that it explains. So these lines have no limit in time, only in number. A node starts when a fault that had ended its process
lets it run again, or when Labrys restarts all nodes; before that, the run itself has started it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from harness.console.plain import counted, name
from harness.faults import called
from harness.parts import RECOVERED
from harness.units import NS_PER_MS, NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Sequence

    from results.measure.log_lines import LogLine
    from results.store.record import RunRecord

MAX_FIRST: Final = 6  # lines of a start
MAX_SEVERE: Final = 8  # warnings and errors of a node
_DYING_NS: Final = 500 * NS_PER_MS  # a process that a fault ends may log until then
_SEVERE: Final = re.compile(
    rb"\b(?:WARN|WARNING|ERROR|ERR|FATAL|SEVERE|CRITICAL|PANIC)\b|\[(?:warn|error|fatal|panic)\w*\]|^panic:|^[WEF]\d{4} \d"
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


@dataclass(frozen=True, slots=True, kw_only=True)
class SinceStart:
    """The lines of one node.

    Attributes:
        node: Its name.
        start: Its last start before the violation; None if it runs since the start of the run.
        first: The first lines of this start.
        severe: The last warnings and errors since then.
        left_out: How many earlier warnings and errors there are since then.
    """

    node: str
    start: Start | None
    first: Sequence[LogLine] = ()
    severe: Sequence[LogLine] = ()
    left_out: int = 0

    @property
    def title(self) -> str:
        """Returns what the lines are, as a title."""
        earlier = f", without {counted(self.left_out, 'earlier one')}" if self.left_out else ""
        what = " and ".join(
            [*(["first lines"] if self.first else []), *(["warnings and errors"] if self.severe else [])]
        )
        when = "since the start of the run" if self.start is None else f"since its start after {name(self.start.why)}"
        return f"{self.node}: {what} {when}{earlier}"


def is_severe(line: bytes) -> bool:
    """Returns whether a line of a log is a warning or an error, by the words that common programs write."""
    return _SEVERE.search(line) is not None


def starts_of(record: RunRecord, node: str) -> list[Start]:
    """Returns the starts of a node's process during a run, in the order of time."""
    found = []
    for fault in record.faults:
        if node in fault.stopped:
            dying_ns = min(_DYING_NS, (fault.end_ns - fault.start_ns) // 2)
            why = f"{called(fault.planned.kind, fault.planned.options)} (fault {fault.planned.id})"
            found.append(Start(after_ns=fault.start_ns + dying_ns, why=why))
    for part in record.parts:
        restarted_s = part.details.get("restarted_s") if part.name == RECOVERED else None
        if isinstance(restarted_s, int | float) and not isinstance(restarted_s, bool):
            found.append(Start(after_ns=round(restarted_s * NS_PER_S), why="the restart of all nodes by Labrys"))
    return sorted(found, key=lambda each: each.after_ns)


def since_start(record: RunRecord, lines: Sequence[LogLine], until_ns: int) -> list[SinceStart]:
    """Returns what the nodes logged since their last start until a time; without nodes that have nothing to show.

    Args:
        record: The run's record.
        lines: First lines of starts, warnings and errors, in the order of time.
        until_ns: The end of the violation.
    """
    found = []
    for node in record.test.nodes:
        own = [line for line in lines if line.node == name(node) and line.time_ns <= until_ns]
        start = next((each for each in reversed(starts_of(record, node)) if each.after_ns <= until_ns), None)
        now = [line for line in own if start is None or line.time_ns > start.after_ns]
        first = [] if start is None else [line for line in now if line.is_first][:MAX_FIRST]
        severe = [line for line in now if line.is_severe and line not in first]
        if first or severe:
            found.append(
                SinceStart(
                    node=name(node),
                    start=start,
                    first=first,
                    severe=severe[-MAX_SEVERE:],
                    left_out=max(0, len(severe) - MAX_SEVERE),
                )
            )
    return found
