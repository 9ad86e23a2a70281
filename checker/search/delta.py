"""Delta debugging: makes a list smaller as long as a property holds, by leaving out ever smaller pieces.

Zeller and Hildebrandt, *Simplifying and isolating failure-inducing input*, IEEE TSE 28(2), 2002.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from checker.search.allowance import Allowance


def smaller(kept: Sequence[int], op: int, holds: Callable[[list[int]], bool], allowance: Allowance) -> list[int]:
    """Returns a part of a list without most of what the property does not need.

    Args:
        kept: The list; the property holds for it.
        op: The member that stays.
        holds: The property.
        allowance: The budget.
    """
    kept = list(kept)
    size = max(len(kept) // 2, 1)
    while not allowance.is_over():
        first, removed = 0, False
        while first < len(kept) and not allowance.is_over():
            chunk = frozenset(kept[first : first + size])
            trial = [i for i in kept if i == op or i not in chunk]
            if len(trial) < len(kept) and holds(trial):
                kept, removed = trial, True
            else:
                first += size
        if size == 1 and not removed:
            break
        size = max(size // 2, 1)
    return kept
