"""The parts of a register run's verdict.

Registers are independent, so each key is judged by itself, and the worst key decides. The other parts ask whether the run could
have shown anything: where no read saw another process' write, or a key was never read again after healing, the run is
unknown, however linearizable it is.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from checker.identity import identity
from checker.independent import check_keys
from checker.result import operation_json
from harness.op import FINAL_PHASE, OpType
from harness.verdict import Part, Verdict

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from harness.final_reads import FinalReads
    from harness.op import Operation, Process, Value

MODEL = "cas-register"
CHECK_LIMIT_S = 300.0
MAX_NAMED_KEYS = 20


def linearizable(operations: Sequence[Operation]) -> Part:
    """Says whether the operations on each key are linearizable."""
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


def reads_saw_writes(operations: Sequence[Operation]) -> Part:
    """Says whether any read returned what another process wrote, and no other way round: its own process did not write it."""
    writers: dict[tuple[str | None, Hashable], set[Process]] = {}
    for operation in operations:
        if operation.f != "read":
            written = operation.value[1] if operation.f == "cas" else operation.value
            writers.setdefault((operation.key, identity(written)), set()).add(operation.process)
    reads = seen = 0
    for operation in operations:
        if operation.f == "read" and operation.type is OpType.OK:
            reads += 1
            writing = writers.get((operation.key, identity(operation.result)))
            seen += writing is not None and operation.process not in writing
    details: dict[str, Value] = {"reads": reads, "of_others": seen}
    name = "reads-saw-writes"
    if not seen:
        reason = f"None of {reads} reads saw a write of another process, so nothing was tested."
        return Part(name=name, verdict=Verdict.UNKNOWN, reason=reason, details=details)
    reason = f"{seen} of {reads} reads saw a write of another process."
    return Part(name=name, verdict=Verdict.VALID, reason=reason, details=details)


def final_reads(operations: Sequence[Operation], reads: FinalReads) -> Part:
    """Says whether every key was read after healing, and through which nodes.

    Args:
        operations: All operations of the run.
        reads: What came of the final reads that the test asked for.
    """
    name = "final-reads"
    through: dict[str | None, set[str | None]] = {}
    for operation in operations:
        nodes = through.setdefault(operation.key, set())
        if operation.phase == FINAL_PHASE and operation.type is OpType.OK:
            nodes.add(operation.node)
    unread = [key for key, nodes in through.items() if not nodes]
    by_node = Counter(str(node) for nodes in through.values() for node in nodes)
    details: dict[str, Value] = {
        "keys": len(through),
        "unread": unread[:MAX_NAMED_KEYS],
        "keys_by_node": dict(sorted(by_node.items())),
        "left_out": dict(reads.left_out),
    }
    if reads.missing is not None:
        return Part(name=name, verdict=Verdict.UNKNOWN, reason=reads.missing, details=details)
    if not through:
        reason = "The run touched no key, so none was read after healing."
        return Part(name=name, verdict=Verdict.UNKNOWN, reason=reason, details=details)
    if unread:
        reason = (
            f"{len(unread)} of {len(through)} keys could not be read after healing, so a write lost there was not seen."
        )
        return Part(name=name, verdict=Verdict.UNKNOWN, reason=reason, details=details)
    told = [
        node if by_node[node] == len(through) else f"{node} ({by_node[node]} of {len(through)})"
        for node in dict.fromkeys([*reads.through, *by_node])
    ]
    left_out = "".join(f" {node} was left out: it {why}." for node, why in reads.left_out.items())
    reason = f"All {len(through)} keys were read after healing, through {', '.join(told)}.{left_out}"
    return Part(name=name, verdict=Verdict.VALID, reason=reason, details=details)
