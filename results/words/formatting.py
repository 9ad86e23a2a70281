"""Numbers and values as text for people; a dash stands for a missing value."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from harness.console import plain
from harness.console.plain import counted
from harness.phases import WORKLOAD, beside_workload_s
from results.words.bounds import label

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness.faults import FaultRecord
    from harness.op import Value
    from harness.phases import Phase

DASH = "—"
MAX_DETAILS = 20_000
MAX_FIRED = 400
MAX_PHASES = 8
MAX_PHASE_NODES = 9
MIN_PHASE_S = 0.05


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


def in_term(term: int | None) -> str:
    """Returns a term as the end of a clause; nothing for a system without terms."""
    return "" if term is None else f" in term {term}"


def percent(part: float, whole: float) -> str:
    """Returns a share as text; a dash if the whole is 0. Only the whole is shown as 100 %, and only 0 as 0 %."""
    if not whole:
        return DASH
    share = 100 * part / whole
    return f"{share if part in {0, whole} else min(max(share, 0.1), 99.9):.1f} %"


def outcomes(counts: Mapping[str, Value]) -> str:
    """Returns the number of operations with each outcome."""
    text = f"{counts['ok']:,} ok, {counts['fail']:,} fail, {counts['info']:,} info"
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
    text += f", {longest_gap(during, {f: pair['during'] for f, pair in around['by_f'].items()})}"
    again_s = after["sustained_ok_s"] if after else None
    return text if again_s is None else f"{text}; ok again {seconds(again_s)} after healing"


def availability(measured: Mapping[str, Value] | None) -> str:
    """Returns the availability of a run in one line."""
    if measured is None:
        return "there are no operations"
    text = (
        f"{percent(measured['answered'], measured['operations'])} of {counted(measured['operations'], 'operation')} answered, "
        f"{longest_gap(measured, measured['by_f'])}; measured by {measured['measured_by']}"
    )
    if not measured["refused"]:
        return text
    return f"{text}; {counted(measured['refused'], 'refusal')} that named the leader"


def fired(fault: FaultRecord) -> str:
    """Returns what fired the trigger of a fault, in words that follow `it began`; empty if nothing did."""
    return "" if fault.fired is None else plain.name(plain.one_line(fault.fired.what), MAX_FIRED)


def longest_gap(measured: Mapping[str, Value], by_f: Mapping[str, Mapping[str, Value]]) -> str:
    """Returns the longest time without an answer, and the function that was without an answer for a longer time, if any.

    Args:
        measured: A window of all functions together.
        by_f: The same window of each function.
    """
    text = f"longest gap {seconds(measured['longest_gap_s'])}"
    worst = worst_gap(measured, by_f)
    return text if worst is None else f"{text}, and {seconds(worst[1])} without an answered {worst[0]}"


def worst_gap(measured: Mapping[str, Value], by_f: Mapping[str, Mapping[str, Value]]) -> tuple[str, float] | None:
    """Returns the function with the longest gap, and this gap in seconds; None if that of all functions reads the same.

    Args:
        measured: A window of all functions together.
        by_f: The same window of each function.
    """
    if not by_f:
        return None
    f = max(by_f, key=lambda name: by_f[name]["longest_gap_s"])
    gap_s = by_f[f]["longest_gap_s"]
    return None if seconds(gap_s) == seconds(measured["longest_gap_s"]) else (label(f), gap_s)


def elections(leadership: Mapping[str, Value]) -> str:
    """Returns the number of changes of leaders, and the terms; a dash if no node reported a leader or a term."""
    changes, terms, leaders = leadership["changes"], leadership["terms"], leadership["leaders"]
    if not terms and not leaders:
        return DASH
    if not changes and len(terms) > 1:
        return f"no {'new ' if leaders else ''}leader seen, term rose from {terms[0]} to {terms[-1]}"
    changed = f"{counted(changes, 'change')} of leader" if changes else "no change of leader"
    text = changed if changes or leaders else "no leader seen"
    if not terms:
        return text
    return f"{text}, term {terms[0]}" if len(terms) == 1 else f"{text}, terms {terms[0]}-{terms[-1]}"


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Returns rows of equal length as lines, with columns of equal width."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def times(phases: Sequence[Phase]) -> str:
    """Returns the time beside the workload in one line, with the longest phases; a dash if the phases are not known."""
    beside_s = beside_workload_s(phases)
    if beside_s is None:
        return DASH
    workload_s = sum(phase.seconds for phase in phases if phase.name == WORKLOAD)
    groups: dict[str, list[Phase]] = {}
    for phase in phases:
        if phase.name != WORKLOAD:
            groups.setdefault(phase.name, []).append(phase)
    took_s = {name: sum(phase.seconds for phase in group) for name, group in groups.items()}
    longest = sorted((name for name in groups if took_s[name] >= MIN_PHASE_S), key=lambda name: -took_s[name])
    shown = []
    for name in longest[:MAX_PHASES]:
        nodes = [phase for phase in groups[name] if phase.node is not None][:MAX_PHASE_NODES]
        by_node = ", ".join(f"{label(str(phase.node))} {seconds(phase.seconds)}" for phase in nodes)
        shown.append(f"{label(name)} {seconds(took_s[name])}{f' ({by_node})' if by_node else ''}")
    text = f"{seconds(beside_s)} beside the workload of {seconds(workload_s)}"
    return f"{text}: {', '.join(shown)}" if shown else text


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
