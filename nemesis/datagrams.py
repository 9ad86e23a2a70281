"""Measures datagrams between nodes: how many of the sent datagrams arrive, how often, and how many are damaged.

Labrys sends datagrams to a port without a listener. The receiving kernel counts each arrival there (`NoPorts`), and damaged
datagrams as checksum errors. These counters do not depend on the packet tables or queueing disciplines that make the fault.
"""

from __future__ import annotations

import math
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nemesis.probes import DISCARD_PORT
from nemesis.undo import SHELL_TIMEOUT_S

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.node import Node
    from harness.remote import Remote

SMALL_BYTES = 8
SIGMAS = 5.0
LEAST_TOLERANCE = 0.05  # of a lost share
_ARRIVED = ("NoPorts", "Udp6NoPorts")
_DAMAGED = ("InCsumErrors", "Udp6InCsumErrors")


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrivals:
    """A node's counters of datagrams.

    Attributes:
        arrived: Undamaged datagrams to ports without a listener.
        damaged: Datagrams with a wrong checksum.
    """

    arrived: int
    damaged: int

    def since(self, before: Arrivals) -> Arrivals:
        """Returns the counts since `before`."""
        return Arrivals(arrived=self.arrived - before.arrived, damaged=self.damaged - before.damaged)


def read_arrivals(remote: Remote) -> Arrivals:
    """Reads a node's counters, as sums over IPv4 and IPv6."""
    script = "cat /proc/net/snmp /proc/net/snmp6 2>/dev/null || cat /proc/net/snmp"
    return parse_arrivals(remote.run(script, timeout_s=SHELL_TIMEOUT_S).stdout)


def parse_arrivals(text: str) -> Arrivals:
    """Parses /proc/net/snmp (a line of names, a line of numbers) and /proc/net/snmp6 (a name and a number in each line)."""
    counters: dict[str, int] = {}
    names: list[str] = []
    for line in text.splitlines():
        words = line.split()
        if words[:1] == ["Udp:"] and not words[1].isdigit():
            names = words[1:]
        elif words[:1] == ["Udp:"]:
            counters.update(zip(names, map(int, words[1:]), strict=False))
        elif len(words) == 2 and words[0] in (*_ARRIVED, *_DAMAGED):
            counters[words[0]] = int(words[1])
    return Arrivals(
        arrived=sum(counters.get(name, 0) for name in _ARRIVED), damaged=sum(counters.get(name, 0) for name in _DAMAGED)
    )


def send(remote: Remote, targets: Sequence[Node], *, count: int, size: int = SMALL_BYTES) -> None:
    """Sends `count` datagrams of `size` bytes from a node to each target, as fast as the node can, one after another."""
    addresses = " ".join(node.address for node in targets)
    script = (
        f"text=$(printf '%{size - 1}s' x)\n"
        f'for ((i = 0; i < {count}; i++)); do for a in {addresses}; do echo "$text" > /dev/udp/$a/{DISCARD_PORT}; done; '
        "done 2>/dev/null\ntrue"
    )
    remote.run(f"exec bash -c {shlex.quote(script)}", timeout_s=SHELL_TIMEOUT_S)


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """The datagrams to one node.

    Attributes:
        sent: The number of datagrams to the node.
        arrived: The number that the node's kernel counted.
    """

    sent: int
    arrived: int

    @property
    def lost(self) -> float:
        """Returns the lost share, from 0 to 1."""
        return 1.0 - min(self.arrived, self.sent) / self.sent if self.sent else 0.0

    def is_near(self, probability: float) -> bool:
        """Returns whether the loss is within five standard deviations of a probability, or within five per cent."""
        tolerance = SIGMAS * math.sqrt(probability * (1 - probability) / max(self.sent, 1))
        return self.sent > 0 and abs(self.lost - probability) <= max(tolerance, LEAST_TOLERANCE)
