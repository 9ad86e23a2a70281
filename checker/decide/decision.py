"""Decides a history over independent keys: each key by itself, on all cores. This is the main function of the checker.

A history is linearizable iff its part on each object is (Herlihy and Wing, 1990), so this is exact.

There are two steps. First the columns of all keys are decided. Then some of the invalid keys are explained, the earliest
violations first, by a small part of their operations.
"""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import checker.decide.deciding as by_key
from checker.decide.concluding import Concluded, contradiction, explained
from checker.decide.hints import solve_by_hints
from checker.errors import Disagreement
from checker.explain.counterexample import SHRINK_S
from checker.explain.effort import effort
from checker.explain.sentences import NOTHING_TESTED
from checker.keyed import KeyedAnalysis
from checker.result import EMPTY, Analysis
from checker.search.allowance import Allowance
from checker.search.solving import LEAST_S
from harness.verdict import Verdict, worst

if TYPE_CHECKING:
    from collections.abc import Sequence

    from checker._kernel import Outcome
    from checker.decide.history import Decidable, Excerpt
    from checker.decide.question import Explaining, Question
    from checker.explain.effort import Effort
    from checker.models import Model
    from checker.search.solving import Limits

_AGAIN_S: Final = 20.0  # to decide the operations of an excerpt
_NEVER: Final = 2**63


def decide(history: Decidable, question: Question) -> KeyedAnalysis:
    """Decides a history.

    Raises:
        ModelError: An operation or an option does not fit the model.
        Disagreement: Two algorithms disagree, or an algorithm and the check of its own answer.
        KernelError: The native part failed.
    """
    began_s = time.perf_counter()
    coded = history.coded(question)
    solved = solve_by_hints(coded, question.limits, want_order=question.certificate, fail_fast=question.fail_fast)
    concluded = [
        Concluded(question.model, key, history.size(index), outcome, hints)
        for index, (key, (outcome, hints)) in enumerate(zip(coded, solved, strict=True))
    ]
    wanted = {index: conclusion.wanted for index, conclusion in enumerate(concluded)}
    known = history.named(
        {index: positions for index, positions in wanted.items() if positions or question.certificate}
    )
    results = [
        conclusion.result(known.get(index, ()), certificate=question.certificate)
        for index, conclusion in enumerate(concluded)
    ]
    invalid = [index for index, conclusion in enumerate(concluded) if conclusion.outcome.verdict == "invalid"]
    invalid.sort(key=lambda index: _failed_at(concluded[index]))
    failed = {index: op for index in invalid if (op := concluded[index].outcome.op) is not None}
    before = history.previous_oks({index: concluded[index].coded.end(op) for index, op in failed.items()})
    budget = _Budget(question.explaining)
    for index in invalid:
        outcome = concluded[index].outcome
        results[index] = replace(results[index], previous_ok=before.get(index))
        if budget.allows():
            excerpt = history.excerpt(index, outcome)
            left = _left(question.limits, began_s)
            results[index] = _explained(question.model, results[index], outcome, excerpt, budget.share(), left)
    if question.cross_check:
        for index, result in enumerate(results):
            _confirm(history, question, index, concluded[index], result)
    verdict = worst(result.valid for result in results) if results else question.empty
    deciding = invalid[0] if invalid else next((i for i, result in enumerate(results) if result.valid is verdict), None)
    return KeyedAnalysis(
        valid=verdict,
        model=question.model.name,
        operations=sum(conclusion.size for conclusion in concluded),
        seconds=time.perf_counter() - began_s,
        keys=dict(zip(history.keys, results, strict=True)),
        worst_key=None if deciding is None else history.keys[deciding],
        search=_effort(history.keys, concluded) if question.explain_model else None,
    )


def of_one(keyed: KeyedAnalysis) -> Analysis:
    """Returns the result for a history of one object."""
    for analysis in keyed.keys.values():
        return replace(analysis, seconds=keyed.seconds)
    return Analysis(
        valid=keyed.valid,
        model=keyed.model,
        analyzer="none",
        operations=0,
        seconds=0.0,
        cause=EMPTY if keyed.valid is Verdict.UNKNOWN else None,
        explanation=NOTHING_TESTED,
    )


def _failed_at(concluded: Concluded) -> int:
    op = concluded.outcome.op
    return _NEVER if op is None else concluded.coded.end(op)


def _explained(  # noqa: PLR0917 - as `explained`
    model: Model, result: Analysis, outcome: Outcome, excerpt: Excerpt, allowance: Allowance, limits: Limits
) -> Analysis:
    """Returns the result of an invalid key with a small part of its operations; without one if there is none.

    Args:
        model: The model of the object.
        result: The result without it.
        outcome: The kernel's outcome for the key.
        excerpt: The operations that show the violation.
        allowance: The budget to make the part small.
        limits: The limits to decide the operations, if other columns were decided.
    """
    if excerpt.coded is not None:
        return explained(model, result, outcome, excerpt, allowance)
    if not excerpt.operations:
        return result
    # Objects show more of a violation than arrays do.
    coded = by_key.Objects.of(model, excerpt.operations)
    [(again, _)] = solve_by_hints([coded], limits)
    if again.verdict != "invalid":
        if excerpt.is_part:
            return result
        again = outcome
    shown = explained(model, result, again, replace(excerpt, coded=coded), allowance)
    return replace(shown, op=result.op)


def _left(limits: Limits, began_s: float) -> Limits:
    """Returns the limits of an excerpt, with the time that is left."""
    left_s = _AGAIN_S
    if limits.time_limit_s is not None:
        left_s = min(left_s, max(limits.time_limit_s - (time.perf_counter() - began_s), LEAST_S))
    return replace(limits, time_limit_s=left_s)


def _confirm(history: Decidable, question: Question, index: int, concluded: Concluded, result: Analysis) -> None:
    """Runs a second algorithm.

    Raises:
        Disagreement: Its verdict is the opposite.
    """
    message = contradiction(question.model, concluded.coded.problem, result.valid, result.analyzer, question.limits)
    if message is not None:
        raise Disagreement(message, history.operations(index))


def _effort(keys: Sequence[str | None], concluded: Sequence[Concluded]) -> Effort | None:
    """Returns the effort of the slowest key; None if there are no keys."""
    slowest = max(range(len(keys)), key=lambda index: concluded[index].outcome.seconds, default=None)
    if slowest is None:
        return None
    coded = concluded[slowest].coded
    assert isinstance(coded, by_key.Objects)  # noqa: S101 - `Question.needs_objects`
    return effort(coded.encoded, concluded[slowest].outcome, keys[slowest])


class _Budget:
    """Chooses the invalid keys that get a small part, in the order of their violations, and the time for each."""

    def __init__(self, explaining: Explaining) -> None:
        """Starts now."""
        self._left = explaining.most
        self._is_first = True
        self._end_s = math.inf if explaining.limit_s is None else time.monotonic() + explaining.limit_s

    def allows(self) -> bool:
        """Returns whether the next key gets one."""
        is_first, self._is_first = self._is_first, False
        self._left -= 1
        return self._left >= 0 and (is_first or time.monotonic() < self._end_s)

    def share(self) -> Allowance:
        """Returns the budget of the next key."""
        return Allowance.of(SHRINK_S, self._end_s)
