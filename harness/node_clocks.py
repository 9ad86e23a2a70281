"""The clocks of the nodes, so that a line of a node's log has a time of the run.

A node writes its own time, in its own zone. Labrys asks each node for both once, before the workload and without faults. The
answer lies between the start and the end of the question, so the offset is known up to half of that time. A fault that changes
a clock later is not in it.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping  # noqa: TC003 - members are read by their annotations
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Final

from msgspec import Meta

from harness.cluster import on_nodes
from harness.console.members import Instant, TimeNs  # noqa: TC001 - members are read by their annotations
from harness.errors import LabrysError, headline
from harness.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from harness.cluster import Cluster
    from harness.daemon import Daemon
    from harness.node import Node
    from harness.remote import Remote

TIMEOUT_S: Final = 5.0
COMMAND: Final = "date '+%s.%N %z'"
_ANSWER: Final = re.compile(r"(\d{1,11})\.(\d{9}) ([+-])(\d\d)(\d\d)\s*")
_MINUTE_S: Final = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeClock:
    """The clock of a node, compared with that of the control node; `results.json` has its members.

    Attributes:
        offset_ns: How far it is ahead.
        uncertain_ns: How far the offset may be wrong in either direction.
        zone_s: The time zone of its logs, in seconds east of UTC: its own one, unless a process writes another one.
    """

    offset_ns: TimeNs
    uncertain_ns: TimeNs
    zone_s: Annotated[int, Meta(ge=-86_400, le=86_400)]

    @property
    def ahead_ns(self) -> int:
        """Returns the offset; 0 if it may be none."""
        return self.offset_ns if abs(self.offset_ns) > self.uncertain_ns else 0


RIGHT: Final = NodeClock(offset_ns=0, uncertain_ns=0, zone_s=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Clocks:
    """The clocks at the start of the workload, for the times of the nodes' logs.

    Attributes:
        began_utc: The control node's time at the start of the workload.
        nodes: The clock of each node that told it.
        unknown: For each other node, the reason.
    """

    began_utc: Instant
    nodes: Mapping[str, NodeClock] = field(default_factory=dict)
    unknown: Mapping[str, str] = field(default_factory=dict)

    @property
    def began_ns(self) -> int:
        """Returns the start of the workload in nanoseconds since 1970."""
        return (self.began_utc - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1) * 1_000


def read_clocks(cluster: Cluster, nodes: Sequence[Node]) -> tuple[dict[str, NodeClock], dict[str, str]]:
    """Asks all nodes at once. Returns the clock of each node, and for each node without one the reason."""
    clocks: dict[str, NodeClock] = {}
    unknown: dict[str, str] = {}
    for name, clock in on_nodes(nodes, lambda node: _read(cluster.remote(node))).items():
        if isinstance(clock, Exception):
            unknown[name] = headline(str(clock)) or type(clock).__name__
        else:
            clocks[name] = clock
    return clocks, unknown


def as_logged(
    clocks: Mapping[str, NodeClock], nodes: Sequence[Node], daemons: Callable[[Node], Sequence[Daemon]]
) -> dict[str, NodeClock]:
    """Returns the clocks with the zones that the processes of the nodes write into their logs, by their `Daemon.log_clock`."""
    by_node = dict(clocks)
    for node in nodes:
        if node.name not in by_node:
            continue
        zones = [daemon.log_clock.utc_offset_s for daemon in daemons(node) if daemon.log_clock is not None]
        zone_s = next((zone for zone in zones if zone is not None), None)
        if zone_s is not None:
            by_node[node.name] = replace(by_node[node.name], zone_s=zone_s)
    return by_node


def _read(remote: Remote) -> NodeClock:
    """Asks twice, because the first answer may wait for a connection, and returns the more certain answer."""
    return min((_ask(remote) for _ in range(2)), key=lambda clock: clock.uncertain_ns)


def _ask(remote: Remote) -> NodeClock:
    before_ns = time.time_ns()
    answer = remote.run(COMMAND, timeout_s=TIMEOUT_S).stdout
    after_ns = time.time_ns()
    match = _ANSWER.fullmatch(answer)
    if match is None:
        raise LabrysError(f"expected a time such as 1767225600.123456789 +0000 from `{COMMAND}`, got {answer[:80]!r}")
    seconds, nanos, sign, hours, minutes = match.groups()
    theirs_ns = int(seconds) * NS_PER_S + int(nanos)
    zone_s = (int(hours) * 60 + int(minutes)) * _MINUTE_S
    return NodeClock(
        offset_ns=theirs_ns - (before_ns + after_ns) // 2,
        uncertain_ns=(after_ns - before_ns) // 2,
        zone_s=-zone_s if sign == "-" else zone_s,
    )
