"""The capabilities of a node's kernel and tools, as probed. Labrys refuses a fault whose needs a node lacks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

# The capabilities that a fault may need.
IPTABLES = "iptables"
IP6TABLES = "ip6tables"
IPTABLES_STATISTIC = "iptables-statistic"
NETEM = "netem"
TBF = "tbf"
CLOCK = "clock"  # the node has its own clock, which can be set
FAKETIME = "faketime"  # libfaketime is installed on the node
LOOP_DEVICES = "loop-devices"
DROP_CACHES = "drop-caches"
ROOT = "root"  # commands run as root, or sudo without a password

# What each node is probed for.
PROBED = (IPTABLES, IP6TABLES, IPTABLES_STATISTIC, NETEM, TBF, CLOCK, FAKETIME, LOOP_DEVICES, DROP_CACHES, ROOT)

SWITCH = "switch"  # a process of Labrys can carry the node's packets; see `harness.switch`

NAMES = (*PROBED, SWITCH)

# The capabilities of the system: it reports a leader, it moves the leadership, and its processes are JVMs. No node is probed
# for them, so a node only lacks them if `missing` has a reason.
LEADER = "leader"
TRANSFER = "transfer"
JAVA = "java"

# The disk of a simulated node, which faults can fill and damage. A node only lacks it if `missing` has a reason.
SIMULATED_DISK = "simulated-disk"

# The disk of a simulated node forgets what was not synced, if the node loses its power. Likewise.
SIMULATED_POWER = "simulated-power"

# The files of a simulated node, which a fault can remove. Likewise.
SIMULATED_FILES = "simulated-files"

# The wall clock of a simulated node, which faults can set. Likewise.
SIMULATED_CLOCK = "simulated-clock"

# The system calls of the programs of a simulated node, which can fail. Likewise; and no real node has it.
SIMULATED_CALLS = "simulated-calls"

# The kernel of a simulated node, which gives its programs syncs that take time, and a network with bytes. Likewise; and no real
# node has it.
SIMULATED_KERNEL = "simulated-kernel"

# The clocks of a simulated node and its waits, which can have another speed. Likewise; and no real node has it.
SIMULATED_SPEED = "simulated-speed"

# The steps of the disk of a simulated node, so that faults can begin at one of them. Likewise. A real node has no such name for
# them: a tracer sees them, which needs root.
SIMULATED_STEPS = "simulated-steps"

# The messages between simulated nodes, which show Labrys their shape, so that faults can wait for a rare one. Likewise.
SIMULATED_MESSAGES = "simulated-messages"

# The only capability of a simulated node: the faults that have a simulated effect.
SIMULATED = "simulated"


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """The capabilities of one node.

    Attributes:
        available: The capabilities that worked in the probe.
        missing: Each missing capability, with the reason from the node.
    """

    available: frozenset[str]
    missing: Mapping[str, str] = field(default_factory=dict)
