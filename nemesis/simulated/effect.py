"""The base class of effects: an effect is the actor of a fault in a simulated world.

The rules are the same as for real nodes: `prove` measures the effect by other means than those that caused it, and `end`
verifies the healing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from harness.capabilities import SIMULATED_POWER
from nemesis.actor import Actor

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness.op import Value
    from harness.world import World
    from nemesis.fault import Fault


class Effect(Actor):
    """Carries out one fault in one simulated world.

    Attributes:
        NEEDS: The capabilities of simulated nodes that it needs.
        world: The world.
    """

    NEEDS: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, fault: Fault, world: World) -> None:
        super().__init__(fault)
        self.world = world

    @classmethod
    def remembers_syncs(cls, options: Mapping[str, Value]) -> bool:  # noqa: ARG003 - most effects have one answer
        """Returns whether the disks have to remember from the start what programs have synced."""
        return SIMULATED_POWER in cls.NEEDS
