"""The base class of effects: an effect carries out a fault in a simulated world, instead of over SSH.

A fault's class has everything that is the same on all clusters: how it is drawn, its possible targets, and the links that it
cuts. The class attribute `SIMULATED` is the subclass of `Effect` for a simulated world. The rules are the same as for faults:
`prove` measures the effect by other means than those that caused it, and `end` verifies the healing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from nemesis.fault import Actor

if TYPE_CHECKING:
    from harness.world import World
    from nemesis.fault import Fault


class Effect(Actor):
    """One fault in one simulated world.

    Attributes:
        NEEDS: The capabilities of simulated nodes that it needs.
        fault: The fault, with its targets and options. Its own `begin`, `prove` and `end` are never called.
        world: The world.
        targets: The targeted nodes.
    """

    NEEDS: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, fault: Fault, world: World) -> None:
        self.fault = fault
        self.world = world
        self.targets = fault.targets
