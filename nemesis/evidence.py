"""The state of the system's process in the node's kernel, independent of the reports of the system.

A pid file can be wrong. But the kernel knows the process of each listening socket, and its state. So ports without a listener
prove a kill, and the state of the process that listens on them proves a pause.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.remote import Remote

TIMEOUT_S = 10.0
STOPPED = "T"  # the state letter of a stopped process in /proc/PID/stat
_LISTEN = "0A"

# Prints "port <port in hex> <inode>" for each TCP socket that listens on one of the ports, and then
# "held <inode> <pid> <state>" for each process of these sockets. A state is the letter after the last ")" of /proc/PID/stat.
_SCRIPT = """
found=$(for f in /proc/net/tcp /proc/net/tcp6; do [ -r $f ] && cat $f; done |
  awk -v want=' WANT ' '$4 == "STATE" { n = split($2, a, ":"); if (index(want, " " a[n] " ")) print a[n], $10 }')
printf '%s\\n' "$found" | sed -n 's/^[0-9A-F]/port &/p'
for inode in $(printf '%s\\n' "$found" | cut -s -d' ' -f2 | sort -u); do
  for pid in $(find /proc/[0-9]*/fd -maxdepth 1 -lname "socket:\\[$inode\\]" 2>/dev/null | cut -d/ -f3 | sort -u); do
    state=$(sed 's/.*) //; s/ .*//' /proc/$pid/stat 2>/dev/null) && echo "held $inode $pid $state"
  done
done
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listeners:
    """The processes that listen on the system's ports.

    Attributes:
        ports: The ports with a listener.
        states: The state letter of each listening process, by pid (`T` is stopped).
    """

    ports: frozenset[int]
    states: dict[int, str]


def find_listeners(remote: Remote, ports: Sequence[int]) -> Listeners:
    """Finds the processes that listen on `ports`, in the node's kernel."""
    want = " ".join(f"{port:04X}" for port in ports)
    result = remote.run(_SCRIPT.replace("WANT", want).replace("STATE", _LISTEN), timeout_s=TIMEOUT_S)
    return parse_listeners(result.stdout)


def parse_listeners(text: str) -> Listeners:
    """Parses the output of the script."""
    listened: set[int] = set()
    states: dict[int, str] = {}
    for line in text.splitlines():
        word, *rest = line.split()
        if word == "port" and len(rest) == 2:
            listened.add(int(rest[0], 16))
        elif word == "held" and len(rest) == 3:
            states[int(rest[1])] = rest[2]
    return Listeners(ports=frozenset(listened), states=states)
