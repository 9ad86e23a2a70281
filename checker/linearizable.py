"""The parts of a run's verdict that a model decides; a workload with a model returns them from its `check`.

Objects are independent, so each key is checked by itself, and the worst key decides.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from checker.decide.decision import decide
from checker.decide.history import OfObjects
from checker.decide.question import Explaining, Question
from checker.explain.missing import last_missing
from checker.models import find_model, made
from checker.models.blaming import blaming
from checker.search.solving import Limits
from checker.violations import When, count, counterexamples, of_keys, ranked
from harness.about import MEMBER, about_operations
from harness.console.plain import counted_of
from harness.verdict import Part, Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from checker.keyed import KeyedAnalysis
    from checker.models import Model
    from checker.violations import Violation
    from harness.counterexample import Counterexample
    from harness.faults import FaultRecord
    from harness.op import Operation, Value

PART: Final = "linearizable"
ORDER_PART: Final = "order-agrees"
CHECK_LIMIT_S: Final = 300.0
MAX_NAMED_KEYS: Final = 20
MAX_EXPLAINED: Final = 100
MAX_LISTED_KEYS: Final = 10_000
FURTHER: Final = "further"  # the member of a part's details that has the invalid keys without a counterexample
MISSING: Final = (
    "missing"  # the member that has the last acknowledged operation which the counterexample's answer lacks
)
EXPLAIN_S: Final = 30.0


def linearizability(
    model: Model | str, operations: Sequence[Operation], faults: Sequence[FaultRecord] = ()
) -> list[Part]:
    """Decides whether the operations on each key are linearizable, and whether the system's own order is legal.

    Args:
        model: The model of each object; or the name of an installed model, or `module:Class`, as in a workload's `model`.
        operations: All operations of the run.
        faults: The records of its faults. The part shows a violation during or after a fault first.

    Returns:
        The part `linearizable`; and `order-agrees` if operations carry an order.

    Raises:
        ModelError: There is no such model, an operation does not fit it, or its code fails.
    """
    chosen = made(find_model(model, by_place=True)) if isinstance(model, str) else model
    with blaming(type(chosen)):
        question = Question(
            model=chosen,
            limits=Limits(time_limit_s=CHECK_LIMIT_S),
            explaining=Explaining(most=MAX_EXPLAINED, limit_s=EXPLAIN_S),
        )
        keyed = decide(OfObjects.of(operations), question)
        part = _linearizable(chosen, keyed, operations, faults)
    order = order_part(keyed)
    return [part, *([] if order is None else [order])]


def _linearizable(
    model: Model, keyed: KeyedAnalysis, operations: Sequence[Operation], faults: Sequence[FaultRecord]
) -> Part:
    reason = keyed.explanation
    details: dict[str, Value] = {
        "model": keyed.model,
        "operations": keyed.operations,
        "keys": len(keyed.keys),
        "analyzers": dict(Counter(result.analyzer for result in keyed.keys.values())),
        "seconds": keyed.seconds,
    }
    examples: Sequence[Counterexample] = ()
    if keyed.valid is Verdict.UNKNOWN:
        undecided = [key for key, result in keyed.keys.items() if result.valid is Verdict.UNKNOWN]
        details["unknown_keys"] = undecided[:MAX_NAMED_KEYS]
    if keyed.valid is Verdict.INVALID:
        violations = ranked(of_keys(keyed), faults)
        examples = counterexamples(violations[:MAX_EXPLAINED])
        documents = [violation.to_json() for violation in violations[:MAX_EXPLAINED]]
        details["invalid_keys"] = [violation.key for violation in violations[:MAX_LISTED_KEYS]]
        details[FURTHER] = _further(violations[:MAX_LISTED_KEYS])
        details["violations"] = count(violations)
        details["counterexample"], details["counterexamples"] = documents[0], documents
        first = violations[0]
        of_key = [operation for operation in operations if operation.key == first.key]
        missing = last_missing(model, first.operations, first.decisive, of_key)
        if missing is not None:
            details[MISSING] = missing.invoke_index
        reason = _reason(violations, len(keyed.keys), faults)
    return Part(name=PART, verdict=keyed.valid, reason=reason, details=details, counterexamples=examples)


def _further(violations: Sequence[Violation]) -> list[Value]:
    """Returns the violations without a counterexample that have a decisive operation: the key, and the index of its invoke."""
    return [
        [violation.key, violation.decisive.invoke_index]
        for index, violation in enumerate(violations)
        if (index >= MAX_EXPLAINED or not violation.operations) and violation.decisive is not None
    ]


def _reason(violations: Sequence[Violation], keys: int, faults: Sequence[FaultRecord]) -> str:
    """Returns the sentence of the first violation, and the number of violations before, during and after faults."""
    first = violations[0]
    where = "" if first.key is None else f"Key {first.key}: "
    total = f" {counted_of(len(violations), keys, 'key', 'are')} invalid" if keys > 1 else ""
    at = Counter(violation.when for violation in violations)
    if faults and keys > 1:
        times = [f"{at[when]} {when} {'any' if when is When.BEFORE else 'a'} fault" for when in When if at[when]]
        total += f": {', '.join(times)}"
    return f"{where}{first.explanation}{total}{'.' if total else ''}"


def order_part(keyed: KeyedAnalysis) -> Part | None:
    """Returns the part of a run's verdict about the system's own order; None if no operation carries one.

    It is an extra part: the verdict on the operations themselves needs no order.
    """
    agrees = keyed.order_agrees
    if agrees is None:
        return None
    by_verdict: Mapping[Verdict, list[str | None]] = {
        verdict: [key for key, analysis in keyed.keys.items() if analysis.order_agrees is verdict]
        for verdict in Verdict
    }
    details: dict[str, Value] = {str(verdict): len(keys) for verdict, keys in by_verdict.items()}
    if agrees is not Verdict.VALID:
        details["keys"] = by_verdict[agrees][:MAX_NAMED_KEYS]
        about = about_operations(keyed.keys[by_verdict[agrees][0]].order_against)
        if about is not None:
            details[MEMBER] = about.to_json()
    return Part(name=ORDER_PART, verdict=agrees, reason=keyed.order_reason, details=details, extra=True)
