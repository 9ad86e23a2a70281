"""Decides whether a history of one object is linearizable; this is the main function of the checker.

Every answer is exact or `unknown`. A valid answer can include its linearization, which independent code replays. An invalid
answer includes a small part of the history that is invalid by itself. A brute force confirms it if it is small enough.
"""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from checker.decide.hints import solve_by_hints
from checker.errors import Disagreement
from checker.explain.counterexample import SHRINK_S, reason
from checker.explain.faithful import there
from checker.explain.hardness import of_objects
from checker.explain.sentences import NOTHING_TESTED, Evidence, explain
from checker.models import Model
from checker.models import model as model_of
from checker.near.necessary import ANALYZER as FLOW
from checker.near.necessary import lack
from checker.result import EMPTY, Analysis
from checker.search.allowance import Allowance
from checker.search.certificate import replay
from checker.search.configurations import configurations, final_paths
from checker.search.encode import Encoded, encode
from checker.search.reach import reach
from checker.search.solving import Limits, positions, solve
from harness.op import OpType
from harness.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from checker._kernel import Cancellation, Outcome, Problem
    from checker.decide.hints import Hints
    from checker.models.base import State
    from harness.op import Operation, Value

# `cross_check` compares the verdict with that of `SECOND_OPINION`, or with `THIRD_OPINION` if that is the same algorithm.
SECOND_OPINION = "wgl"
THIRD_OPINION = "linear"
_CONFIGS_OPERATIONS = 20_000
_CONFIGS_S = 1.0


def analysis(
    model: Model | str,
    operations: Sequence[Operation],
    *,
    algorithm: str = "auto",
    time_limit: float | None = None,
    memory_limit: int | None = None,
    threads: int | None = None,
    certificate: bool = False,
    counterexample: bool = True,
    cross_check: bool = False,
    part: bool = False,
    makers: Sequence[Operation] | None = None,
    empty: Verdict = Verdict.UNKNOWN,
    cancellation: Cancellation | None = None,
) -> Analysis:
    """Decides whether the operations on one object are linearizable.

    Args:
        model: The model of the object, or the name of a built-in model.
        operations: The history; its order is that of `invoke_index` and `complete_index`. Keys are ignored.
        algorithm: `auto`, or one of `checker.search.solving.ALGORITHMS`.
        time_limit: Seconds; None for no limit.
        memory_limit: Bytes for searches; None for half of the available memory.
        threads: None for all cores.
        certificate: Whether to return the linearization of a valid history.
        counterexample: Whether to look for a small invalid part of an invalid history, and to explain it.
        cross_check: Whether to run a second algorithm, and to raise `Disagreement` if its verdict is the opposite.
        part: Whether these are only some operations of the object; then the explanation claims nothing about the others.
        makers: Of a part: operations of the object, with all that write or add a value that an operation of the part observed,
            also failed ones; None if these are not known.
        empty: The verdict if there are no operations: unknown, or valid as in knossos.
        cancellation: Ends the check from another thread.

    Raises:
        ModelError: An operation or an option does not fit the model.
        Disagreement: Two algorithms disagree, or an algorithm and the check of its own answer.
        KernelError: The native part failed.
    """
    limits = Limits(
        algorithm=algorithm,
        time_limit_s=time_limit,
        memory_limit=memory_limit,
        threads=threads,
        cancellation=cancellation,
    )
    chosen = model_of(model) if isinstance(model, str) else model
    began = time.perf_counter()
    if not operations:
        return _untested(chosen, empty)
    encoded = encode(chosen, operations)
    [(outcome, hints)] = solve_by_hints(chosen, [(operations, encoded)], limits, want_order=certificate)
    result = conclude(
        chosen,
        operations,
        encoded,
        outcome,
        certificate=certificate,
        counterexample=counterexample,
        part=part,
        makers=makers,
        hints=hints,
    )
    if cross_check:
        confirm(chosen, operations, encoded, result, limits)
    return replace(result, seconds=time.perf_counter() - began)


def _untested(model: Model, verdict: Verdict) -> Analysis:
    """Returns the result for an object without operations."""
    return Analysis(
        valid=verdict,
        model=model.name,
        analyzer="none",
        operations=0,
        seconds=0.0,
        cause=EMPTY if verdict is Verdict.UNKNOWN else None,
        explanation=NOTHING_TESTED,
    )


