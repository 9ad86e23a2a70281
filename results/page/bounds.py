"""The limits of what a page or a terminal shows of a run. Every omission is visible; results.json and the history have all.

A history may come from anyone. It may have thousands of functions, nodes or faults, and names of half a megabyte. The limits
keep a report within seconds, and within the size that a browser can open.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from harness.console.plain import name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from results.measure.series import Points, Shade

MAX_PANELS = 8
MAX_KINDS = 16
MAX_SHADES = 200
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


def shown_shades(shades: list[Shade]) -> tuple[list[Shade], str]:
    """Returns the faults that a picture shades, in the order of their start, and a note if some are left out."""
    ordered = sorted(shades, key=lambda shade: shade.start_s)
    kinds = list(dict.fromkeys(shade.kind for shade in ordered))[:MAX_KINDS]
    kept = [shade for shade in ordered if shade.kind in kinds][:MAX_SHADES]
    if len(kept) == len(shades):
        return shades, ""
    return kept, f"; the first {len(kept)} of {len(shades):,} faults are shaded"
