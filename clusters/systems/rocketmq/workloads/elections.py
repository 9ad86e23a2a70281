"""The workload of elections: brokers of a new group run for master, and at most one may win an epoch.

By default no broker sends a heartbeat, so the controller regards all brokers as dead. The first broker that requests an
election becomes master of epoch 1. No other broker can replace it, and the controller elects no broker by itself. With
heartbeats, masters are deposed and elected again in later epochs.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from clusters.systems.rocketmq.workloads.groups import (
    FUNCTIONS,
    HALF,
    GroupWorkload,
    apply_of,
    heartbeat_of,
    ops_per_group_option,
    share_option,
)
from clusters.systems.rocketmq.workloads.parts import epochs_grow, master_in_sync, one_master, stood
from clusters.systems.rocketmq.workloads.uncertain import UncertainGroup
from harness.combinators import KeysInTurn, each_stream, independent, mix
from harness.declare import option
from harness.op import Invocation

if TYPE_CHECKING:
    from harness.combinators import Stream
    from harness.generator import Answer, Asker, Generator


@dataclass(frozen=True, slots=True, kw_only=True)
class ElectOptions:
    """The options of the workload of elections."""

    brokers: int = option(3, "The number of brokers in a group.", low=2, high=1000)
    heartbeat_share: float = share_option("heartbeat", 0.0, more="; with 0, a group keeps its first master")
    apply_share: float = share_option("apply", 0.3, low=0.01)
    replica_share: float = share_option("replica", 0.3)
    ops_per_group: int = ops_per_group_option(40)


class ElectWorkload(GroupWorkload[ElectOptions]):
    """Broker groups whose brokers run for master; see `harness.workload.Workload`.

    A stream is one broker with one id. Each has its own check code, so two streams never own the same id.
    """

    name = "elect"
    summary = "Brokers of independent groups run for master; a model of the group checks every answer."
    Options = ElectOptions
    functions = MappingProxyType({f: FUNCTIONS[f] for f in ("apply", "heartbeat", "elect", "next", "replica", "state")})
    model = "clusters.systems.rocketmq.workloads.uncertain:UncertainGroup"
    rules = UncertainGroup()
    rest = (one_master, master_in_sync, epochs_grow, stood)

    def generator(self, *, seed: int, streams: int) -> Generator:
        """Returns elections, requests for the id, heartbeats, and reads of the group."""
        return each_stream(self._operations, seed=seed, streams=streams)

    def _operations(self, stream: Stream) -> Generator:
        options, broker = self.options, 1 + stream.number % self.options.brokers
        groups = KeysInTurn(stream, options.ops_per_group)

        def apply(_: Asker) -> Invocation:
            stream.skip(1)
            return Invocation("apply", apply_of(broker, stream.number))

        def replica(_: Asker) -> Invocation:
            stream.skip(1)
            return Invocation("replica")

        def elect(_: Asker) -> Invocation:
            return Invocation("elect", {"id": broker, "designate": stream.random() < HALF})

        def heartbeat(_: Asker) -> Invocation:
            stream.skip(1)
            return Invocation("heartbeat", heartbeat_of(broker))

        elections = max(0.0, 1 - options.heartbeat_share - options.apply_share - options.replica_share)
        later = mix(
            stream,
            (options.apply_share, apply),
            (options.replica_share, replica),
            (elections, elect),
            rest=heartbeat,
        )

        def operation(asker: Asker) -> Answer:
            if groups.place:
                return later.ask(asker)
            stream.skip(1)
            return apply(asker)  # the first operation in a group requests the id

        return independent(stream, groups, operation)
