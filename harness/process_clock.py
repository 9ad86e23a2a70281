"""What a process itself says about the wall clock.

A clock fault on a shared machine changes the clock of one process, through a library. Another program with the same environment
cannot prove this: a Go program reads the clock without libc, so the library does not reach it, and `date` shows another time
than the process. So a proof takes the time from the process: from its answer (`asked`), or from its log (`logged`).
"""

from __future__ import annotations

import asyncio
import math
import re
import shlex
import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta, timezone
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from harness.remote import Remote

COARSE_S = 0.011  # the kernel stamps files with a coarse clock, at 100 Hz at worst
LOOKS_PER_S = 10
OVERHEAD_S = 10.0
MAX_LINE = 4_000
PRECISE_S = 0.1
_DATE = re.compile(rb"^date:[ \t]*(\S[^\r\n]*)", re.IGNORECASE | re.MULTILINE)

# Waits until a file changes, and prints the zone of the node, the time of the last change, and the last line. The time before
# and after must be the same, so that the line is that of the change.
_NEXT_LINE = """old=$(stat -c %.Y PATH 2>/dev/null)
for look in $(seq LOOKS); do
  at=$(stat -c %.Y PATH 2>/dev/null)
  if [ -n "$at" ] && [ "$at" != "$old" ]; then
    line=$(tail -n 1 PATH | head -c MAX_LINE)
    if [ "$(stat -c %.Y PATH)" = "$at" ]; then date +%z; echo "$at"; printf '%s\\n' "$line"; exit; fi
  fi
  sleep PAUSE
done"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockReading:
    """How far the clock of a process is ahead of its machine's clock, by the word of the process; negative: behind.

    Attributes:
        least_s: The least value that fits what the process said.
        most_s: The greatest value that fits.
        source: Where the process said it, e.g. `its STATUS`.
    """

    least_s: float
    most_s: float
    source: str

    @property
    def is_off(self) -> bool:
        """Returns whether the clock certainly differs from the machine's."""
        return self.least_s > 0 or self.most_s < 0

    @property
    def middle_s(self) -> float:
        """Returns the middle of the values that fit."""
        return (self.least_s + self.most_s) / 2

    @property
    def text(self) -> str:
        """Returns the reading as a text: one value, or a range if it is not precise."""
        if self.most_s - self.least_s <= PRECISE_S:
            return f"{self.middle_s:+.3f} s"
        return f"{self.least_s:+.1f} to {self.most_s:+.1f} s"

    def since(self, before: ClockReading) -> ClockReading:
        """Returns how far the clock moved against the machine's since an earlier reading."""
        return replace(self, least_s=self.least_s - before.most_s, most_s=self.most_s - before.least_s)

    def narrowed(self, earlier: ClockReading) -> ClockReading:
        """Returns the values that fit an earlier reading too; this reading if they contradict each other."""
        least_s, most_s = max(self.least_s, earlier.least_s), min(self.most_s, earlier.most_s)
        return replace(self, least_s=least_s, most_s=most_s) if least_s <= most_s else self


@dataclass(frozen=True, slots=True, kw_only=True)
class LogClock:
    """How the lines of a log tell the time.

    Attributes:
        path: The absolute path of the log. The process writes each line at once, or at most `late_s` after its time.
        pattern: A regular expression that matches at the start of a line; its first group has the time.
        form: The time's form, as for `datetime.strptime`, e.g. `%Y-%m-%dT%H:%M:%S.%f%z`.
        resolution_s: The smallest step of the time, e.g. 0.001.
        utc_offset_s: The zone of a form without `%z`, in seconds east of UTC; None: the zone of the node. The report reads all
            logs of the node in this zone.
        late_s: The longest time from the stamp of a line until it is in the file.
    """

    path: str
    pattern: str
    form: str
    resolution_s: float
    utc_offset_s: int | None = None
    late_s: float = 0.25


