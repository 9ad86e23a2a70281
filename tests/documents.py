"""What the documents of runs say, for tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


def is_proven(fault: Mapping[str, Any]) -> bool:
    """Returns whether the effect of a fault in `results.json` was seen."""
    return fault["proof"] is not None and fault["proof"]["effective"] is True
