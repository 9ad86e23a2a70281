"""The register workload: what is asked of registers, and what judges the answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from workloads.register.generators import FinalReads, RegisterGenerator, keys_of
from workloads.register.options import RegisterOptions, Values, parse_mix
from workloads.register.parts import final_reads, linearizable, reads_saw_writes
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
    """

    name = "register"

    def __init__(self, options: RegisterOptions | None = None) -> None:
        self._options = options or RegisterOptions()

    def generator(self, *, seed: int, streams: int) -> Generator:
        """Returns the generator of the main phase, which never ends."""
        return RegisterGenerator(self._options, seed=seed, streams=streams)

    def describe_streams(self, *, seed: int, streams: int, count: int) -> Value:
        """Returns the first operations of each stream, as the seed says, in JSON-like data.

        What a compare-and-set on unique values expects is `last-seen`: only the run knows. Where it has seen no value of
        the key yet, it reads instead.
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
        """Returns reads of every key that was touched."""
        return FinalReads(keys_of(history))

    def check(self, operations: Sequence[Operation], observed: Observed) -> Sequence[Part]:
        """Returns the parts `linearizable`, `reads-saw-writes` and, if the test asked for such reads, `final-reads`."""
        parts = [linearizable(operations, observed.faults), reads_saw_writes(operations)]
        if observed.final_reads is not None:
            parts.append(final_reads(operations, observed.final_reads))
        return parts


def from_options(options: Mapping[str, Any]) -> RegisterWorkload:
    """Makes the workload of a command line's options."""
    read, write, cas = parse_mix(options["mix"])
    return RegisterWorkload(
        RegisterOptions(
            values=Values(options["values"]),
            read=read,
            write=write,
            cas=cas,
            hot_keys=options["hot_keys"],
            hot_share=options["hot_share"],
            ops_per_key=options["ops_per_key"],
        )
    )
