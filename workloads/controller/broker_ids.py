"""The workload of broker ids: brokers request ids, and at most one broker may own an id."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar

from workloads.controller.groups import FUNCTIONS, GroupWorkload
from workloads.controller.options import BrokerIdOptions
from workloads.controller.parts import contended, one_owner
from workloads.controller.streams import BrokerIdStream

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness.op import Operation
    from harness.verdict import Part


class BrokerIdWorkload(GroupWorkload):
    """Broker groups whose brokers contend for ids; see `harness.workload.Workload`.

    Attributes:
        name: `broker-id`.
        summary: A description in one line.
        Options: Its options.
        functions: Apply, next, and reads of the group.
    """

    name = "broker-id"
    summary = "Brokers of independent groups request ids; a model of the group checks every answer, also refusals."
    Options = BrokerIdOptions
    functions: ClassVar[Mapping[str, str]] = MappingProxyType(
        {f: FUNCTIONS[f] for f in ("apply", "next", "replica", "state")}
    )

    def __init__(self, options: BrokerIdOptions | None = None) -> None:
        self._options = options or BrokerIdOptions()

    def stream(self, *, seed: int, number: int, streams: int) -> BrokerIdStream:
        """See `GroupWorkload`."""
        return BrokerIdStream(self._options, seed=seed, number=number, streams=streams)

    def parts(self, operations: Sequence[Operation]) -> Sequence[Part]:
        """Returns the parts `one-owner` and `contended`."""
        return [one_owner(operations), contended(operations)]
