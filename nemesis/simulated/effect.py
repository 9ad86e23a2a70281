"""The base class of effects: an effect carries out a fault in a simulated world, instead of over SSH.

A fault's class has everything that is the same on all clusters: how it is drawn, its possible targets, and the links that it
cuts. The class attribute `SIMULATED` is the subclass of `Effect` for a simulated world. The rules are the same as for faults:
`prove` measures the effect by other means than those that caused it, and `end` verifies the healing.
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
        targets: The targeted nodes.
    """

    def __init__(self, fault: Fault, world: World) -> None:
        self.fault = fault
        self.world = world
        self.targets = fault.targets

    @abc.abstractmethod
    async def begin(self) -> Begun:
        """Injects the fault on the targets."""

    @abc.abstractmethod
    async def prove(self) -> Proof:
        """Measures the effect."""

    @abc.abstractmethod
    async def end(self) -> Proof | None:
        """Heals, verifies the healing, and may return a proof over the whole duration. Can be called again after an error."""

    def judge(self, bad: Mapping[str, str], good: Mapping[str, str], measured: Mapping[str, Value]) -> Proof:
        """Returns a proof: effective if at least one node shows the effect, and none contradicts it.

        Args:
            bad: For each node without the effect, the contradiction as a clause about the node.
            good: For each node with the effect, the effect as a clause about the node.
            measured: The measurements.
        """
        texts = [f"{node} {text}" for node, text in (*bad.items(), *good.items())]
        texts += [f"{node}: {text}" for node, text in self.fault.problems.items()]
        return Proof(
            effective=bool(good) and not bad, reason=f"{'; '.join(texts) or 'no node was examined'}.", measured=measured
        )
