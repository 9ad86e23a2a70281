"""Faults by packet rules: this base class inserts a fault's chain, reads its counters, and removes it."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from harness.capabilities import IPTABLES
from harness.slowness import slowed
from nemesis import packet_rules
from nemesis.errors import FaultError
from nemesis.fault import Fault, sentence
from nemesis.undo import SHELL_TIMEOUT_S, making, undoing

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness.node import Node

END_TIMEOUT_S = 20.0


class RuleFault(Fault):
    """A fault by a chain of rules on some nodes. It is in force while the rules can be in place."""

    LEAST_NODES: ClassVar[int] = 2  # the rules are about packets of other nodes

    @classmethod
    def needs(cls, nodes: Sequence[Node], *, at_role: bool = False) -> frozenset[str]:  # noqa: ARG003
        """Returns the capabilities that packet rules need for the address families of the nodes."""
        return cls.NEEDS | (frozenset(map(packet_rules.needed_capability, nodes)) or {IPTABLES})

    async def insert(self, wanted: Mapping[str, Sequence[packet_rules.Rule]]) -> None:
        """Inserts the rules of each node, on all of these nodes in parallel."""
        self.in_force = True
        undo = packet_rules.remove(self.id, self._programs)
        scripts = {
            name: making(self.name, effect=packet_rules.insert(self.id, own), undo=undo) for name, own in wanted.items()
        }

        def apply(node: Node) -> None:
            self.field.shell(node).run(scripts[node.name], timeout_s=SHELL_TIMEOUT_S)

        await self.act(sorted(wanted), apply, "inserting packet rules")

    def read_counters(self, node: Node) -> list[packet_rules.Counter]:
        """Reads the counters of this fault's chain on a node; empty if the chain is gone."""
        script = packet_rules.show(self.id, self._programs)
        return packet_rules.parse_counters(self.field.shell(node).run(script, timeout_s=SHELL_TIMEOUT_S).stdout)

    async def remove(self, names: Sequence[str]) -> dict[str, list[packet_rules.Counter]]:
        """Reads the counters a last time and removes the rules. It tries again for a while if that fails.

        Returns:
            The last counters of each node.

        Raises:
            FaultError: A node still has the rules, or cannot be reached.
        """
        last: dict[str, list[packet_rules.Counter]] = {}
        failed: dict[str, Exception] = {}

        def undo(node: Node) -> None:
            counters = self.read_counters(node)
            self.field.shell(node).run(undoing(self.name), timeout_s=SHELL_TIMEOUT_S)
            last[node.name] = counters

        async def undone() -> bool:
            failed.clear()
            failed.update((await self.field.each([name for name in names if name not in last], undo)).failed)
            return not failed

        await self.field.until(undone, slowed(END_TIMEOUT_S))
        if failed:
            raise FaultError(f"fault {self.name} is not healed: {sentence(failed)}")
        self.in_force = False
        return last

    @property
    def _programs(self) -> list[str]:
        return sorted({packet_rules.tool(node) for node in self.field.nodes})
