"""Decides which cases of a suite run at the same time.

A simulated case needs one core. A case on a local cluster needs cores and memory for all its nodes, and a busy machine makes
its control node late. Other cases share their machines, so only one of them runs at a time. Cases of different places never
run at the same time, because simulated cases would take the processor time of real nodes.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from harness.memory import free_bytes

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from commands.options.run_options import RunOptions
    from harness.suites.case import Case

BYTES_PER_MIB = 1 << 20
SIMULATED_BYTES = 512 * BYTES_PER_MIB
CORES_PER_CLUSTER = 2
CLUSTER_BYTES = 3072 * BYTES_PER_MIB


class Place(StrEnum):
    """Where a case runs."""

    SIMULATED = "simulated"
    LOCAL = "local"  # on a cluster that the case starts for itself
    SHARED = "shared"  # on machines, or on a cluster, that another case may use


def place_of(options: RunOptions) -> Place:
    """Returns where a test runs."""
    if options.cluster.simulated:
        return Place.SIMULATED
    local = options.cluster.cluster_kind == "local" and not options.place.cluster_name
    return Place.LOCAL if local else Place.SHARED


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What the control node has.

    Attributes:
        cores: The number of cores that this process may use.
        free_bytes: The free memory; None if it is unknown.
    """

    cores: int
    free_bytes: int | None

    @classmethod
    def this(cls) -> Machine:
        """Returns this machine."""
        return cls(cores=len(os.sched_getaffinity(0)), free_bytes=free_bytes())

    def room(self, where: Place) -> int:
        """Returns how many cases of a place this machine can run at the same time; at least one."""
        if where is Place.SHARED:
            return 1
        cores, size = (1, SIMULATED_BYTES) if where is Place.SIMULATED else (CORES_PER_CLUSTER, CLUSTER_BYTES)
        by_memory = self.cores if self.free_bytes is None else self.free_bytes // size
        return max(1, min(self.cores // cores, by_memory))


@dataclass(frozen=True, slots=True, kw_only=True)
class Jobs:
    """The number of cases that run at the same time.

    Attributes:
        places: Where each case runs, by its name; a case without a place is shared.
        most: The value of `--jobs`; None for as many as the machine can run.
        machine: The machine.
    """

    places: Mapping[str, Place] = field(default_factory=dict)
    most: int | None = None
    machine: Machine = field(default_factory=Machine.this)

    def limit(self, case: Case) -> int:
        """Returns how many cases of the same place may run at the same time."""
        where = self._place(case)
        return self.machine.room(where) if self.most is None or where is Place.SHARED else self.most

    def _place(self, case: Case) -> Place:
        return self.places.get(case.name, Place.SHARED)

    def following(self, waiting: Sequence[Case], running: Collection[Case]) -> Case | None:
        """Returns the first waiting case that may begin beside the running ones; None if none may."""
        for case in waiting:
            alike = all(self._place(other) is self._place(case) for other in running)
            if alike and len(running) < self.limit(case):
                return case
        return None

    def at_once(self, cases: Sequence[Case]) -> int:
        """Returns the largest number of these cases that run at the same time."""
        counts = {where: sum(self._place(case) is where for case in cases) for where in Place}
        return max((min(counts[self._place(case)], self.limit(case)) for case in cases), default=0)
