"""Explains a verdict in one or two sentences, with processes, values and times.

The patterns and the near-linear analyzers know the contradiction. Otherwise a sentence names the states before the impossible
operation, or the reasons of a user's own model in these states (`checker.search.reach`). It names all of them, or says that
there may be more. An unknown verdict has the position that the search reached.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from checker.explain.contradictions import Contradiction, sentences
from checker.models.base import Inconsistent, NativeModel
from checker.near.necessary import ANALYZER as FLOW
from checker.near.necessary import DUPLICATE, FUTURE, IMPOSSIBLE, SEARCH
from checker.search.configurations import described
from checker.search.reach import Refusals
from checker.words import began, did, ended, listed, sentence, span, value_text, what
from harness.console.plain import counted, name, one_line
from harness.op import OpType
from harness.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from checker.models.base import Model, State
    from checker.near.patterns import Pattern
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
)  # fields whose value needs no name
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
    "list": "the list can only have been ",
    "kv": "the text can only have been ",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """The input of an explanation, besides the result.

    Attributes:
        core: The operations that the analyzer names.
        unsuited: Why the requested analyzer does not apply.
        pattern: The pattern of the counterexample.
        makers: All operations of the object that write or add a value that an operation observed, with failed ones, and perhaps
            others; None if some are not available.
        small: The operations of the counterexample.
        refusals: The reasons of a user's own model to refuse `op`; None if they are unknown.
        final_states: Returns all states in which the history can leave the object right before `op` returns; none if they are
            unknown.
        value: Of a user's own model, the value that was present too early, too often or never. Of an impossible operation, the
            reason.
    """

    core: Sequence[Operation]
    unsuited: str | None = None
    pattern: Pattern | None = None
    makers: Sequence[Operation] | None = None
    small: Sequence[Operation] = ()
    refusals: Refusals | None = None
    final_states: Callable[[], Sequence[State]] = tuple
    value: Value = None


def explain(result: Analysis, model: Model, evidence: Evidence) -> str:
    """Returns the explanation of a result.

    Args:
        result: The result, without its explanation.
        model: The model of the object.
        evidence: The evidence.
    """
    if result.valid is Verdict.VALID:
        return VALID.format(operations=result.operations)
    if result.valid is Verdict.UNKNOWN:
        return _unknown(result, evidence.unsuited)
    if result.op is None:
        return "No order of the operations is possible."
    if not isinstance(model, NativeModel):
        of_own = _from_nowhere(result, result.op, evidence) or _refused(result, result.op, model, evidence)
        return of_own or _by_search(result, result.op, model, evidence)
    contradiction = Contradiction(
        model=model.name, kind=result.kind, core=evidence.core, pattern=evidence.pattern, makers=evidence.makers
    )
    return sentences(contradiction) or _by_search(result, result.op, model, evidence)


def _from_nowhere(result: Analysis, op: Operation, evidence: Evidence) -> str | None:
    """Explains an operation of a user's own model that needs a value that was not present; None if this is not the reason."""
    if result.analyzer != FLOW or result.kind == SEARCH:
        return None
    if result.kind == IMPOSSIBLE:
        why = name(one_line(str(evidence.value)).rstrip("."), _REASON)
        return sentence(f"{what(op)} at ", ended(op), f" is possible in no state: {why}.")
    shown = value_text(evidence.value)
    who: list[str | Instant] = [f"{what(op)} at ", ended(op), f" needs {shown}, but "]
    if result.kind == FUTURE:
        first = evidence.core[0]
        return sentence(*who, f"{what(first)}, the first to make it, began only at ", began(first), ".")
    if result.kind == DUPLICATE:
        return sentence(*who, "by then it had been taken as often as it can have been made.")
    return sentence(*who, "no operation can have made it by then.")


def _refused(result: Analysis, op: Operation, model: Model, evidence: Evidence) -> str | None:
    """Explains an operation with the reasons of a user's own model; None if these are unknown."""
    refusals = evidence.refusals or _refusals_of_configs(result, op, model)
    if refusals is None:
        return None
    who = [*span(op), ", which failed,"] if op.type is OpType.FAIL else [f"{what(op)} at ", ended(op)]
    beside: list[str | Instant] = []
    if 1 < len(evidence.small) <= _NAMED + 1:
        given = [other for other in evidence.small if other is not op]
        after = all(_ended_before(other, op) for other in given)
        beside = [" after " if after else " together with ", *listed(given, _NAMED)]
    shown = _reasons(refusals.shown)
    if refusals.others is None:
        alone = "these operations alone" if beside else "it alone"
        return sentence(*who, " is not possible", *beside, f", whatever the others did. After {alone}: {shown}.")
    more = f" In other orders of all operations: {_reasons(refusals.others)}." if refusals.others else ""
    rest = "" if refusals.complete else " No other order of all operations makes it possible."
    return sentence(*who, " is not possible", *beside, f": {shown}.{more}{rest}")


def _reasons(reasons: Sequence[str]) -> str:
    shown = " or ".join(name(reason, _REASON) for reason in reasons[:_STATES])
    left = len(reasons) - _STATES
    if left <= 0:
        return shown
    return f"{shown} or another of {counted(left, 'reason')}" if left > 1 else f"{shown} or 1 other reason"


def _refusals_of_configs(result: Analysis, op: Operation, model: Model) -> Refusals | None:
    """Returns the reasons in the states that a search has reached; None if it reports none."""
    call = model.call(op)
    refused = [model.step(config.state, call) for config in result.configs]
    reasons = {
        one_line(str(refusal.message)).rstrip(".")
        for refusal in refused
        if isinstance(refusal, Inconsistent) and refusal.message
    }
    return Refusals(shown=tuple(sorted(reasons)), others=()) if reasons else None


def _ended_before(one: Operation, other: Operation) -> bool:
    return one.type is not OpType.INFO and one.complete_index is not None and one.complete_index < other.invoke_index


def _by_search(result: Analysis, op: Operation, model: Model, evidence: Evidence) -> str:
    """Explains an operation that fits no possible state before its return."""
    what_it_did: list[str | Instant] = [did(op), " at ", ended(op)]
    if op.type is OpType.FAIL:
        what_it_did = [*span(op), " failed"]
    states = sorted({_state_text(described(model, state)) for state in evidence.final_states()})
    if not states:
        return sentence(
            *what_it_did, f", but no order of the operations until then is legal for a {model.name} and leads to that."
        )
    shown = " or ".join(states[:_STATES])
    more = f" or one of {len(states) - _STATES} others" if len(states) > _STATES else ""
    intro = _STATE.get(model.name, "the object can only have been in the state ")
    pending = sorted({other.invoke_index: other for config in result.configs for other in config.pending}.items())
    others = [other for _, other in pending if other is not op]
    still: list[str | Instant] = [
        ", and no operation that was still open leads to that: ",
        *listed(others, _NAMED),
    ]
    return sentence(*what_it_did, f", but before that {intro}{shown}{more}", *(still if others else ()), ".")


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
        "unsuited": f"The algorithm does not apply: {unsuited}",
    }
    reached = () if result.op is None else ("; it got as far as ", *span(result.op))
    ended = sentence(reasons.get(result.cause or "", "The search ended"), *reached, ".")
    return " ".join([ended, *(finding.text for finding in result.hardness)])
