"""What a fault does in a simulated world, in place of what it does to real nodes over SSH.

A fault's class says everything about it that is the same everywhere: how it is drawn, whom it can hit, which links it cuts. The
attribute `SIMULATED` of the class names its effect in a simulated world: a class below `Effect`. The law is that of all faults:
`prove` looks at the world by other means than those that changed it, and `end` verifies what it claims to have healed.
"""

from __future__ import annotations

import abc
from typing import TYPE_CHECKING

from harness.faults import Proof

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness.faults import Begun
    from harness.op import Value
    from harness.world import World
    from nemesis.fault import Fault


class Effect(abc.ABC):
    """One fault in one simulated world.

    Attributes:
        fault: The fault, with its targets and options. Its own `begin`, `prove` and `end` are never called.
        world: The world.
        targets: The nodes that are hit.
    """

    def __init__(self, fault: Fault, world: World) -> None:
        self.fault = fault
        self.world = world
        self.targets = fault.targets

    @abc.abstractmethod
    async def begin(self) -> Begun:
        """Breaks the targets."""

    @abc.abstractmethod
    async def prove(self) -> Proof:
        """Measures the effect."""

    @abc.abstractmethod
    async def end(self) -> Proof | None:
        """Heals, verifies that, and may return a proof over the whole duration. Can be called again after an error."""

    def judge(self, bad: Mapping[str, str], good: Mapping[str, str], measured: Mapping[str, Value]) -> Proof:
        """Makes a proof: effective where some node shows the effect, and none contradicts it.

        Args:
            bad: Node to what contradicts the effect there, as a clause about the node.
            good: Node to what shows it there, likewise.
            measured: The data behind it.
        """
        said = [f"{node} {text}" for node, text in (*bad.items(), *good.items())]
        said += [f"{node}: {text}" for node, text in self.fault.problems.items()]
        return Proof(
            effective=bool(good) and not bad, reason=f"{'; '.join(said) or 'no node was examined'}.", measured=measured
        )
