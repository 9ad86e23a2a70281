"""The register workload: what is asked of registers, and how the answers are judged.

Registers are independent, so each key is judged by itself, and the worst key decides. A second part asks whether the run could
have shown anything: a run in which no read ever saw another process' write is unknown, however linearizable it is.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from checker.independent import check_keys
from checker.result import operation_json
from harness.op import OpType
from harness.verdict import Part, Verdict
from workloads.register.generators import FinalReads, RegisterGenerator, keys_of
from workloads.register.options import RegisterOptions, Values, parse_mix
from workloads.register.streams import Stream

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness.generator import Generator
    from harness.node import Node
    from harness.op import Op, Operation, Process, Value

MODEL = "cas-register"
CHECK_LIMIT_S = 300.0
MAX_NAMED_KEYS = 20


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
        """Returns the first operations of each stream; what a compare-and-set expects is `last-seen` where only a run knows."""
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

    def check(self, operations: Sequence[Operation]) -> Sequence[Part]:
        """Returns the parts `linearizable` and `reads-saw-writes`."""
        return [_linearizable(operations), _reads_saw_writes(operations)]


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


def _linearizable(operations: Sequence[Operation]) -> Part:
    found = check_keys(MODEL, operations, time_limit=CHECK_LIMIT_S)
    deciding = found.worst
    details: dict[str, Value] = {
        "model": MODEL,
        "operations": found.operations,
        "keys": len(found.keys),
        "analyzers": dict(Counter(result.analyzer for result in found.keys.values())),
        "seconds": found.seconds,
    }
    if found.valid is not Verdict.VALID:
        worst_keys = [key for key, result in found.keys.items() if result.valid is found.valid]
        details[f"{found.valid}_keys"] = worst_keys[:MAX_NAMED_KEYS]
    if found.valid is Verdict.INVALID and deciding is not None:
        details["counterexample"] = {
            "key": found.worst_key,
            "explanation": deciding.explanation,
            "op": operation_json(deciding.op),
            "operations": [operation_json(operation) for operation in deciding.counterexample],
        }
    return Part(name="linearizable", verdict=found.valid, reason=found.explanation, details=details)


def _reads_saw_writes(operations: Sequence[Operation]) -> Part:
    writers: dict[tuple[str | None, Value], Process] = {}
    for operation in operations:
        if operation.f != "read":
            written = operation.value[1] if operation.f == "cas" else operation.value
            writers[operation.key, written] = operation.process
    reads = seen = 0
    for operation in operations:
        if operation.f == "read" and operation.type is OpType.OK:
            reads += 1
            seen += writers.get((operation.key, operation.result), operation.process) != operation.process
    details: dict[str, Value] = {"reads": reads, "of_others": seen}
    name = "reads-saw-writes"
    if not seen:
        reason = f"None of {reads} reads saw a write of another process, so nothing was tested."
        return Part(name=name, verdict=Verdict.UNKNOWN, reason=reason, details=details)
    reason = f"{seen} of {reads} reads saw a write of another process."
    return Part(name=name, verdict=Verdict.VALID, reason=reason, details=details)
