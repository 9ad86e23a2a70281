"""Uses the order that a system itself reports as a proof of linearizability.

Many systems number their operations: by a revision, the index of a log entry, an offset, or the number of a transaction. An
operation may carry that number (`harness.op.Operation.order`). The rule for the operations on one object:

- An operation takes effect after all operations of a lower order.
- Operations of equal order take effect in any order that real time and the model allow. So a read has the order of the last
  change that it observed. An operation that found nothing to change has this order too. The search tries operations that may
  change the state before those that only observe (`Model.observes`).
- An operation without an order takes effect wherever real time and the model allow. If it did not return, it may be left out.

The checker never trusts the numbers. An order that follows the rule, agrees with real time and replays through `Model.step` is
a linearization; `checker.search.certificate` replays it with independent code. If there is no such order, this proves
nothing about the history, and the other algorithms decide. The result then has the verdict, and the fact that the system's
own order is not legal.

If every operation has its own order, this takes O(n log n) and n steps of the model. A search with a budget places operations
without an order (`checker.search.placement`).
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

from checker._kernel import Cancellation
from checker.decide.chained import follow, in_time, is_suited
from checker.decide.deciding import Objects, decide_all
from checker.errors import Disagreement
from checker.models.base import Inconsistent, NativeModel
from checker.models.opcodes import INFINITE
from checker.search.allowance import Allowance
from checker.search.certificate import replay
from checker.search.placement import Placed, end_of, place
from checker.search.solving import AUTO, LEAST_S
from checker.search.solving import outcome as made
from checker.words import sentence, span
from harness.console.plain import one_line
from harness.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from checker._kernel import Outcome
    from checker.decide.deciding import CodedKey
    from checker.models.base import Model
    from checker.search.encode import Encoded
    from checker.search.solving import Limits
    from harness.op import Operation

ANALYZER: Final = "hints"
LIMIT_S: Final = 10.0  # of processor time, for all objects of a history
_MOMENT_S: Final = 0.5  # for the first attempt with the order, and for the first attempt without it
_ORDER: Final = attrgetter("order")
_NOT_LEGAL: Final = "the system's own order is not a legal one: "


@dataclass(frozen=True, slots=True, kw_only=True)
class Hints:
    """What is known about the system's own order.

    Attributes:
        agrees: Valid: the order is legal. Invalid: it is not, whatever the verdict is. Unknown: the budget ended before that.
        reason: One sentence.
        order: The positions of all operations that take effect, in the encoded history; None unless the order is legal.
        seconds: Wall time.
        against: The operations that show that it is not legal; empty if none do so by themselves.
    """

    agrees: Verdict
    reason: str
    order: Sequence[int] | None = None
    seconds: float = 0.0
    against: tuple[Operation, ...] = ()

    @property
    def outcome(self) -> Outcome:
        """Returns a legal order as an outcome of the kernel."""
        assert self.order is not None  # noqa: S101 - only for a legal order
        return made("valid", ANALYZER, order=self.order, steps=len(self.order), seconds=self.seconds)

    def beside(self, verdict: Verdict, analyzer: str, operations: Sequence[Operation]) -> Hints:
        """Returns what is known after another algorithm has decided.

        Raises:
            Disagreement: It finds no legal order, but this one is legal.
        """
        if verdict is not Verdict.INVALID or self.agrees is Verdict.INVALID:
            return self
        if self.agrees is Verdict.VALID:
            raise Disagreement(f"the system's own order is legal, but {analyzer} finds {verdict}", operations)
        return replace(self, agrees=Verdict.INVALID, reason=sentence(_NOT_LEGAL, "no order of the operations is."))


def solve_by_hints(
    keys: Sequence[CodedKey],
    limits: Limits,
    *,
    want_order: bool = False,
    fail_fast: bool = False,
) -> list[tuple[Outcome, Hints | None]]:
    """Decides histories: by the system's own order if it is legal, else by the kernel.

    If a short attempt with the order does not decide, a longer one and the kernel run at the same time, and the first to decide
    a history wins. So an order that is hard to follow costs no time on a history that is easy to decide, and the other way
    round. If both need the interpreter, they would only hinder each other; then the kernel has a short turn first.

    If the user chose an algorithm, it decides in any case, and the system's own order is only examined.

    Args:
        keys: The columns of each object. Only operations that are objects carry an order.
        limits: The limits of the check, for all objects together.
        want_order: Whether the kernel has to return the order of valid histories.
        fail_fast: See `checker.search.solving.solve`.

    Returns:
        For each object its outcome, and what is known about the system's own order; None if no operation carries one.
    """
    kernel = partial(decide_all, want_order=want_order, fail_fast=fail_fast)
    both = _Both(keys, limits, kernel)
    both.attempt(range(len(keys)), min(_MOMENT_S, both.limit_s))
    unclear = [i for i, known in enumerate(both.hints) if known is not None and known.agrees is Verdict.UNKNOWN]
    if unclear and limits.algorithm != AUTO:
        both.attempt(unclear, both.rest_s)
    elif unclear and all(both.runs_in_kernel(i) for i in unclear):
        both.race(unclear)
    elif unclear:
        both.take_turns(unclear)
    if limits.algorithm == AUTO:
        both.take_legal_orders()
    missing = [i for i in range(len(keys)) if i not in both.found]
    if missing:
        both.found |= both.search(missing, both.left())
    return [(both.found[i], known) for i, known in enumerate(both.hints)]


class _Both:
    """Decides histories with the system's order and without it.

    Attributes:
        limit_s: The time for all attempts with the order, in seconds.
        rest_s: That after the first attempt.
        hints: By history, what is known about its order.
        found: By history, the outcome of the kernel.
    """

    def __init__(
        self,
        keys: Sequence[CodedKey],
        limits: Limits,
        kernel: Callable[[list[CodedKey], Limits], list[Outcome]],
    ) -> None:
        self._keys = keys
        self._limits = limits
        self._kernel = kernel
        self._began_s = time.monotonic()
        given_s = limits.time_limit_s
        self.limit_s = LIMIT_S if given_s is None else min(LIMIT_S, given_s / 2)
        self.rest_s = max(self.limit_s - _MOMENT_S, 0.0)
        self._wall_end_s = math.inf if given_s is None else self._began_s + given_s / 2
        self.hints: list[Hints | None] = [None] * len(keys)
        self.found: dict[int, Outcome] = {}

    def left(self) -> Limits:
        """Returns the limits with the remaining time."""
        if self._limits.time_limit_s is None:
            return self._limits
        used_s = time.monotonic() - self._began_s
        return replace(self._limits, time_limit_s=max(self._limits.time_limit_s - used_s, LEAST_S))

    def search(self, places: Sequence[int], limits: Limits) -> dict[int, Outcome]:
        """Returns the outcomes of some histories without their order."""
        return dict(zip(places, self._kernel([self._keys[i] for i in places], limits), strict=True))

    def attempt(self, places: Iterable[int], budget_s: float, cancellation: Cancellation | None = None) -> None:
        """Examines the orders of some histories."""
        allowance = Allowance.of(budget_s, self._wall_end_s, cancellation)
        for i in places:
            key = self._keys[i]
            # If no order is legal, the system's own order is not, and needs no attempt.
            if isinstance(key, Objects) and (i not in self.found or self.found[i].verdict == "valid"):
                self.hints[i] = examine(key.model, key.operations, key.encoded, allowance)

    def race(self, places: Sequence[int]) -> None:
        """Searches in both ways at the same time: without the order in this thread, which gets signals."""
        from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - slow to import, and most checks have no race

        mine = self._limits.cancellation
        orders, search = Cancellation(), Cancellation() if mine is None else mine

        def attempt() -> None:
            self.attempt(places, self.rest_s, orders)
            if mine is None and all(self._is_legal(i) for i in places):
                search.cancel()

        with ThreadPoolExecutor(max_workers=1) as pool:
            running = pool.submit(attempt)
            try:
                self.found |= self.search(places, replace(self.left(), cancellation=search))
            except BaseException:
                orders.cancel()
                raise
            if search.is_cancelled() or all(self.found[i].verdict == "invalid" for i in places):
                orders.cancel()
            running.result()

    def take_turns(self, places: Sequence[int]) -> None:
        """Searches without the order for a moment, so that an easy verdict does not wait, and then with it."""
        given_s = self._limits.time_limit_s
        moment_s = _MOMENT_S if given_s is None else min(_MOMENT_S, given_s / 4)
        outcomes = self.search(places, replace(self._limits, time_limit_s=moment_s))
        self.found |= {i: outcome for i, outcome in outcomes.items() if outcome.verdict != "unknown"}
        self.attempt(places, self.rest_s)

    def take_legal_orders(self) -> None:
        """Takes each legal order as the outcome, unless the kernel contradicts it."""
        for i, known in enumerate(self.hints):
            contradicted = i in self.found and self.found[i].verdict == "invalid"
            if known is not None and self._is_legal(i) and not contradicted:
                self.found[i] = known.outcome

    def runs_in_kernel(self, index: int) -> bool:
        """Returns whether at most one of the searches, with the order and without it, needs the interpreter all the time."""
        key = self._keys[index]
        return not isinstance(key, Objects) or _runs_in_kernel(key.model, key.encoded)

    def _is_legal(self, index: int) -> bool:
        known = self.hints[index]
        return known is not None and known.agrees is Verdict.VALID


def _runs_in_kernel(model: Model, encoded: Encoded) -> bool:
    if isinstance(model, NativeModel):
        return True
    # The search for places asks in Python; the kernel leaves it some histories with other operations that returned.
    others = any(op.order is None and end != INFINITE for op, end in zip(encoded.operations, encoded.ends, strict=True))
    hinted = [i for i, op in enumerate(encoded.operations) if op.order is not None]
    return not others and is_suited(encoded, _steps(model, encoded, hinted))


def examine(model: Model, operations: Sequence[Operation], encoded: Encoded, allowance: Allowance) -> Hints | None:
    """Looks for a linearization in the system's own order.

    Args:
        model: The model of the object.
        operations: The history of one object.
        encoded: The history, encoded for the kernel.
        allowance: The budget.

    Returns:
        What is known; None if no relevant operation has an order.

    Raises:
        CertificateError: The order that was found is not legal: the checker contradicts itself.
    """
    orders = list(map(_ORDER, encoded.operations))
    if orders.count(None) == len(orders):
        return None
    hinted = [i for i, order in enumerate(orders) if order is not None]
    began_s = time.monotonic()
    steps = _steps(model, encoded, hinted)
    hints = _against_time(encoded, steps)
    if hints is None:
        placed = (
            _straight(model, encoded, steps, allowance)
            or follow(model, encoded, steps, allowance)
            or place(model, encoded, steps, allowance)
        )
        hints = _hints(encoded, placed, len(encoded.operations) - len(hinted))
    if hints.order is not None:
        replay(model, operations, [encoded.operations[i] for i in hints.order])
    return replace(hints, seconds=time.monotonic() - began_s)


def _steps(model: Model, encoded: Encoded, hinted: Sequence[int]) -> list[list[int]]:
    """Returns the steps of the order, as positions: operations with the same number, those that may change the state first."""
    observing: dict[Any, bool] = {}

    def place_of(i: int) -> tuple[int, bool]:
        code = encoded.codes[i]
        if code not in observing:
            observing[code] = bool(model.observes(model.call(encoded.operations[i])))
        return encoded.operations[i].order or 0, observing[code]

    by_place = sorted((*place_of(i), encoded.operations[i].invoke_index, i) for i in hinted)
    return [[i for *_, i in step] for _, step in groupby(by_place, key=lambda entry: entry[0])]


def _against_time(encoded: Encoded, steps: Sequence[Sequence[int]]) -> Hints | None:
    """Returns two operations that the order puts against real time; None if there are none."""
    latest: Operation | None = None
    for step in steps:
        for i in step:
            op = encoded.operations[i]
            if latest is not None and end_of(encoded, i) < latest.invoke_index:
                text = sentence(
                    _NOT_LEGAL, "it puts ", *span(latest), f" at {latest.order} before ", *span(op), f" at {op.order}",
                    ", which ended before the first one began.",
                )  # fmt: skip
                return Hints(agrees=Verdict.INVALID, reason=text, against=(op, latest))
        last = max((encoded.operations[i] for i in step), key=attrgetter("invoke_index"))
        if latest is None or last.invoke_index > latest.invoke_index:
            latest = last
    return None


def _straight(model: Model, encoded: Encoded, steps: Sequence[Sequence[int]], allowance: Allowance) -> Placed | None:
    """Replays an order of all operations as it is; None if that does not decide."""
    if sum(map(len, steps)) < len(encoded.operations):
        return None
    state = model.initial
    order = [i for step in steps for i in step]
    if not in_time(encoded, order):
        return None
    for done, i in enumerate(order):
        after = model.step(state, model.call(encoded.operations[i]))
        if isinstance(after, Inconsistent):
            # Another order of operations with the same number may be possible.
            is_forced = all(len(step) == 1 for step in steps)
            return Placed(refused=i, message=after.message, done=done) if is_forced else None
        if allowance.is_over():
            return Placed(exhausted=False)
        state = after
    return Placed(order=order)


def _hints(encoded: Encoded, placed: Placed, unhinted: int) -> Hints:
    total = len(encoded.operations)
    if placed.order is not None:
        text = f"The system's own order, which {total - unhinted:,} of {total:,} operations carry, is a legal one."
        return Hints(agrees=Verdict.VALID, reason=text, order=placed.order)
    stuck = () if placed.refused is None else _refusal(encoded.operations[placed.refused], placed)
    if placed.exhausted:
        tried = f"{f', wherever the {unhinted} operations without an order stand' if unhinted else ''}."
        where = stuck or ("the operations cannot follow it",)
        against = () if placed.refused is None else (encoded.operations[placed.refused],)
        return Hints(agrees=Verdict.INVALID, reason=sentence(_NOT_LEGAL, *where, tried), against=against)
    text = sentence(
        "it is not known whether the system's own order is a legal one: the budget ended",
        *((f", with {unhinted} operations that have no order",) if unhinted else ()),
        *(("; the furthest attempt: ", *stuck) if stuck else ()),
        ".",
    )
    return Hints(agrees=Verdict.UNKNOWN, reason=text)


def _refusal(op: Operation, placed: Placed) -> tuple[Any, ...]:
    where = "" if op.order is None else f", which stands at {op.order},"
    after = "at the beginning" if not placed.done else f"after {placed.done} operations"
    why = f": {one_line(str(placed.message)).rstrip('.')}" if placed.message else ""
    return (f"{after}, ", *span(op), f"{where} is not possible{why}")
