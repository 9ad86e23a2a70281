"""Decides histories with the cheapest algorithm first.

Only `auto` works like this; any other `--algorithm` runs alone.

1. A near-linear analyzer decides, if one applies.
2. Necessary conditions of every linearization are checked (`checker.near.necessary`).
3. A rule for a family decides, if one applies (`checker.near.rules`). Rules that walk take turns with the search.
4. The search decides. If it takes long on a user's own model, Labrys looks for a small reason at the furthest return that it
   reached (`checker.search.relaxing`). All earlier returns are explained, so if there is a reason, this is the first return
   after which no linearization is left. If there is none, the search starts again with more time. After three such turns,
   it has all the remaining time.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Protocol

from checker._kernel import Config
from checker.near.elements import is_connected
from checker.near.necessary import ANALYZER, SEARCH, lack
from checker.near.rules import by_rule, by_walk, has_walk
from checker.search.allowance import Allowance
from checker.search.encode import encode
from checker.search.relaxing import ANALYZER as RELAXED
from checker.search.relaxing import smallest
from checker.search.solving import AUTO, LEAST_S, Limits, solve
from checker.search.solving import outcome as made

if TYPE_CHECKING:
    from collections.abc import Sequence

    from checker._kernel import Outcome, Problem
    from checker.models import Model
    from checker.near.necessary import Lack
    from checker.search.encode import Encoded, Events
    from harness.op import Operation

_NEAR: Final = "zones"
_SEARCH: Final = "search"
# For each history, by turns: the processor time of the search, and then of that for a reason; the last one has all the rest.
_TURNS: Final = ((0.5, 1.0), (4.0, 4.0), (32.0, 16.0), (None, 0.0))
# For histories that a rule can walk through, by turns: the processor time of the search of all, and then of each walk.
_WALKS: Final = ((0.1, 2.0), (4.0, 60.0))
_LEAST_SEARCH_S: Final = 0.01  # the share of a history, if there are many
_EARLIER_S: Final = 0.3  # how much processor time to search for a return before that of a violated condition


class CodedKey(Protocol):
    """The columns of a key: a history of one object without a verdict so far.

    Attributes:
        problem: The history for the kernel.
        own: Whether the model is a user's own.
        events: The history by classes; computed on first use.
    """

    @property
    def problem(self) -> Problem: ...  # noqa: D102 - see the class

    @property
    def own(self) -> bool: ...  # noqa: D102

    @property
    def events(self) -> Events: ...  # noqa: D102

    def end(self, op: int) -> int:
        """Returns the end of an operation."""

    def lack(self) -> Lack | None:
        """Returns a violated necessary condition; see `checker.near.necessary.lack`."""

    def before(self, end: int) -> tuple[Problem, Sequence[int]]:
        """Returns the operations that began before a moment, with their state right before it, and their positions."""

    def reason(self, op: int, allowance: Allowance) -> list[int] | None:
        """Returns a small reason; see `checker.search.relaxing.smallest`."""


@dataclass(frozen=True, slots=True)
class Objects:
    """The columns of operations that are objects.

    Attributes:
        model: The model of the object.
        operations: All operations of the key.
        encoded: Those that matter, for the kernel.
    """

    model: Model
    operations: Sequence[Operation]
    encoded: Encoded

    @classmethod
    def of(cls, model: Model, operations: Sequence[Operation]) -> Objects:
        """Encodes the operations of an object.

        Raises:
            ModelError: An operation does not belong to the model.
        """
        return cls(model, operations, encode(model, operations))

    @property
    def problem(self) -> Problem:
        """See `CodedKey`."""
        return self.encoded.problem

    @property
    def own(self) -> bool:
        """See `CodedKey`."""
        return self.encoded.coder.step is not None

    def end(self, op: int) -> int:
        """See `CodedKey`."""
        return self.encoded.ends[op]

    def lack(self) -> Lack | None:
        """See `CodedKey`."""
        return lack(self.model, self.encoded)

    @property
    def events(self) -> Events:
        """See `CodedKey`."""
        return self.encoded.events

    def before(self, end: int) -> tuple[Problem, Sequence[int]]:
        """See `CodedKey`."""
        kept = [i for i, start in enumerate(self.encoded.starts) if start < end]
        return self.encoded.part(kept, end - 1), kept

    def reason(self, op: int, allowance: Allowance) -> list[int] | None:
        """See `CodedKey`."""
        return smallest(self.encoded, op, allowance)


def decide_all(
    histories: Sequence[CodedKey], limits: Limits, *, want_order: bool = False, fail_fast: bool = False
) -> list[Outcome]:
    """Returns the outcome of each history; see `checker.search.solving.solve`.

    Args:
        histories: The histories, all of one model.
        limits: The limits of the check, for all histories together.
        want_order: Whether to return the order of valid histories.
        fail_fast: Whether one invalid history is enough.
    """
    problems = [history.problem for history in histories]
    if limits.algorithm != AUTO:
        return solve(problems, limits, want_order=want_order, fail_fast=fail_fast)
    clock = _Clock(limits)
    outcomes = solve(problems, replace(limits, algorithm=_NEAR), want_order=want_order, fail_fast=fail_fast)
    left = [i for i, outcome in enumerate(outcomes) if outcome.unsuited is not None]
    if fail_fast and any(outcome.verdict == "invalid" for outcome in outcomes):
        return [_cancelled(outcome) if outcome.unsuited is not None else outcome for outcome in outcomes]
    left = _put(outcomes, left, [_lacking(histories[i], clock) for i in left])
    left = _put(outcomes, left, [_ruled(histories[i], clock, want_order=want_order) for i in left])
    hard = [i for i in left if not histories[i].own and has_walk(histories[i].events)]
    walkable = frozenset(hard)
    others = [i for i in left if i not in walkable]
    for search_s, walk_s in _WALKS:
        if not hard:
            break
        wanted = clock.limits(_SEARCH, max(search_s / len(hard), _LEAST_SEARCH_S))
        _put(outcomes, hard, solve([problems[i] for i in hard], wanted, want_order=want_order, fail_fast=fail_fast))
        hard = [i for i in hard if outcomes[i].cause == "timeout" and not clock.is_over()]
        hard = _put(outcomes, hard, [_walked(histories[i], clock, walk_s, want_order=want_order) for i in hard])
    left = sorted([*others, *(i for i in hard if not clock.is_over())])
    for limit_s, reason_s in _TURNS if any(histories[i].own for i in left) else _TURNS[-1:]:
        if not left:
            break
        wanted = clock.limits(_SEARCH, limit_s)
        searched = solve([problems[i] for i in left], wanted, want_order=want_order, fail_fast=fail_fast)
        _put(outcomes, left, searched)
        left = [i for i in left if limit_s is not None and outcomes[i].cause == "timeout" and not clock.is_over()]
        left = _put(outcomes, left, [_reasoned(histories[i], outcomes[i], clock, reason_s) for i in left])
    return outcomes


def _put(outcomes: list[Outcome], places: Sequence[int], decided: Sequence[Outcome | None]) -> list[int]:
    """Stores outcomes at their places, and returns the places without an outcome."""
    for i, outcome in zip(places, decided, strict=True):
        if outcome is not None:
            outcomes[i] = outcome
    return [i for i, outcome in zip(places, decided, strict=True) if outcome is None]


class _Clock:
    """The remaining time of a check."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._end_s = None if limits.time_limit_s is None else time.monotonic() + limits.time_limit_s

    def limits(self, algorithm: str, most_s: float | None) -> Limits:
        """Returns the remaining time, with at most so many seconds of processor time for a history; None for no such limit."""
        left_s = None if self._end_s is None else max(self._end_s - time.monotonic(), LEAST_S)
        return replace(self._limits, algorithm=algorithm, time_limit_s=left_s, processor_limit_s=most_s)

    def is_over(self) -> bool:
        """Returns whether no time is left."""
        return self._end_s is not None and time.monotonic() >= self._end_s


