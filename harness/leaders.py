"""The rule that finds the leader in the reports of the nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable

LEADER: Final = "leader"


class Claim(Protocol):
    """The report of a node about itself, e.g. `harness.system.NodeStatus` or `harness.watch.Sighting`."""

    @property
    def role(self) -> str | None: ...  # noqa: D102 - as in `NodeStatus`

    @property
    def term(self) -> int | None: ...  # noqa: D102


T = TypeVar("T", bound=Claim)


def leaders_by_term(reports: Iterable[T]) -> list[T]:
    """Returns the reports of nodes that claim to lead, the highest term first.

    A deposed leader may claim its old term for a while. A missing term counts as the lowest. Equal terms keep their order.
    """
    leading = [each for each in reports if each.role == LEADER]
    return sorted(leading, key=lambda each: -1 if each.term is None else each.term, reverse=True)


def leader_of(reports: Iterable[T]) -> T | None:
    """Returns the report that claims to lead in the highest term; None if no node claims to lead."""
    return next(iter(leaders_by_term(reports)), None)
