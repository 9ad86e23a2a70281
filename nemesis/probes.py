"""Probes between pairs of nodes: whether a packet arrives, and whether an answer comes back.

If a TCP connection opens or is refused, both directions work. If neither happens until the deadline, at least one direction
does not work. Each probe also sends datagrams, so that the receiver's packet counters show each direction alone. Nodes need
only bash (its /dev/tcp and /dev/udp) and timeout from coreutils.
"""

from __future__ import annotations

import enum
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.slowness import slowed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.node import Node
    from harness.remote import Remote

DISCARD_PORT = 9
FALLBACK_PORT = 22  # for a system without ports
DATAGRAMS = 3
OVERHEAD_S = 10.0


class Answer(enum.StrEnum):
    """How a TCP probe ended."""

    OPEN = "open"  # a process listens on the port
    REFUSED = "refused"  # no process listens, and the node's kernel refused the connection
    SILENT = "silent"  # no answer came until the deadline
    ERROR = "error"  # another error, e.g. no route


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """One probe from a node to another.

    Attributes:
        source: The node that sent it.
        target: The node that it was sent to.
        answer: The result.
        text: The error message of bash; empty if there is none.
    """

    source: str
    target: str
    answer: Answer
    text: str = ""

    @property
    def reached(self) -> bool:
        """Returns whether packets passed in both directions."""
        return self.answer in {Answer.OPEN, Answer.REFUSED}


def probe_from(remote: Remote, targets: Sequence[Node], *, port: int, timeout_s: float) -> list[Probe]:
    """Sends datagrams to every target, and tries to open a TCP connection, to all targets in parallel.

    Args:
        remote: The shell on the sending node.
        targets: The nodes to probe.
        port: The TCP port.
        timeout_s: The time limit of each connection, in seconds, on nodes of normal speed.
    """
    if not targets:
        return []
    lines = [
        f"""(
  for i in {" ".join(map(str, range(DATAGRAMS)))}; do echo labrys > /dev/udp/{node.address}/{DISCARD_PORT}; done 2>/dev/null
  output=$(timeout {slowed(timeout_s):g} bash -c 'exec 3<>/dev/tcp/{node.address}/{port}' 2>&1)
  echo "{node.name} $? $(echo $output)"
) &"""
        for node in targets
    ]
    script = "export LC_ALL=C\n" + "\n".join(lines) + "\nwait\n"
    result = remote.run(f"exec bash -c {shlex.quote(script)}", timeout_s=timeout_s + OVERHEAD_S)
    return parse_probes(remote.node, result.stdout)


def connect_times_ms(
    remote: Remote, targets: Sequence[Node], *, port: int, count: int, timeout_s: float = 2.0
) -> list[float]:
    """Opens `count` connections to each target, one after another. Returns the times of the successful ones."""
    script = f"""export LC_ALL=C
for ((i = 0; i < {count}; i++)); do for a in {" ".join(node.address for node in targets)}; do
  timeout {slowed(timeout_s):g} bash -c 's=$EPOCHREALTIME; exec 3<>/dev/tcp/'$a'/{port} && echo $s $EPOCHREALTIME' 2>/dev/null
done; done; true"""
    limit_s = count * len(targets) * timeout_s + OVERHEAD_S
    lines = remote.run(f"exec bash -c {shlex.quote(script)}", timeout_s=limit_s).stdout.split()
    return [(float(end) - float(start)) * 1000 for start, end in zip(lines[::2], lines[1::2], strict=False)]


def parse_probes(source: str, text: str) -> list[Probe]:
    """Parses the output of the probing script, in lines `<target> <status> <output of bash>`."""
    probes = []
    for line in text.splitlines():
        target, status, *output = line.split(" ", 2)
        words = output[0].strip() if output else ""
        if status == "0":
            answer = Answer.OPEN
        elif status == "124":
            answer = Answer.SILENT
        elif "refused" in words:
            answer = Answer.REFUSED
        elif "timed out" in words:
            answer = Answer.SILENT
        else:
            answer = Answer.ERROR
        probes.append(Probe(source=source, target=target, answer=answer, text=words if answer is Answer.ERROR else ""))
    return sorted(probes, key=lambda probe: probe.target)
