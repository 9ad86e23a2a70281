"""The workload of broker ids: brokers ask for ids, and at most one may own an id."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar

from checker.linearizable import linearizability
from harness.combinators import from_function
from harness.op import Invocation
from workloads.controller.model import BrokerGroup
from workloads.controller.options import BrokerIdOptions
from workloads.controller.parts import contended, one_owner
from workloads.controller.streams import Stream
from workloads.finals import UntilRead, final_reads, keys_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness.generator import Asker, Generator
    from harness.node import Node
    from harness.op import Op, Operation, Value
    from harness.verdict import Part
    from harness.workload import Observed


class BrokerIdWorkload:
    """Broker groups whose brokers contend for ids; see `harness.workload.Workload`.

    Attributes:
        name: `broker-id`.
        summary: What clients do.
        Options: Its options.
        functions: Apply, next, and reads of the group.
        model: A broker group, with which `labrys check` decides each key.
    """

    name = "broker-id"
    summary = "Brokers of independent groups ask for ids; a model of the group judges every answer, refusals too."
    Options = BrokerIdOptions
    functions: ClassVar[Mapping[str, str]] = MappingProxyType(
        {
            "apply": "{id, check} -> {code}; code 0: the broker with this check code owns the id, 2014: another one does",
            "next": "null -> {code, next}; the id that is proposed next",
            "replica": "null -> {code, ...}; master and sync set of the group, 2008 where there is no group",
            "state": "null -> {code, known, ...}; the whole group",
        }
    )
    model = "workloads.controller.model:BrokerGroup"

    def __init__(self, options: BrokerIdOptions | None = None) -> None:
        self._options = options or BrokerIdOptions()

    def generator(self, *, seed: int, streams: int) -> Generator:
        """Returns the generator of the main phase, which never ends."""
        drawn = [Stream(self._options, seed=seed, number=number, streams=streams) for number in range(streams)]

        def next_operation(asker: Asker) -> Invocation:
            return drawn[asker.worker].next()

        return from_function(next_operation)

    def describe_streams(self, *, seed: int, streams: int, count: int) -> Value:
        """Returns the first operations of each stream, as the seed says, in JSON-like data."""
        return [self._describe(seed, number, streams, count) for number in range(streams)]

    def _describe(self, seed: int, number: int, streams: int, count: int) -> Value:
        drawn = Stream(self._options, seed=seed, number=number, streams=streams)
        operations = [drawn.next() for _ in range(count)]
        return {
            "stream": number,
            "operations": [{"f": each.f, "key": each.key, "value": each.value} for each in operations],
        }

    def final_generator(self, *, history: Sequence[Op], node: Node) -> Generator:  # noqa: ARG002 - the same for each node
        """Returns reads of the next id and of the whole state, for every group that was touched."""
        return UntilRead(Invocation(f, None, key) for key in keys_of(history) for f in ("next", "state"))

    def check(self, operations: Sequence[Operation], observed: Observed) -> Sequence[Part]:
        """Returns the parts `linearizable`, `one-owner`, `contended` and, if the test asked for them, `final-reads`."""
        parts = [
            *linearizability(BrokerGroup(), operations, observed.faults),
            one_owner(operations),
            contended(operations),
        ]
        if observed.final_reads is not None:
            parts.append(final_reads(operations, observed.final_reads))
        return parts
