"""Numbers and values as text for people; a dash stands for a missing value."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness.op import Value

DASH = "—"
MAX_DETAILS = 20_000


def moment(stamp: str) -> str:
    """Returns the name of a run's folder as a time in UTC: `20260729T101112.123Z` as `2026-07-29 10:11:12`."""
    return f"{stamp[:4]}-{stamp[4:6]}-{stamp[6:8]} {stamp[9:11]}:{stamp[11:13]}:{stamp[13:15]}"


def seconds(value: float | None) -> str:
    """Returns a number of seconds as text."""
    if value is None:
        return DASH
    if value >= 600:
        return f"{value / 60:.1f} min"
    if value >= 1 or value == 0:
        return f"{value:.1f} s"
    return f"{value * 1000:.0f} ms" if value >= 0.001 else "< 1 ms"


def percent(part: float, whole: float) -> str:
    """Returns a share as text; a dash if the whole is 0. Only the whole is shown as 100 %, and only 0 as 0 %."""
    if not whole:
        return DASH
    share = 100 * part / whole
    return f"{share if part in {0, whole} else min(max(share, 0.1), 99.9):.1f} %"


def outcomes(counts: Mapping[str, Value]) -> str:
    """Returns the number of operations with each result. Refusals that name the leader count apart from other failures."""
    text = f"{counts['ok']:,} ok, {counts['fail'] - counts['refused']:,} fail, {counts['info']:,} info"
    return f"{text}, {counts['refused']:,} refused" if counts["refused"] else text


def ratio(value: float | None) -> str:
    """Returns a number as a share of 1, e.g. `87 %`; a dash for none. It may exceed 100 %."""
    return DASH if value is None else f"{100 * value:.0f} %"


def fault_availability(around: Mapping[str, Value]) -> str:
    """Returns the availability during and after a fault, in one line."""
    during, after, share = around["during"], around["after"], around["rate_share"]
    text = f"answered {percent(during['answered'], during['operations'])}" if during["operations"] else "no operations"
    text += "" if share is None else f", rate {ratio(share)} of before"
    text += ", no ok" if during["first_ok_s"] is None else f", first ok {seconds(during['first_ok_s'])}"
    text += f", longest gap {seconds(during['longest_gap_s'])}"
    again_s = after["sustained_ok_s"] if after else None
    return text if again_s is None else f"{text}; ok again {seconds(again_s)} after healing"


def availability(measured: Mapping[str, Value] | None) -> str:
    """Returns the availability of a run in one line."""
    if measured is None:
        return "there are no operations"
    text = (
        f"{percent(measured['answered'], measured['operations'])} of {measured['operations']:,} operations answered, "
        f"longest gap {seconds(measured['longest_gap_s'])}, measured by {measured['measured_by']}"
    )
    return text + (f"; {measured['refused']:,} refusals that name the leader" if measured["refused"] else "")


def elections(leadership: Mapping[str, Value]) -> str:
    """Returns the number of changes of leaders, and the terms; a dash if no node reported a leader or a term."""
    changes, terms, leaders = leadership["changes"], leadership["terms"], leadership["leaders"]
    if not terms and not leaders:
        return DASH
    if not changes and len(terms) > 1:
        return f"no {'new ' if leaders else ''}leader seen, term rose from {terms[0]} to {terms[-1]}"
    text = f"{changes} change{'' if changes == 1 else 's'}" if changes else "no change" if leaders else "no leader seen"
    if not terms:
        return text
    return f"{text}, term {terms[0]}" if len(terms) == 1 else f"{text}, terms {terms[0]}-{terms[-1]}"


def size(count: int) -> str:
    """Returns a number of bytes as text."""
    for unit, factor in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= factor:
            return f"{count / factor:.1f} {unit}"
    return f"{count} B"


def pretty(value: Value) -> str:
    """Returns a value as indented JSON. A value that is too long for a page is cut."""
    text = json.dumps(value, indent=2, ensure_ascii=False, default=str)
    return text if len(text) <= MAX_DETAILS else f"{text[:MAX_DETAILS]}\n… (cut; results.json has all of it)"


def one_value(value: Value) -> str:
    """Returns a value as one line; a dash for null."""
    if value is None:
        return DASH
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
