"""The base class of partitions: nodes drop each other's packets, by a grudge."""

from __future__ import annotations

import abc
from typing import TYPE_CHECKING, ClassVar

from nemesis.fault import Impact
from nemesis.faults.ruled import RuleFault

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness.faults import PlannedFault
    from harness.op import Value
    from nemesis.fault import Hit
    from nemesis.field import Field
    from nemesis.grudges import Grudge


class Partition(RuleFault, abc.ABC):
    """The base class of partitions. A subclass defines the grudge."""

    EFFECT: ClassVar[str] = "the network was split"
    WHOLE_NODE: ClassVar[str | None] = None
    PROOF: ClassVar[str] = (
        "TCP probes between all pairs of nodes: all probes across the cut fail, and all others succeed; packet counters of "
        "the firewall chain in each direction, which also count packets of the system; again at the end"
    )

    def __init__(self, *, planned: PlannedFault, targets: tuple[str, ...], field: Field) -> None:
        super().__init__(planned=planned, targets=targets, field=field)
        self.grudge = self.grudge_of(self.hit, self.options)

    @classmethod
    @abc.abstractmethod
    def grudge_of(cls, hit: Hit, options: Mapping[str, Value]) -> Grudge:
        """Returns the grudge of a target.

        Args:
            hit: The nodes to partition, and those that the fault hits.
            options: The fault's options.
        """

    @classmethod
    def impact(cls, hit: Hit, options: Mapping[str, Value]) -> Impact:
        """Returns the cut links."""
        return Impact(grudge=cls.grudge_of(hit, options))

    def cut(self) -> Grudge | None:
        """Returns the grudge while its rules may be in place."""
        return self.grudge if self.in_force else None
