"""Numbers and values as a person reads them; a dash stands for what was not observed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness.op import Value

UNSEEN = "—"
MAX_DETAILS = 20_000


def seconds(value: float | None) -> str:
    """Says a number of seconds."""
    if value is None:
        return UNSEEN
    if value >= 600:
        return f"{value / 60:.1f} min"
    if value >= 1 or value == 0:
        return f"{value:.1f} s"
    return f"{value * 1000:.0f} ms" if value >= 0.001 else "< 1 ms"


def percent(part: int, whole: int) -> str:
    """Says a share; a dash if there is nothing to have a share of."""
    return f"{100 * part / whole:.1f} %" if whole else UNSEEN


def elections(leadership: Mapping[str, Value]) -> str:
    """Says how often the leader changed, and the terms that were seen; a dash where no node told anything."""
    changes, terms, leaders = leadership["changes"], leadership["terms"], leadership["leaders"]
    if not terms and not leaders:
        return UNSEEN
    if not changes and len(terms) > 1:
        return f"no {'new ' if leaders else ''}leader seen, term rose from {terms[0]} to {terms[-1]}"
    said = f"{changes} change{'' if changes == 1 else 's'}" if changes else "no change" if leaders else "no leader seen"
    if not terms:
        return said
    return f"{said}, term {terms[0]}" if len(terms) == 1 else f"{said}, terms {terms[0]}-{terms[-1]}"


def size(count: int) -> str:
    """Says a number of bytes."""
    for unit, factor in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= factor:
            return f"{count / factor:.1f} {unit}"
    return f"{count} B"


def pretty(value: Value) -> str:
    """Returns a value as indented JSON, cut where it becomes too long for a page."""
    text = json.dumps(value, indent=2, ensure_ascii=False, default=str)
    return text if len(text) <= MAX_DETAILS else f"{text[:MAX_DETAILS]}\n… (cut; results.json has all of it)"


def one_value(value: Value) -> str:
    """Says a value in one line; a dash for none."""
    if value is None:
        return UNSEEN
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
