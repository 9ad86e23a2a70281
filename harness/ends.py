"""Processes of the system that ended by themselves, with the status and the last lines of the log.

Labrys ends processes only by `Daemon.kill`, and by the loss of power of a simulated node. All other ends are the program's own:
it returned, or a signal ended it that no fault sent. A system may do so on purpose, e.g. on a full disk. So the part
`processes` is an extra that is never invalid: it names the ends, and the verdict is that of the other parts.
"""

from __future__ import annotations

import signal
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from harness.console.plain import name, one_line
from harness.units import NS_PER_S
from harness.verdict import Part, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from harness.faults import FaultRecord
    from harness.op import Value

PROCESSES: Final = "processes"
MAX_ENDS: Final = 20  # in the details of the part
MAX_ON_NODE: Final = 50  # that a node tells, the last ones
MAX_LINES: Final = 5  # of a log
MAX_LINE: Final = 400  # characters
MAX_TAIL: Final = 64 << 10  # bytes of a log that are read
SIGNALLED: Final = 128  # a shell adds it to the number of a signal


class End(NamedTuple):
    """The end of a process that Labrys did not end.

    Attributes:
        role: Its role.
        ago_s: How long ago it ended, in seconds.
        status: Its status as in a shell: 128 and the number of the signal if one ended it.
        lines: The last lines of its output then.
    """

    role: str
    ago_s: float
    status: int
    lines: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """The same in a run.

    Attributes:
        node: The name of the node.
        role: Its role.
        time_ns: When it ended, on the run's clock.
        status: As in `End`.
        lines: As in `End`.
    """

    node: str
    role: str
    time_ns: int
    status: int
    lines: tuple[str, ...] = ()

    @property
    def how(self) -> str:
        """Returns how it ended, as a clause: `with status 3`, `by the signal SIGSEGV`."""
        if not SIGNALLED < self.status <= SIGNALLED + signal.SIGRTMAX:
            return f"with status {self.status}"
        number = self.status - SIGNALLED
        try:
            return f"by the signal {signal.Signals(number).name}"
        except ValueError:
            return f"by the signal {number}"


def shell_status(status: int) -> int:
    """Returns the status in a shell of one from waitpid."""
    number = status & 0x7F
    return SIGNALLED + number if number else status >> 8 & 0xFF


def ends_since(began_s: float, now_s: float, node: str, ends: Iterable[End]) -> Iterator[Ended]:
    """Yields the ends on a node since a time, on the run's clock.

    Args:
        began_s: The time, on the run's clock.
        now_s: The run's clock when the node was asked.
        node: The name of the node.
        ends: What the node said.
    """
    for end in ends:
        time_s = now_s - end.ago_s
        if time_s >= began_s:
            yield Ended(node=node, role=end.role, time_ns=int(time_s * NS_PER_S), status=end.status, lines=end.lines)


def processes(ends: Sequence[Ended], faults: Sequence[FaultRecord]) -> Part | None:
    """Returns the part `processes`; None if no process ended by itself.

    Args:
        ends: The ends.
        faults: The records of the faults.
    """
    if not ends:
        return None
    ordered = sorted(ends, key=lambda end: end.time_ns)
    first = ordered[0]
    listed: list[Value] = [
        {
            "node": end.node,
            "role": end.role,
            "time_s": end.time_ns / NS_PER_S,
            "status": end.status,
            "how": end.how,
            "lines": list(end.lines),
        }
        for end in ordered[:MAX_ENDS]
    ]
    on = sorted({fault.planned.called for fault in faults if _is_on(fault, first)})
    during = f" while {' and '.join(map(name, on))} was on" if on else ""
    more = f" In all, {len(ends):,} processes ended so." if len(ends) > 1 else ""
    said = f" The last lines of its log: {' | '.join(first.lines)}" if first.lines else " Its log is empty."
    reason = (
        f"The process {first.role} of {first.node} ended by itself {first.how} at {first.time_ns / NS_PER_S:.3f} s{during}; "
        f"no fault ended it.{more}{said}"
    )
    return Part(name=PROCESSES, verdict=Verdict.UNKNOWN, reason=reason, extra=True, details={"ended": listed})


def _is_on(fault: FaultRecord, ended: Ended) -> bool:
    return fault.is_proven and ended.node in fault.targets and fault.start_ns <= ended.time_ns < fault.end_ns


def last_lines(text: bytes) -> tuple[str, ...]:
    """Returns the last lines of the end of a log that are not empty, as safe text."""
    lines = [line for line in text[-MAX_TAIL:].decode(errors="replace").splitlines() if line.strip()]
    return tuple(name(one_line(line), MAX_LINE) for line in lines[-MAX_LINES:])
