"""The base class of faults by packet rules."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from harness.capabilities import IPTABLES
from nemesis import packet_rules
from nemesis.fault import Fault

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.node import Node


class RuleFault(Fault):
    """A fault by a chain of rules on some nodes. It is in force while the rules can be in place."""

    LEAST_NODES: ClassVar[int] = 2  # the rules are about packets of other nodes

    @classmethod
    def needs(cls, nodes: Sequence[Node], *, at_role: bool = False) -> frozenset[str]:  # noqa: ARG003
        """Returns the capabilities that packet rules need for the address families of the nodes."""
        return cls.NEEDS | (frozenset(map(packet_rules.needed_capability, nodes)) or {IPTABLES})
