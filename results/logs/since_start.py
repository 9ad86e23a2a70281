"""What the nodes logged since their last start before a violation: the first lines of the start, and warnings and errors.

A node that lost its power tells at its start what it loaded, and a warning may stand seconds or minutes before the violation
that it explains. So these lines have no limit in time, only in number.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from harness.console.plain import counted, name
from results.logs.starts import MAX_FIRST, starts_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from results.logs.lines import LogLine
    from results.logs.starts import Start
    from results.record.record import RunRecord

MAX_SEVERE: Final = 8  # warnings and errors of a node


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


def since_start(record: RunRecord, lines: Sequence[LogLine], until_ns: int) -> list[SinceStart]:
    """Returns what the nodes logged since their last start until a time; without nodes that have nothing to show.

    Args:
        record: The run's record.
        lines: First lines of starts, warnings and errors, in the order of time.
        until_ns: The end of the violation.
    """
    since = []
    for node in record.test.nodes:
        own = [line for line in lines if line.node == name(node) and line.time_ns <= until_ns]
        start = next(
            (candidate for candidate in reversed(starts_of(record, node)) if candidate.after_ns <= until_ns), None
        )
        now = [line for line in own if start is None or line.time_ns > start.after_ns]
        first = [] if start is None else [line for line in now if line.is_first][:MAX_FIRST]
        severe = [line for line in now if line.is_severe and line not in first]
        if first or severe:
            since.append(
                SinceStart(
                    node=name(node),
                    start=start,
                    first=first,
                    severe=severe[-MAX_SEVERE:],
                    left_out=max(0, len(severe) - MAX_SEVERE),
                )
            )
    return since
