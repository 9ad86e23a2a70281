"""Who leads, by what nodes say: the one rule for whoever asks them, watches them, or reads what they once said."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable

LEADER: Final = "leader"


class Claim(Protocol):
    """What a node says about itself, e.g. `harness.system.NodeStatus` or `harness.watch.Sighting`."""

    @property
    def role(self) -> str | None: ...  # noqa: D102 - as in `NodeStatus`

    @property
    def term(self) -> int | None: ...  # noqa: D102


T = TypeVar("T", bound=Claim)


def leaders_by_term(told: Iterable[T]) -> list[T]:
    """Returns those that say they lead, the highest term first.

    A deposed leader may claim its old term for a while. No term counts as lower than any; of one term the first comes first.
    """
    leading = [each for each in told if each.role == LEADER]
    return sorted(leading, key=lambda each: -1 if each.term is None else each.term, reverse=True)


def leader_of(told: Iterable[T]) -> T | None:
    """Returns the one that says it leads in the highest term; None if none says that it leads."""
    return next(iter(leaders_by_term(told)), None)
