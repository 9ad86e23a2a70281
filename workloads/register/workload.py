"""The register workload: its operations and its checks."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar

from checker.linearizable import linearizability
from harness.op import Invocation
from workloads.finals import UntilRead, final_reads, keys_of
from workloads.register.generators import RegisterGenerator
from workloads.register.options import RegisterOptions, Values
from workloads.register.parts import reads_saw_writes
from workloads.register.streams import Stream

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness.generator import Generator
    from harness.node import Node
    from harness.op import Op, Operation, Value
    from harness.verdict import Part
    from harness.workload import Observed


class RegisterWorkload:
    """Reads, writes and compare-and-sets over independent keys; see `harness.workload.Workload`.

    Attributes:
        name: `register`.
        summary: A description in one line.
        Options: Its options.
        functions: Read, write and compare-and-set.
        model: A register with compare-and-set, with which `labrys check` decides each key.
    """

    name = "register"
    summary = "Reads, writes and compare-and-sets on independent registers, checked for linearizability."
    Options = RegisterOptions
    functions: ClassVar[Mapping[str, str]] = MappingProxyType(
        {
            "read": "null -> the value, or null if there is none",
            "write": "a value -> the same",
            "cas": "[expected, new] -> the same; fails if the register does not hold the expected value",
        }
    )
    model = "cas-register"

    def __init__(self, options: RegisterOptions | None = None) -> None:
        self._options = options or RegisterOptions()

    def generator(self, *, seed: int, streams: int) -> Generator:
        """Returns the generator of the main phase, which never ends."""
        return RegisterGenerator(self._options, seed=seed, streams=streams)

    def describe_streams(self, *, seed: int, streams: int, count: int) -> Value:
        """Returns the first operations of each stream as JSON-like data.

        The expected value of a compare-and-set on unique values is `last-seen`, because only the run knows it. Until the run
        has a value of the key, it reads instead.
        """
        return [self._describe(seed, number, streams, count) for number in range(streams)]

    def _describe(self, seed: int, number: int, streams: int, count: int) -> Value:
        stream = Stream(self._options, seed=seed, number=number, streams=streams)
        operations = []
        for draw in (stream.next() for _ in range(count)):
            value: Value = draw.value
            if draw.f == "cas":
                expected = "last-seen" if self._options.values is Values.UNIQUE else draw.expected
                value = [expected, draw.value]
            operations.append({"f": draw.f, "key": draw.key, "value": value})
        return {"stream": number, "operations": operations}

    def final_generator(self, *, history: Sequence[Op], node: Node) -> Generator:  # noqa: ARG002 - the same for each node
        """Returns a read of every key in the history."""
        return UntilRead(Invocation("read", None, key) for key in keys_of(history))

    def check(self, operations: Sequence[Operation], observed: Observed) -> Sequence[Part]:
        """Returns the parts `linearizable` and `reads-saw-writes`.

        If operations have an order, there is also `order-agrees`; if the test has final reads, `final-reads`.
        """
        parts = [*linearizability(self.model, operations, observed.faults), reads_saw_writes(operations)]
        if observed.final_reads is not None:
            parts.append(final_reads(operations, observed.final_reads))
        return parts
