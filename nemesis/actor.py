"""The base classes of actors: an actor carries out one fault, on real nodes or in a simulated world.

A fault is data (`nemesis.fault`), and a kind names its actor for each world (`nemesis.kinds.Kind`). Every actor keeps three
rules. It leaves a note on the node before the effect (see `undo`). `prove` measures the effect by other means than those that
caused it. `end` verifies that the effect is healed.
"""

from __future__ import annotations

import abc
from typing import TYPE_CHECKING

from nemesis.errors import FaultError
from nemesis.fault import brief, sentence

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeVar

    from harness.faults import Begun, Proof
    from harness.node import Node
    from nemesis.fault import Fault
    from nemesis.field import NodeResults

    T = TypeVar("T")


class Actor(abc.ABC):
    """Carries out one fault: on real nodes (`OnNodes`), or in a simulated world (`nemesis.simulated.effect.Effect`).

    Attributes:
        fault: The fault.
        targets: The targeted nodes.
    """

    def __init__(self, fault: Fault) -> None:
        self.fault = fault
        self.targets = fault.targets

    @abc.abstractmethod
    async def begin(self) -> Begun:
        """Injects the fault on the targets."""

    @abc.abstractmethod
    async def prove(self) -> Proof:
        """Measures the effect, right after the begin."""

    async def again(self) -> Proof | None:
        """Measures the effect again, just before the end, so that the proof of a state covers the time between.

        Returns:
            The second measurement. None: the fault is an event, or something else measures its whole time.
        """
        return await self.prove()

    @abc.abstractmethod
    async def end(self) -> Proof | None:
        """Heals, verifies the healing, and may return a proof over the whole duration. Can be called again after an error."""


class OnNodes(Actor):
    """Carries out one fault over the shells of real nodes. It needs no shell if its fault needs nothing from the nodes.

    Attributes:
        field: The nodes, their shells, the system, and the other faults.
        options: The fault's options, with defaults.
        role: The role of the targeted processes; None: the fault affects whole nodes.
        name: The fault's name for messages, and for its notes on nodes.
        problems: What went wrong on a node, by its name, or by the label of its process.
    """

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault)
        self.field = fault.field
        self.options = fault.options
        self.role = fault.role
        self.name = fault.name
        self.problems = fault.problems

    async def act(self, nodes: Sequence[str], action: Callable[[Node], T], what: str) -> NodeResults[T]:
        """Runs a blocking action on several nodes in parallel, and records the failures as problems of this fault.

        Raises:
            FaultError: The action fails on every node.
        """
        outcomes = await self.field.each(nodes, action)
        for node, error in outcomes.failed.items():
            self.problems[node] = f"{what} failed: {brief(error)}"
        if outcomes.failed and not outcomes.done:
            raise FaultError(f"fault {self.name}: {what} failed on every node: {sentence(outcomes.failed)}")
        return outcomes
