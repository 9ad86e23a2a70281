"""Suggestions for an unknown name."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Returns a suggestion for an error about an unknown name: the nearest known name, or all known names.

    Args:
        name: The unknown name.
        known: The known names.

    Returns:
        E.g. `Did you mean 'pause'?`, or `Known are: kill, pause.`
    """
    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=1)
    return f"Did you mean {close[0]!r}?" if close else f"Known are: {', '.join(names)}."
