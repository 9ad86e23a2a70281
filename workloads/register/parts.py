"""The parts of a register run's verdict.

Registers are independent, so each key is judged by itself, and the worst key decides. The other parts ask whether the run could
have shown anything: where no read saw another process' write, or a key was never read again after healing, the run is
unknown, however linearizable it is.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from checker.hints import part_of
from checker.identity import identity
from checker.independent import check_keys
from checker.violations import When, count, counterexamples, of_keys, ranked
from harness.op import OpType
from harness.verdict import Part, Verdict

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from checker.independent import KeyedAnalysis
    from checker.violations import Violation
    from harness.counterexample import Counterexample
    from harness.faults import FaultRecord
    from harness.op import Operation, Process, Value

MODEL = "cas-register"
CHECK_LIMIT_S = 300.0
MAX_NAMED_KEYS = 20
MAX_EXPLAINED = 100
MAX_LISTED_KEYS = 10_000
EXPLAIN_S = 30.0


def linearizability(operations: Sequence[Operation], faults: Sequence[FaultRecord] = ()) -> list[Part]:
    """Says whether the operations on each key are linearizable, and whether the order that the system tells is a legal one.

    Args:
        operations: All operations of the run.
        faults: What became of its faults; of several violations the part shows one during or after a fault first.

    Returns:
        The part `linearizable`; and `order-agrees`, if operations carry an order.
    """
    found = check_keys(MODEL, operations, time_limit=CHECK_LIMIT_S, explain=MAX_EXPLAINED, explain_s=EXPLAIN_S)
    order = part_of(found)
    return [_linearizable(found, faults), *([] if order is None else [order])]


def _linearizable(found: KeyedAnalysis, faults: Sequence[FaultRecord]) -> Part:
    reason = found.explanation
    details: dict[str, Value] = {
        "model": MODEL,
        "operations": found.operations,
        "keys": len(found.keys),
        "analyzers": dict(Counter(result.analyzer for result in found.keys.values())),
        "seconds": found.seconds,
    }
    examples: Sequence[Counterexample] = ()
    if found.valid is Verdict.UNKNOWN:
        undecided = [key for key, result in found.keys.items() if result.valid is Verdict.UNKNOWN]
        details["unknown_keys"] = undecided[:MAX_NAMED_KEYS]
    if found.valid is Verdict.INVALID:
        violations = ranked(of_keys(found), faults)
        examples = counterexamples(violations[:MAX_EXPLAINED])
        told = [violation.to_json() for violation in violations[:MAX_EXPLAINED]]
        details["invalid_keys"] = [violation.key for violation in violations[:MAX_LISTED_KEYS]]
        details["violations"] = count(violations)
        details["counterexample"], details["counterexamples"] = told[0], told
        reason = _reason(violations, len(found.keys), faults)
    return Part(name="linearizable", verdict=found.valid, reason=reason, details=details, counterexamples=examples)


def _reason(violations: Sequence[Violation], keys: int, faults: Sequence[FaultRecord]) -> str:
    """Returns the sentence of the first violation, and how many there are at which time."""
    first = violations[0]
    where = "" if first.key is None else f"Key {first.key}: "
    total = f" {len(violations)} of {keys} keys are invalid" if keys > 1 else ""
    at = Counter(violation.when for violation in violations)
    if faults and keys > 1:
        times = [f"{at[when]} {when} {'any' if when is When.BEFORE else 'a'} fault" for when in When if at[when]]
        total += f": {', '.join(times)}"
    return f"{where}{first.explanation}{total}{'.' if total else ''}"


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
