"""The time of the run of a line in a node's log.

A node of the simulator or with pipes writes the time of its world. A real node writes its own time in its own zone; the clock
that was compared before the workload turns it into the time of the run. A run without such a comparison has only the nodes' own
times. Whoever uses them must say so, because their order between two nodes is not known.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from harness.console.plain import name
from harness.node_clocks import RIGHT, Clocks
from harness.units import NS_PER_S
from results.logs.time_stamps import Stamp, stamp_of
from results.record.record import WORLD

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness.node_clocks import NodeClock
    from results.record.record import RunRecord

CLOCK_FAULTS: Final = "clock"
OF_WORLDS: Final = ("sim", "pipes")  # clusters whose nodes write the time of their world
# Sentences about nodes whose clocks were not read.
UNKNOWN: Final = "The clocks of the nodes were not read, so the lines of their logs have no time of the run."
ASSUMED: Final = (
    "The clocks of the nodes were not read: times and order of the lines are those of the nodes, taken as UTC."
)
_WORLD: Final = re.compile(r"(\d{1,9})\.(\d{6})(?: |$)")


@dataclass(frozen=True, slots=True, kw_only=True)
class LogTimes:
    """Reads the times of lines of a run's logs.

    Attributes:
        began_ns: The start of the workload: nanoseconds since 1970, or on the clock of the world.
        of_world: Whether the nodes write the time of their world.
        clocks: The clock of each node that is known.
        otherwise: The clock of each other node; None: its lines have no time.
        notes: Sentences about what is missing or uncertain.
    """

    began_ns: int
    of_world: bool = False
    clocks: Mapping[str, NodeClock] = field(default_factory=dict)
    otherwise: NodeClock | None = None
    notes: Sequence[str] = ()

    def knows(self, node: str) -> bool:
        """Returns whether the lines of a node have a time."""
        return self.of_world or self.otherwise is not None or node in self.clocks

    def stamp(self, node: str, line: str) -> Stamp | None:
        """Returns the time of a line on the run's clock, and where its text begins; None if it has no time."""
        if self.of_world:
            match = _WORLD.match(line)
            if match is None:
                return None
            return Stamp(int(match[1]) * NS_PER_S + int(match[2]) * 1_000 - self.began_ns, match.end())
        clock = self.clocks.get(node, self.otherwise)
        stamp = None if clock is None else stamp_of(line, zone_s=clock.zone_s, near_ns=self.began_ns)
        if clock is None or stamp is None:
            return None
        return Stamp(stamp.time_ns - clock.ahead_ns - self.began_ns, stamp.end)


def log_times(record: RunRecord) -> LogTimes | None:
    """Returns what reads the times of a run's logs; None if the clocks are unknown."""
    if record.clocks is None and record.test.options.get("cluster_kind") in OF_WORLDS:
        return LogTimes(began_ns=world_ns(record), of_world=True)
    known = record.clocks
    if known is None:
        return None
    notes = [f"The clock of {name(node)} is unknown: {name(why, 200)}" for node, why in known.unknown.items()]
    changed = sorted(
        {node for fault in record.faults if fault.planned.kind.startswith(CLOCK_FAULTS) for node in fault.targets}
    )
    if changed:
        notes.append(
            f"A fault changed the clock of {', '.join(map(name, changed))}, so the times of its log may be wrong."
        )
    return LogTimes(began_ns=known.began_ns, clocks=known.nodes, notes=notes)


def all_log_times(record: RunRecord) -> LogTimes:
    """Returns the same, where a node with an unknown clock counts as one whose clock is right and in UTC; a note says so."""
    times = log_times(record)
    if times is not None:
        return replace(times, otherwise=RIGHT)
    began = record.test.started_utc + timedelta(seconds=record.timings.get("ready", 0.0))
    return LogTimes(began_ns=Clocks(began_utc=began).began_ns, otherwise=RIGHT, notes=[ASSUMED])


def world_ns(record: RunRecord) -> int:
    """Returns the time of the world at the start of the workload; 0 if the run ended before it."""
    return round(record.timings.get(WORLD, 0.0) * NS_PER_S)
