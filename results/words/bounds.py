"""The limits of what a page or a terminal shows of a run. Every omission is visible; results.json and the history have all.

A history may come from anyone. It may have thousands of functions, nodes or faults, and names of half a megabyte. The limits
keep a report within seconds, and within the size that a browser can open.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from harness.console.plain import name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from results.measure.series import Points, Shade

MAX_PANELS = 8
MAX_KINDS = 16
MAX_SHADES = 2_000
FEW_SHADES = 100
PLACES = 2_000  # more than a picture has points from left to right
MAX_FAULTS = 100
MAX_NODES = 32
MAX_LANES = 1_000
MAX_ROWS = 200
MAX_FUNCTIONS_SHOWN = 6
MAX_LABEL = 60
MAX_TEXT = 32_000

_Key = TypeVar("_Key")
_Member = TypeVar("_Member")


def label(text: str) -> str:
    """Returns a foreign name for a picture or a table; a long name is cut, and its length is added."""
    return name(text, MAX_LABEL)


def cut(value: object) -> object:
    """Returns a value for a page; a long text is cut, and its length is added."""
    if type(value) is str and len(value) > MAX_TEXT:
        return f"{value[:MAX_TEXT]}… ({len(value):,} characters)"
    return value


def first(mapping: Mapping[_Key, _Member], most: int = MAX_ROWS) -> dict[_Key, _Member]:
    """Returns the first members of a mapping."""
    return dict(list(mapping.items())[:most])


def busiest(points: list[Points]) -> tuple[list[Points], str]:
    """Returns the points of the functions with the most operations, one for each panel, and a note if some are left out."""
    sizes: dict[str, int] = {}
    for group in points:
        sizes[group.f] = sizes.get(group.f, 0) + group.time_s.size
    if len(sizes) <= MAX_PANELS:
        return points, ""
    kept = set(sorted(sizes, key=lambda f: (-sizes[f], f))[:MAX_PANELS])
    return [group for group in points if group.f in kept], f"; the {MAX_PANELS} busiest of {len(sizes):,} functions"


def shown_shades(shades: Sequence[Shade]) -> tuple[list[Shade], str]:
    """Returns the stretches that a picture shades, in the order of their start, and a note on what they do not tell.

    All faults are shaded. Faults of one kind become one stretch if the time between them is too short to be seen. If there are
    still too many stretches, that time grows.
    """
    ordered = sorted(shades, key=lambda shade: (shade.start_s, shade.end_s))
    kinds = list(dict.fromkeys(shade.kind for shade in ordered))
    kept = [shade for shade in ordered if shade.kind in kinds[:MAX_KINDS]]
    gap_s = 0.0
    joined = _joined(kept, gap_s)
    apart = len(joined)
    span_s = max((max(shade.start_s, shade.end_s) for shade in kept), default=0.0)
    if apart > FEW_SHADES:
        gap_s = span_s / PLACES
        while len(joined := _joined(kept, gap_s)) > MAX_SHADES and gap_s < span_s:
            gap_s *= 2
    note = f"; faults less than {gap_s:.2g} s apart are shaded as one" if len(joined) < apart else ""
    if len(kinds) > MAX_KINDS:
        note += f"; faults of the first {MAX_KINDS} of {len(kinds):,} kinds are shaded"
    return sorted(joined, key=lambda shade: shade.start_s), note


def _joined(shades: Sequence[Shade], gap_s: float) -> list[Shade]:
    """Joins stretches of one kind and one effect that are at most `gap_s` apart; they are in the order of their start."""
    open_: dict[tuple[str, bool], Shade] = {}
    done = []
    for shade in shades:
        name = shade.kind, shade.effective
        before = open_.get(name)
        if before is None or shade.start_s - before.end_s > gap_s:
            done += [] if before is None else [before]
            open_[name] = shade
        else:
            open_[name] = replace(before, end_s=max(before.end_s, shade.end_s))
    return [*done, *open_.values()]
