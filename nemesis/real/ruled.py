"""Inserts the chain of a fault by packet rules, reads its counters, and removes it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.slowness import slowed
from nemesis import packet_rules
from nemesis.actor import OnNodes
from nemesis.errors import FaultError
from nemesis.fault import sentence
from nemesis.undo import SHELL_TIMEOUT_S, making, undoing

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness.node import Node
    from nemesis.faults.ruled import RuleFault

END_TIMEOUT_S = 20.0


class RulesOnNodes(OnNodes):
    """Carries out a fault by a chain of rules on some nodes."""

    fault: RuleFault

    async def insert(self, wanted: Mapping[str, Sequence[packet_rules.Rule]]) -> None:
        """Inserts the rules of each node, on all of these nodes in parallel."""
        self.fault.in_force = True
        undo = packet_rules.remove(self.fault.id, self._programs)
        scripts = {
            name: making(self.name, effect=packet_rules.insert(self.fault.id, own), undo=undo)
            for name, own in wanted.items()
        }

        def apply(node: Node) -> None:
            self.field.shell(node).run(scripts[node.name], timeout_s=SHELL_TIMEOUT_S)

        await self.act(sorted(wanted), apply, "inserting packet rules")

    def read_counters(self, node: Node) -> list[packet_rules.Counter]:
        """Reads the counters of this fault's chain on a node; empty if the chain is gone."""
        script = packet_rules.show(self.fault.id, self._programs)
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
        self.fault.in_force = False
        return last

    @property
    def _programs(self) -> list[str]:
        return sorted({packet_rules.tool(node) for node in self.field.nodes})
