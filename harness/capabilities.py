"""What a node's kernel and tools can do, as probed; a fault states what it needs and is refused where that is missing."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

# The names a fault may ask for. A probe answers each of them for each node.
IPTABLES = "iptables"
IP6TABLES = "ip6tables"
IPTABLES_STATISTIC = "iptables-statistic"
NETEM = "netem"
TBF = "tbf"
CLOCK = "clock"  # the node's clock is its own, and may be set
FAKETIME = "faketime"  # libfaketime is installed on the node
LOOP_DEVICES = "loop-devices"
DROP_CACHES = "drop-caches"
ROOT = "root"  # commands run as root, or sudo without a password

NAMES = (IPTABLES, IP6TABLES, IPTABLES_STATISTIC, NETEM, TBF, CLOCK, FAKETIME, LOOP_DEVICES, DROP_CACHES, ROOT)

# What a simulated node can do, and all that it can: it has the faults that have an effect in its world.
SIMULATED = "simulated"


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What one node can do.

    Attributes:
        available: The capabilities that the probe saw work.
        missing: Each missing capability, with the reason from the node.
    """

    available: frozenset[str]
    missing: Mapping[str, str] = field(default_factory=dict)