def _cancelled(outcome: Outcome) -> Outcome:
    return made("unknown", outcome.analyzer, cause="cancelled", steps=outcome.steps, seconds=outcome.seconds)


def _lacking(history: CodedKey, clock: _Clock) -> Outcome | None:
    """Returns the outcome of a history that violates a necessary condition; None if it violates none."""
    began_s = time.perf_counter()
    lacking = history.lack()
    if lacking is None:
        return None
    earlier = _earlier(history, lacking.op, clock)
    if earlier is not None:
        return earlier
    seconds = time.perf_counter() - began_s
    return made("invalid", ANALYZER, op=lacking.op, kind=lacking.kind, core=lacking.core, seconds=seconds)


def _ruled(history: CodedKey, clock: _Clock, *, want_order: bool) -> Outcome | None:
    """Returns the outcome of a history that a rule of its family decides; None if there is none."""
    if history.own:
        return None
    events = history.events
    outcome = by_rule(events, clock.limits(AUTO, None), want_order=want_order)
    if outcome is None or outcome.verdict != "invalid" or outcome.op is None or not is_connected(events):
        return outcome
    return _earlier(history, outcome.op, clock) or outcome


def _walked(history: CodedKey, clock: _Clock, walk_s: float, *, want_order: bool) -> Outcome | None:
    """Returns the outcome of a walk; None if it takes too long."""
    return by_walk(history.events, clock.limits(AUTO, walk_s), want_order=want_order)


def _earlier(history: CodedKey, op: int, clock: _Clock) -> Outcome | None:
    """Searches for an earlier return without a linearization; None if there is none, or time is over."""
    problem, kept = history.before(history.end(op))
    [outcome] = solve([problem], clock.limits(_SEARCH, _EARLIER_S))
    if outcome.verdict != "invalid" or outcome.op is None:
        return None
    configs = [
        Config(
            path=[kept[i] for i in config.path],
            last=None if config.last is None else kept[config.last],
            pending=[kept[i] for i in config.pending],
        )
        for config in outcome.configs
    ]
    return made(
        "invalid",
        outcome.analyzer,
        op=kept[outcome.op],
        kind=outcome.kind,
        core=[kept[i] for i in outcome.core],
        steps=outcome.steps,
        seconds=outcome.seconds,
        configs=configs,
        has_all_configs=outcome.has_all_configs,
        counts=outcome.counts,
    )


def _reasoned(history: CodedKey, outcome: Outcome, clock: _Clock, reason_s: float) -> Outcome | None:
    """Returns the outcome of a history that a small reason at the furthest return refutes; None if there is no reason."""
    if outcome.op is None:
        return None
    core = history.reason(outcome.op, Allowance.within(clock.limits(_SEARCH, reason_s)))
    if core is None:
        return None
    return made(
        "invalid",
        RELAXED,
        op=outcome.op,
        kind=SEARCH,
        core=core,
        steps=outcome.steps,
        seconds=outcome.seconds,
    )
