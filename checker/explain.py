"""Says a verdict in one or two sentences, with processes, values and times.

The patterns and the near-linear analyzers know which operations contradict each other and how; the search knows how the object
may stand before the operation that cannot be. What is unknown is said to be unknown, with how far the search came.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from checker.contradictions import Story, told
from checker.models.base import Inconsistent, NativeModel
from checker.words import did, ended, listed, sentence, span, value_text, what
from harness.op import OpType
from harness.plain import name, one_line
from harness.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from checker.models.base import Model
    from checker.patterns import Pattern
    from checker.result import Analysis
    from checker.words import Instant
    from harness.op import Operation, Value

VALID: Final = "All {operations} operations fit into one order that real time allows."
NOTHING_TESTED: Final = "There are no operations, so nothing was tested."
_STATES: Final = 3
_NAMED: Final = 4
_REASON: Final = 160  # characters of a model's message
_ALONE: Final = frozenset(
    {"value", "s", "pending", "list", "state", "locked?", "owner"}
)  # need no name beside the value
_STATE: Final[Mapping[str, str]] = {
    "register": "the register can only have held ",
    "cas-register": "the register can only have held ",
    "multi-register": "the registers can only have held ",
    "mutex": "the lock can only have been ",
    "owner-mutex": "the lock can only have been ",
    "set": "the set can only have held ",
    "grow-set": "the set can only have held ",
    "counter": "the counter can only have stood at ",
    "fifo-queue": "the queue can only have held ",
    "unordered-queue": "the queue can only have held ",
    "list-append": "the list can only have been ",
    "kv": "the text can only have been ",
}


def explain(
    result: Analysis,
    model: Model,
    core: Sequence[Operation],
    unsuited: str | None,
    *,
    pattern: Pattern | None = None,
    whole: Sequence[Operation] = (),
) -> str:
    """Returns the explanation of a result.

    Args:
        result: The result, but for its explanation.
        model: What the object does.
        core: The operations that the analyzer names.
        unsuited: Why the analyzer that was asked for does not apply.
        pattern: The pattern that the counterexample is.
        whole: All operations of the object, those that failed too; empty if they are not all at hand.
    """
    if result.valid is Verdict.VALID:
        return VALID.format(operations=result.operations)
    if result.valid is Verdict.UNKNOWN:
        return _unknown(result, unsuited)
    if result.op is None:
        return "No order of the operations is possible."
    story = Story(model=model.name, kind=result.kind, core=core, pattern=pattern, whole=whole)
    return told(story) or _refused(result, result.op, model) or _by_search(result, result.op, model)


def _refused(result: Analysis, op: Operation, model: Model) -> str | None:
    """Tells of an operation with the words of a user's own model; None if the states before its return are not known."""
    if isinstance(model, NativeModel):
        return None
    call = model.call(op)
    refusals = [model.step(config.state, call) for config in result.configs]
    reasons = {one_line(each.message).rstrip(".") for each in refusals if isinstance(each, Inconsistent) and each.message}
    if not reasons or not all(isinstance(each, Inconsistent) for each in refusals):
        return None
    shown = " or ".join(name(each, _REASON) for each in sorted(reasons)[:_STATES])
    more = f" or another of {len(reasons) - _STATES} reasons" if len(reasons) > _STATES else ""
    others = {other.invoke_index for config in result.configs for other in config.pending if other is not op}
    count = f"of the {len(others)} operations that were" if len(others) > 1 else "of the operation that was"
    still = f" No effect {count} still open makes it possible." if others else ""
    who = [*span(op), " failed, which"] if op.type is OpType.FAIL else [what(op), " at ", ended(op)]
    return sentence(*who, f" is not possible: {shown}{more}.{still}")


def _by_search(result: Analysis, op: Operation, model: Model) -> str:
    """Tells of an operation that does not fit how the object may stand before its return."""
    what_it_did: list[str | Instant] = [did(op), " at ", ended(op)]
    if op.type is OpType.FAIL:
        what_it_did = [*span(op), " failed"]
    states = sorted({_state_text(config.model) for config in result.configs})
    if not states:
        return sentence(
            *what_it_did, f", but no order of the operations until then is legal for a {model.name} and leads to that."
        )
    shown = " or ".join(states[:_STATES])
    more = f" or one of {len(states) - _STATES} others" if len(states) > _STATES else ""
    held = _STATE.get(model.name, "the object can only have been in the state ")
    pending = sorted({other.invoke_index: other for config in result.configs for other in config.pending}.items())
    others = [other for _, other in pending if other is not op]
    still: list[str | Instant] = [
        ", and no operation that was still open leads to that: ",
        *listed(others, _NAMED),
    ]
    return sentence(*what_it_did, f", but before that {held}{shown}{more}", *(still if others else ()), ".")


def _state_text(state: Mapping[str, Value]) -> str:
    if len(state) != 1 or not _ALONE.issuperset(state):
        return value_text(dict(state)) if state else "nothing"
    [(field, value)] = state.items()
    if field == "locked?":
        return "held" if value else "free"
    if field == "owner":
        return "free" if value is None else f"held by process {value}"
    if field in {"pending", "s"} and not value:
        return "nothing"
    return value_text(value)


def _unknown(result: Analysis, unsuited: str | None) -> str:
    reasons = {
        "timeout": "The time limit ended the search",
        "out-of-memory": "The memory limit ended the search",
        "cancelled": "The search was cancelled",
        "unsuited": f"The algorithm that was asked for does not apply: {unsuited}",
    }
    reached = () if result.op is None else ("; it got as far as ", *span(result.op))
    return sentence(reasons.get(result.cause or "", "The search ended"), *reached, ".")
