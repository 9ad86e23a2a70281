"""The workload of broker ids: brokers request ids, and at most one broker may own an id."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from clusters.systems.rocketmq.workloads.groups import (
    FUNCTIONS,
    GroupWorkload,
    apply_of,
    ops_per_group_option,
    share_option,
)
from clusters.systems.rocketmq.workloads.parts import contended, one_owner
from harness.combinators import KeysInTurn, each_stream, independent, mix
from harness.declare import option
from harness.op import Invocation

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness.combinators import Stream
    from harness.generator import Asker, Generator


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerIdOptions:
    """The options of the workload of broker ids."""

    ids: int = option(
        5, "The number of ids that brokers request; with fewer ids, brokers contend more.", low=1, high=1000
    )
    next_share: float = share_option("next", 0.3)
    replica_share: float = share_option("replica", 0.1)
    ops_per_group: int = ops_per_group_option(40)


class BrokerIdWorkload(GroupWorkload[BrokerIdOptions]):
    """Broker groups whose brokers contend for ids; see `harness.workload.Workload`.

    A stream is one broker. Each has its own check code, so two streams never own the same id.
    """

    name = "broker-id"
    summary = "Brokers of independent groups request ids; a model of the group checks every answer, also refusals."
    Options = BrokerIdOptions
    functions = MappingProxyType({f: FUNCTIONS[f] for f in ("apply", "next", "replica", "state")})
    rest = (one_owner, contended)

    def generator(self, *, seed: int, streams: int) -> Generator:
        """Returns requests for ids, and reads of the group."""
        return each_stream(self._operations, seed=seed, streams=streams)

    def _operations(self, stream: Stream) -> Generator:
        options = self.options

        def reads(f: str) -> Callable[[Asker], Invocation]:
            def read(_: Asker) -> Invocation:
                stream.skip(1)
                return Invocation(f)

            return read

        def apply(_: Asker) -> Invocation:
            return Invocation("apply", apply_of(1 + stream.below(options.ids), stream.number))

        functions = mix(
            stream, (options.next_share, reads("next")), (options.replica_share, reads("replica")), rest=apply
        )
        return independent(stream, KeysInTurn(stream, options.ops_per_group), functions)
