"""Suggestions for a name that does not exist."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Returns the tail of an error sentence about an unknown name: the nearest known one, or all of them.

    Args:
        name: What was given.
        known: What would have been understood.

    Returns:
        E.g. `Did you mean 'pause'?`, or `Known are: kill, pause.`
    """
    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=1)
    return f"Did you mean {close[0]!r}?" if close else f"Known are: {', '.join(names)}."
