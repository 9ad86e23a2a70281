"""Says a verdict in one or two sentences, with processes, values and times.

The patterns and the near-linear analyzers know which operations contradict each other and how; the search knows how the object
may stand before the operation that cannot be. What is unknown is said to be unknown, with how far the search came.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from checker.contradictions import Story, told
from checker.words import did, ended, listed, sentence, span, value_text
from harness.op import OpType
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
    return told(story) or _by_search(result, result.op, model)


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
    [(name, value)] = state.items()
    if name == "locked?":
        return "held" if value else "free"
    if name == "owner":
        return "free" if value is None else f"held by process {value}"
    if name in {"pending", "s"} and not value:
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