def conclude(
    model: Model,
    operations: Sequence[Operation],
    encoded: Encoded,
    outcome: Outcome,
    *,
    certificate: bool,
    counterexample: bool,
    part: bool = False,
    makers: Sequence[Operation] | None = None,
    allowance: Allowance | None = None,
    hints: Hints | None = None,
) -> Analysis:
    """Makes a result from the kernel's outcome, and checks it as far as that is quick.

    Args:
        model: The model of the object.
        operations: The history.
        encoded: The history, encoded for the kernel.
        outcome: The kernel's outcome.
        certificate: See `analysis`.
        counterexample: See `analysis`.
        part: See `analysis`.
        makers: See `analysis`.
        allowance: The budget for a small counterexample; None for `SHRINK_S`.
        hints: What is known about the system's own order.

    Raises:
        Disagreement: The system's own order is legal, but the kernel finds none; or a brute force finds an order.
    """
    verdict = Verdict(outcome["verdict"])
    known = encoded.operations
    op = None if outcome["op"] is None else known[outcome["op"]]
    fields: dict[str, Any] = {
        "valid": verdict,
        "model": model.name,
        "analyzer": outcome["analyzer"],
        "operations": len(operations),
        "seconds": outcome["seconds"],
        "steps": outcome["steps"],
        "op": None if verdict is Verdict.VALID else op,
        "cause": outcome["cause"],
        "hardness": of_objects(model, encoded, outcome),
        "kind": outcome["kind"],
        "configs": configurations(model, known, outcome["configs"]),
    }
    if hints is not None:
        hints = hints.beside(verdict, outcome["analyzer"], operations)
        fields |= {"order_agrees": hints.agrees, "order_reason": hints.reason, "order_against": hints.against}
    if verdict is Verdict.VALID and certificate and outcome["order"] is not None:
        order = tuple(known[i] for i in positions(outcome["order"]))
        replay(model, operations, order)
        fields["certificate"] = order
    core = [known[i] for i in outcome["core"]]
    if verdict is not Verdict.INVALID or op is None:
        result = Analysis(**fields)
        return replace(result, explanation=explain(result, model, Evidence(core=core, unsuited=outcome["unsuited"])))
    fields["previous_ok"] = _previous_ok(operations, op)
    if not counterexample:
        result = Analysis(**fields)
        return replace(result, explanation=explain(result, model, Evidence(core=core)))
    if not outcome["configs"]:
        fields["configs"] = _configurations_before(model, known, op)
    fields["final_paths"] = final_paths(model, fields["configs"], op)
    why = reason(model, encoded, outcome, allowance or Allowance.of(SHRINK_S))
    fields["counterexample"] = why.operations
    fields["culprit"] = why.culprit
    fields["kind"] = why.kind or outcome["kind"]
    result = Analysis(**fields)
    named = why.core if why.kind is not None else core
    evidence = Evidence(
        core=named,
        pattern=why.pattern,
        makers=makers if part else operations,
        small=why.operations,
        refusals=why.refusals,
        final_states=partial(_final_states, model, known, op, part=part),
        value=_lacking(model, encoded, outcome),
    )
    return replace(result, explanation=explain(result, model, evidence))


def _lacking(model: Model, encoded: Encoded, outcome: Outcome) -> Value:
    """Returns the value of a user's own model that was present too early, too often or never; nil if there is none."""
    if outcome["analyzer"] != FLOW or encoded.coder.step is None:
        return None
    found = lack(model, encoded)
    return None if found is None else found.value


def confirm(model: Model, operations: Sequence[Operation], encoded: Encoded, result: Analysis, limits: Limits) -> None:
    """Runs a second algorithm.

    Raises:
        Disagreement: Its verdict is the opposite.
    """
    message = contradiction(model, encoded.problem, result.valid, result.analyzer, limits)
    if message is not None:
        raise Disagreement(message, operations)


def contradiction(model: Model, problem: Problem, verdict: Verdict, analyzer: str, limits: Limits) -> str | None:
    """Runs an algorithm other than `analyzer`, and returns a sentence if it contradicts the verdict; else None."""
    other = THIRD_OPINION if analyzer == SECOND_OPINION else SECOND_OPINION
    [outcome] = solve([problem], replace(limits, algorithm=other))
    second = Verdict(outcome["verdict"])
    if Verdict.UNKNOWN in {verdict, second} or verdict is second:
        return None
    return f"model {model.name}: {analyzer} finds {verdict}, but {outcome['analyzer']} finds {second}"


def _previous_ok(operations: Sequence[Operation], op: Operation) -> Operation | None:
    end = op.complete_index or 0
    before = [
        other
        for other in operations
        if other.type is OpType.OK and other.complete_index is not None and other.complete_index < end
    ]
    return max(before, key=lambda other: other.complete_index or 0, default=None)


def _configurations_before(model: Model, known: Sequence[Operation], op: Operation) -> Any:
    """Returns the configurations before `op` returns, by a search; none if that would take long."""
    end = op.complete_index
    until = [other for other in known if end is not None and other.invoke_index <= end]
    if len(until) > _CONFIGS_OPERATIONS:
        return ()
    encoded = encode(model, until)
    [outcome] = solve([encoded.problem], Allowance.of(_CONFIGS_S).limits("linear"))
    if outcome["verdict"] != "invalid" or outcome["op"] is None or encoded.operations[outcome["op"]] != op:
        return ()
    return configurations(model, encoded.operations, outcome["configs"])


def _final_states(model: Model, known: Sequence[Operation], op: Operation, *, part: bool) -> list[State]:
    """Returns all states in which the history can leave an object before `op` returns; none if they are unknown."""
    if part or len(known) > _CONFIGS_OPERATIONS:
        return []
    encoded = encode(model, known, by_table=True)
    failed = next((i for i, each in enumerate(encoded.operations) if each is op), None)
    if failed is None:
        return []
    found = reach(encoded, there(encoded, failed), failed, Allowance.of(_CONFIGS_S))
    return [encoded.table.state(state) for state in found.states] if found is not None and found.complete else []
