"""The workload of elections: brokers of a new group run for master, and at most one may win an epoch.

By default no broker sends a heartbeat, so the controller regards all brokers as dead. The first broker that requests an
election becomes master of epoch 1. No other broker can replace it, and the controller elects no broker by itself. With
heartbeats, masters are deposed and elected again in later epochs.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar

from workloads.controller.groups import FUNCTIONS, GroupWorkload
from workloads.controller.options import ElectOptions
from workloads.controller.parts import epochs_grow, master_in_sync, one_master, stood
from workloads.controller.streams import ElectStream
from workloads.controller.uncertain import UncertainGroup

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness.op import Operation
    from harness.verdict import Part


class ElectWorkload(GroupWorkload):
    """Broker groups whose brokers run for master; see `harness.workload.Workload`.

    Attributes:
        name: `elect`.
        summary: A description in one line.
        Options: Its options.
        functions: Apply, heartbeat, elect, and reads of the group.
    """

    model: ClassVar[str | None] = "workloads.controller.uncertain:UncertainGroup"
    rules = UncertainGroup()
    name = "elect"
    summary = "Brokers of independent groups run for master; a model of the group checks every answer."
    Options = ElectOptions
    functions: ClassVar[Mapping[str, str]] = MappingProxyType(
        {f: FUNCTIONS[f] for f in ("apply", "heartbeat", "elect", "next", "replica", "state")}
    )

    def __init__(self, options: ElectOptions | None = None) -> None:
        self._options = options or ElectOptions()

    def stream(self, *, seed: int, number: int, streams: int) -> ElectStream:
        """See `GroupWorkload`."""
        return ElectStream(self._options, seed=seed, number=number, streams=streams)

    def parts(self, operations: Sequence[Operation]) -> Sequence[Part]:
        """Returns the parts `one-master`, `master-in-sync`, `epochs-grow` and `stood`."""
        return [one_master(operations), master_in_sync(operations), epochs_grow(operations), stood(operations)]
