"""Reads the time at the start of a line of a log, in the formats that common programs write.

Known are ISO 8601 with its variants (`2026-01-31 10:11:12,345`, `2026/01/31 10:11:12`, with or without a zone, also in JSON),
`31 Jan 2026 10:11:12.345`, `31/Jan/2026:10:11:12 +0000`, `Jan 31 10:11:12` (syslog), `I0131 10:11:12.345678` (klog),
seconds since 1970 in JSON, and a bare `10:11:12.345`. The line is foreign: only its first characters are read, and a time that
does not exist is none. A system's own expression (`harness.process_clock.LogClock`) is for a proof during the run; the folder
of a run may come from anyone, so no expression in it is ever used.
"""

from __future__ import annotations

import contextlib
import re
from datetime import date, timedelta
from typing import Final, NamedTuple

from harness.units import NS_PER_S

MAX_READ: Final = 120
_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_MONTH: Final = f"(?P<name>{'|'.join(_MONTHS)})"
_CLOCK: Final = r"(?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d)(?:[.,](?P<part>\d{1,9}))?"
_ZONE: Final = r"(?P<zone> ?Z| ?[+-]\d\d:?\d\d)?"
_FORMATS: Final = tuple(
    re.compile(pattern)
    for pattern in (
        rf"(?P<year>\d{{4}})[-/](?P<month>\d\d)[-/](?P<day>\d\d)[T ]{_CLOCK}{_ZONE}",
        rf"(?P<day>\d{{1,2}})[ /]{_MONTH}[ /](?P<year>\d{{4}})[ :]{_CLOCK}{_ZONE}",
        rf"^(?:<\d{{1,3}}>)?{_MONTH} {{1,2}}(?P<day>\d{{1,2}}) {_CLOCK}",
        rf"^[IWEF](?P<month>\d\d)(?P<day>\d\d) {_CLOCK}",
        r"\"(?:ts|time|timestamp)\": ?(?P<epoch>\d{10})(?:\.(?P<part>\d{1,9}))?[,}]",
        rf"^\[?{_CLOCK}",
    )
)
_DAY_S: Final = 86_400
_DAY_HOURS: Final = 24
_SIXTY: Final = 60
_EPOCH: Final = date(1970, 1, 1)


class Stamp(NamedTuple):
    """The time of a line.

    Attributes:
        time_ns: Nanoseconds since 1970.
        end: The position after it, if the line begins with it; else 0.
    """

    time_ns: int
    end: int


def stamp_of(line: str, *, zone_s: int, near_ns: int) -> Stamp | None:
    """Returns the time of a line; None if it has none.

    Args:
        line: The line.
        zone_s: The zone of a time without one, in seconds east of UTC.
        near_ns: A time near that of the line, in nanoseconds since 1970; it completes a time without a year or a day.
    """
    head = line[:MAX_READ]
    for pattern in _FORMATS:
        match = pattern.search(head)
        if match is None:
            continue
        time_ns = _time(match.groupdict(), zone_s, near_ns)
        if time_ns is not None:
            is_first = not head[: match.start()].strip(" \t[<")
            return Stamp(time_ns, match.end() if is_first else 0)
    return None


def _time(fields: dict[str, str | None], zone_s: int, near_ns: int) -> int | None:
    part_ns = int((fields.get("part") or "0").ljust(9, "0"))
    if fields.get("epoch"):
        return int(fields["epoch"] or 0) * NS_PER_S + part_ns
    zone = (fields.get("zone") or "").strip()
    if zone:
        zone_s = _zone(zone)
    hour, minute, second = (_number(fields, name) for name in ("hour", "minute", "second"))
    if hour >= _DAY_HOURS or minute >= _SIXTY or second > _SIXTY:  # a leap second is second 60
        return None
    since_s = (hour * _SIXTY + minute) * _SIXTY + second
    near_s = near_ns // NS_PER_S + zone_s
    days = _days(fields, near_s)
    if not days:
        return None
    time_s = min((day * _DAY_S + since_s for day in days), key=lambda time_s: abs(time_s - near_s))
    return (time_s - zone_s) * NS_PER_S + part_ns


def _days(fields: dict[str, str | None], near_s: int) -> list[int]:
    """Returns the days that a line can mean, counted from 1970: one, or some near `near_s` if it has no year or no day."""
    name = fields.get("name")
    month = _MONTHS.index(name) + 1 if name else _number(fields, "month")
    if not name and not fields.get("month"):
        return [near_s // _DAY_S + more for more in (-1, 0, 1)]
    near = (_EPOCH + timedelta(days=near_s // _DAY_S)).year
    years = (_number(fields, "year"),) if fields.get("year") else (near - 1, near, near + 1)
    days = []
    for year in years:
        with contextlib.suppress(ValueError):  # there is no such day, e.g. in a year that is not a leap year
            days.append((date(year, month, _number(fields, "day")) - _EPOCH).days)
    return days


def _zone(text: str) -> int:
    if text == "Z":
        return 0
    digits = text[1:].replace(":", "")
    offset_s = int(digits[:2]) * 3600 + int(digits[2:]) * 60
    return -offset_s if text[0] == "-" else offset_s


def _number(fields: dict[str, str | None], name: str) -> int:
    return int(fields.get(name) or 0)