async def asked(
    ask: Callable[[], Awaitable[float | None]],
    *,
    source: str,
    resolution_s: float,
    machine_s: Callable[[], float] = time.time,
) -> ClockReading | None:
    """Asks a process for its time, and compares it with the clock of this machine.

    Args:
        ask: Sends the request; returns the process' wall clock in seconds since 1970, rounded down; None without an answer.
        source: Where the process says it, for the proof.
        resolution_s: The smallest step of the answer, e.g. 0.001.
        machine_s: The clock of this machine, for tests.
    """
    sent_s = machine_s()
    said_s = await ask()
    received_s = machine_s()
    if said_s is None:
        return None
    return ClockReading(least_s=said_s - received_s, most_s=said_s + resolution_s - sent_s, source=source)


async def http_date_s(address: str, port: int, timeout_s: float, *, path: str = "/") -> float | None:
    """Returns the `Date` of an HTTP server's answer in seconds since 1970, as a question for `asked`; None without one.

    Most HTTP servers send it with each answer, as RFC 9110 (6.6.1) asks. Its resolution is 1 s.

    Args:
        address: The address of the server.
        port: Its TCP port, without TLS.
        timeout_s: The time limit in seconds.
        path: A path that the server itself answers; the status of the answer does not matter.
    """
    try:
        async with asyncio.timeout(timeout_s):
            reader, writer = await asyncio.open_connection(address, port)
            try:
                writer.write(f"GET {path} HTTP/1.1\r\nHost: {address}:{port}\r\nConnection: close\r\n\r\n".encode())
                head = await reader.readuntil(b"\r\n\r\n")
            finally:
                writer.close()
    except (OSError, EOFError, asyncio.LimitOverrunError):  # a TimeoutError is an OSError
        return None
    match = _DATE.search(head)
    try:
        return None if match is None else parsedate_to_datetime(match[1].decode("latin-1")).timestamp()
    except (ValueError, OverflowError):
        return None


async def logged(remote: Remote, clock: LogClock, timeout_s: float) -> ClockReading | None:
    """Waits for the next line of a log, and compares its time with the time at which the kernel saw the write.

    Returns:
        The reading; None if the process writes no line in time, or the line has no time.

    Raises:
        NodeError: The node cannot be reached.
    """
    script = (
        _NEXT_LINE.replace("PATH", shlex.quote(clock.path))
        .replace("LOOKS", str(max(1, round(timeout_s * LOOKS_PER_S))))
        .replace("PAUSE", f"{1 / LOOKS_PER_S:g}")
        .replace("MAX_LINE", str(MAX_LINE))
    )
    done = await asyncio.to_thread(remote.run, script, timeout_s=timeout_s + OVERHEAD_S, check=False)
    return parse_line(done.stdout, clock)


def parse_line(output: str, clock: LogClock) -> ClockReading | None:
    """Parses the zone of the node, the time of a write, and the line that was written; None if there is no time in it."""
    zone, _, rest = output.partition("\n")
    at, _, line = rest.partition("\n")
    match = re.match(clock.pattern, line)
    if match is None:
        return None
    try:
        stamp = datetime.strptime(match[1], clock.form)  # noqa: DTZ007 - the next lines add the zone
        if stamp.tzinfo is None:
            stamp = stamp.replace(tzinfo=_zone(zone, clock.utc_offset_s))
        ahead_s = (stamp - datetime.fromtimestamp(0, UTC)).total_seconds() - float(at)
    except (ValueError, OverflowError):
        return None
    if not math.isfinite(ahead_s):
        return None
    return ClockReading(
        least_s=ahead_s - COARSE_S,
        most_s=ahead_s + clock.resolution_s + clock.late_s,
        source=f"its log {clock.path.rpartition('/')[2]}",
    )


def _zone(text: str, offset_s: int | None) -> timezone:
    if offset_s is not None:
        return timezone(timedelta(seconds=offset_s))
    return timezone(timedelta(hours=int(text[:3]), minutes=int(text[0] + text[3:5])))
