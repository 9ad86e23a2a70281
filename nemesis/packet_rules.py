"""Packet rules on nodes: a chain of Labrys, a chain for each fault, and their counters.

`INPUT` jumps to `LABRYS`, and `LABRYS` jumps to a chain for each fault, the newest first. Labrys inserts the jump last and
deletes it first. So all rules of a fault take effect, and end, at the same time on a node, and overlapping faults heal
independently. A rule without a target only counts. Labrys never changes other rules.
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.capabilities import IP6TABLES, IPTABLES
from harness.healing import CHAIN
from nemesis.errors import FaultError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from harness.node import Node

WAIT = "-w 5"  # seconds for the lock of the tables
# -A <chain> [-s <address>/<bits>] [...] -c <packets> <bytes> [-j <target>]
_COUNTED = re.compile(r"^-A \S+ -s (?P<source>[0-9a-fA-F.:]+)(?:/\d+)? (?:.* )?-c (?P<packets>\d+) \d+(?P<rest>.*)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One rule of a fault's chain.

    Attributes:
        sources: The nodes whose packets it matches.
        match: Further matches, e.g. `-m statistic ...`.
        drop: Whether it drops packets; otherwise it only counts them.
    """

    sources: Sequence[Node]
    match: str = ""
    drop: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Counter:
    """The counter of a rule.

    Attributes:
        source: The address whose packets it matched, normalized.
        drop: Whether it dropped the packets.
        packets: The number of packets.
    """

    source: str
    drop: bool
    packets: int


def chain(fault_id: int) -> str:
    """Returns the name of a fault's chain."""
    return f"{CHAIN}-{fault_id}"


def tool(node: Node) -> str:
    """Returns the program for a node's address family.

    Raises:
        FaultError: The node's address is not a literal IP address.
    """
    return "ip6tables" if _address(node).version == 6 else "iptables"


def needed_capability(node: Node) -> str:
    """Returns the capability that rules for a node's packets need."""
    return IP6TABLES if tool(node) == "ip6tables" else IPTABLES


def insert(fault_id: int, rules: Iterable[Rule]) -> str:
    """Returns a script that makes a fault's chain and inserts the jump to it; runs under `set -e`."""
    mine = chain(fault_id)
    lines: dict[str, list[str]] = {}
    for rule in rules:
        for program in ("iptables", "ip6tables"):
            sources = ",".join(str(_address(node)) for node in rule.sources if tool(node) == program)
            if sources:
                target = " -j DROP" if rule.drop else ""
                match = f" {rule.match}" if rule.match else ""
                lines.setdefault(program, []).append(f"{program} {WAIT} -A {mine} -s {sources}{match}{target}")
    script = []
    for program, body in lines.items():
        run = f"{program} {WAIT}"
        script += [
            f"{run} -N {CHAIN} 2>/dev/null || true",
            f"{run} -C INPUT -j {CHAIN} 2>/dev/null || {run} -I INPUT 1 -j {CHAIN}",
            f"{run} -N {mine}",
            *body,
            f"{run} -I {CHAIN} 1 -j {mine}",
        ]
    return "\n".join(script)


def remove(fault_id: int, programs: Iterable[str]) -> str:
    """Returns an idempotent script that removes a fault's chain and the jump to it. It fails if the chain is still there."""
    mine = chain(fault_id)
    script = []
    for program in programs:
        run = f"{program} {WAIT}"
        script += [
            f"{run} -D {CHAIN} -j {mine} 2>/dev/null",
            f"{run} -F {mine} 2>/dev/null",
            f"{run} -X {mine} 2>/dev/null",
            f'[ -z "$({run} -S {mine} 2>/dev/null)" ] || exit 1',
        ]
    return "\n".join(script)


def show(fault_id: int, programs: Iterable[str]) -> str:
    """Returns a script that prints a fault's chain with its counters; it prints nothing if the chain is gone."""
    return "\n".join(f"{program} {WAIT} -v -S {chain(fault_id)} 2>/dev/null || true" for program in programs)


def parse_counters(text: str) -> list[Counter]:
    """Parses the counters in the output of `-v -S`."""
    counters = []
    for line in text.splitlines():
        match = _COUNTED.match(line)
        if match:
            source = str(ipaddress.ip_address(match["source"]))
            counters.append(Counter(source=source, drop="-j DROP" in match["rest"], packets=int(match["packets"])))
    return counters


def _address(node: Node) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    try:
        return ipaddress.ip_address(node.address)
    except ValueError:
        raise FaultError(
            f"{node.name}: packet faults need the address of the node in the cluster's network, and {node.address!r} is no "
            "IP address; put the address into the inventory"
        ) from None


def normal(node: Node) -> str:
    """Returns a node's address in the form of `Counter.source`."""
    return str(_address(node))
