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
    close = nearest(name, names)
    return f"Did you mean {close!r}?" if close else f"Known are: {', '.join(names)}."


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Returns the known name that is most like an unknown one; None if none is near."""
    return next(iter(difflib.get_close_matches(name, list(known), n=1)), None)
