"""What shapes the packets that a node sends: a queueing discipline of its kernel, or the switch between the nodes.

A discipline is at the root of the device that leads to the other nodes, with a handle of Labrys. The switch has a rule for each
link from the node: to each other node, and to this machine. Both draw for each packet, and both count.
"""

from __future__ import annotations

import abc
from collections import Counter
from typing import TYPE_CHECKING

from harness.randomness import SEED_BITS, stream
from nemesis.undo import SHELL_TIMEOUT_S, making, undoing

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from harness.node import Node
    from harness.switch import Rule, Switch
    from harness.world import Pair
    from nemesis.field import Field

HANDLE = "1ab:"
_UNDO = f"""
for dev in $(tc qdisc show | sed -n 's/^qdisc [a-z]* {HANDLE} dev \\([^ ]*\\) root.*/\\1/p'); do
  tc qdisc del dev $dev root handle {HANDLE}
done
[ -z "$(tc qdisc show | grep ' {HANDLE} ')" ]
"""
# The second line of a discipline's statistics ends with `requeues N)`.
_AHEAD = f"tc -s qdisc show | sed -n '/ {HANDLE} / {{ n; s/.*requeues \\([0-9]*\\)).*/\\1/p }}'"


class Shaper(abc.ABC):
    """Shapes what nodes send, for one fault. Its methods block."""

    @property
    @abc.abstractmethod
    def means(self) -> str:
        """Returns what it sets, as a text for errors and records."""

    @abc.abstractmethod
    def set(self, node: Node) -> None:
        """Shapes what a node sends from now on."""

    @abc.abstractmethod
    def remove(self, node: Node) -> None:
        """Ends this. Idempotent."""

    @abc.abstractmethod
    def ahead(self, node: Node) -> int:
        """Returns how many packets of a node were sent ahead of earlier ones so far."""

    @abc.abstractmethod
    def counted(self, node: Node) -> dict[str, int]:
        """Returns what was counted since `set`; empty if nothing counts."""


class Discipline(Shaper):
    """A queueing discipline of the node's kernel."""

    def __init__(self, field: Field, name: str, discipline: str) -> None:
        self._field = field
        self._name = name
        self._discipline = discipline

    @property
    def means(self) -> str:
        """Returns the discipline."""
        return self._discipline

    def set(self, node: Node) -> None:
        """Puts the discipline at the root of the device."""
        peer = next(other for other in self._field.nodes if other.name != node.name)
        effect = (
            f"dev=$(ip -o route get {peer.address} | sed -n 's/.* dev \\([^ ]*\\).*/\\1/p')\n"
            f"tc qdisc add dev $dev root handle {HANDLE} {self._discipline}"
        )
        self._field.shell(node).run(making(self._name, effect=effect, undo=_UNDO), timeout_s=SHELL_TIMEOUT_S)

    def remove(self, node: Node) -> None:
        """Removes the discipline."""
        self._field.shell(node).run(undoing(self._name), timeout_s=SHELL_TIMEOUT_S)

    def ahead(self, node: Node) -> int:
        """Returns how many packets the discipline has sent ahead of earlier ones.

        netem puts such a packet at the head of its queue, and counts it as a requeue (net/sched/sch_netem.c of Linux).
        """
        return sum(map(int, self._field.shell(node).run(_AHEAD, timeout_s=SHELL_TIMEOUT_S).stdout.split()))

    def counted(self, node: Node) -> dict[str, int]:  # noqa: ARG002
        """Returns nothing: the proof rests on the counters of the receivers."""
        return {}


class AtSwitch(Shaper):
    """Rules of the switch for the links from the node: all of them, or those to some nodes."""

    def __init__(
        self, field: Field, name: str, switch: Switch, rule: Callable[[int], Rule], peers: Sequence[str] = ()
    ) -> None:
        self._field = field
        self._name = name
        self._switch = switch
        self._rule = rule
        self._peers = frozenset(peers)
        self._before: dict[str, Counter[str]] = {}

    @property
    def means(self) -> str:
        """Returns that it is the switch."""
        return "rules of the switch"

    def _links(self, node: Node) -> list[Pair]:
        ports = self._peers or self._switch.ports()
        return [(node.name, port) for port in ports if port != node.name]

    def set(self, node: Node) -> None:
        """Sets a rule for each link from the node, each with a seed of its own from the seed of the run."""
        self._before[node.name] = self._total(node)
        seeds = {link: stream(self._field.seed, f"switch/{self._name}/{'/'.join(link)}") for link in self._links(node)}
        self._switch.set({link: self._rule(rng.getrandbits(SEED_BITS)) for link, rng in seeds.items()})

    def remove(self, node: Node) -> None:
        """Takes the rules."""
        self._switch.clear(self._links(node))

    def ahead(self, node: Node) -> int:
        """Returns how many packets of the node the switch has sent ahead of earlier ones."""
        return self._total(node)["ahead"]

    def counted(self, node: Node) -> dict[str, int]:
        """Returns the counters of the links from the node, as sums since the rules were set."""
        counts = self._total(node)
        counts.subtract(self._before[node.name])
        return {name: count for name, count in sorted(counts.items()) if count and name != "held_max_us"}

    def _total(self, node: Node) -> Counter[str]:
        counts = self._switch.counts()
        total: Counter[str] = Counter()
        for link in self._links(node):
            total.update(counts.get(link, {}))
        return total
