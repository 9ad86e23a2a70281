"""Users' own models: decided like brute force, refuted by necessary conditions, and explained in their own terms."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from checker.errors import ModelError
from checker.near.necessary import lack
from checker.search import brute, relaxing
from checker.search.allowance import Allowance
from checker.search.configurations import configurations
from checker.search.encode import encode
from checker.search.solving import Limits, solve
from harness.verdict import Verdict
from tests.deciding import analysis, check_keys
from tests.own_models import (
    BoundedStack,
    LeaseLock,
    Liar,
    MaxRegister,
    SilentMaxRegister,
    draw,
    max_history,
    operation,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from checker.models import Call, Model

HISTORIES = 250
OWN: list[Callable[[], Model]] = [MaxRegister, SilentMaxRegister, BoundedStack, LeaseLock]
# Models that no near-linear analyzer decides, or not with repeated values.
NATIVE = [
    "register",
    "cas-register",
    "multi-register",
    "set",
    "counter",
    "fifo-queue",
    "unordered-queue",
    "list",
    "kv",
]


@pytest.mark.parametrize("make", OWN)
def test_an_own_model_is_decided_as_the_brute_force_does(make: Callable[[], Model]) -> None:
    """Verdict, first failing operation, certificate and counterexample are right."""
    random = Random(f"decided {make}")
    seen = set()
    for _ in range(HISTORIES):
        model = make()
        operations = draw(model, random)
        if not operations:
            continue
        result = analysis(model, operations, certificate=True)
        truth = Verdict.VALID if brute.linearizable(model, operations) else Verdict.INVALID
        seen.add(truth)
        assert result.valid is truth, operations
        if truth is Verdict.INVALID:
            plain = analysis(model, operations, algorithm="linear", counterexample=False)
            assert result.op == plain.op, operations
            assert result.culprit == result.op
            assert brute.linearizable(model, result.counterexample) is False, operations
            assert result.explanation
    assert seen == {Verdict.VALID, Verdict.INVALID}


@pytest.mark.parametrize("make", OWN)
def test_a_small_reason_is_never_found_in_a_valid_history(make: Callable[[], Model]) -> None:
    """For any return in question, relaxing loses no linearization of any history."""
    random = Random(f"relaxed {make}")
    found_some = 0
    for _ in range(HISTORIES // 2):
        model = make()
        operations = draw(model, random)
        encoded = encode(model, operations)
        valid = brute.linearizable(model, operations)
        for op, end in enumerate(encoded.ends):
            if operations and encoded.operations[op].complete_index == end:
                kept = relaxing.smallest(encoded, op, Allowance.of(5.0))
                assert not (kept and valid), operations
                if kept:
                    found_some += 1
                    small = [encoded.operations[i] for i in kept]
                    assert brute.linearizable(model, small) is False, operations
    assert found_some > 10


def test_states_that_another_search_has_seen_are_reached_anew() -> None:
    """The search's paths to its states consist of real steps. Otherwise it could find a small reason where none exists."""
    stack = [("push", 1, None), ("push", 0, None), ("pop", None, 0), ("push", 1, None), ("pop", None, 1)]
    spans = [(200, 401), (502, 703), (804, 805), (506, 907), (1008, 1209)]
    operations = [
        operation(index % 2, f, value, start, end, result)
        for index, ((f, value, result), (start, end)) in enumerate(zip(stack, spans, strict=True))
    ]
    operations.sort(key=lambda op: op.invoke_index)
    model = BoundedStack()
    for op in range(len(operations)):
        reasons = relaxing._Reasons(encode(model, operations), op, Allowance.of(5.0))
        reasons.closure([0], sorted(set(reasons._class)))
        reasons._many = True
        assert reasons.smallest() is None
    random = Random("anew")
    for _ in range(HISTORIES // 4):
        operations = draw(model, random)
        if operations:
            reported = []
            for other in (False, True):
                encoded = encode(model, operations)
                if other:
                    solve([encoded.part(range(len(encoded.operations)), None)], Limits(algorithm="wgl"))
                [outcome] = solve([encoded.problem], Limits(algorithm="linear"))
                reported.append(configurations(model, encoded.operations, outcome.configs))
            assert reported[0] == reported[1], operations


@pytest.mark.parametrize("name", [*NATIVE, *(make.__name__ for make in OWN if make is not LeaseLock)])
def test_what_must_hold_holds_in_every_valid_history(draw: Callable[..., Any], name: str) -> None:
    """A missing source is a proof: brute force finds no order up to the named return, and none of the core alone."""
    from tests import own_models  # noqa: PLC0415 - `draw` is a fixture here

    random = Random(f"lack {name}")
    kinds = set()
    for number in range(2 * HISTORIES):
        if name in NATIVE:
            model, operations = draw(name, random, ties=number % 3 == 0)
        else:
            model = getattr(own_models, name)()
            operations = own_models.draw(model, random)
        lacking = lack(model, encode(model, operations))
        if lacking is not None:
            kinds.add(lacking.kind)
            assert brute.linearizable(model, operations) is False, operations
            encoded = encode(model, operations)
            end = encoded.ends[lacking.op]
            assert lacking.op in lacking.core
            until = [i for i, start in enumerate(encoded.starts) if start <= end]
            [outcome] = solve([encoded.part(until, end)], Limits(algorithm="linear"))
            assert outcome.verdict == "invalid", operations
    assert kinds or name in {"SilentMaxRegister", "kv"}


def test_each_condition_names_the_operations_that_show_it() -> None:
    """Phantom, future and duplicate, each in a message with the value and the operations."""
    put, pop = operation(0, "push", 1, 0, 5), operation(1, "pop", None, 6, 7, 1)
    again, late = operation(2, "pop", None, 8, 9, 1), operation(3, "push", 2, 20, 22)
    early = operation(2, "pop", None, 10, 12, 2)
    cases = [
        ([pop], "phantom", "Process 1's pop of nil", "needs 1, but no operation can have made it by then."),
        ([put, early, late], "future", "needs 2", "push of 2, the first to make it, began only at 0.020 s."),
        ([put, pop, again], "duplicate", "needs 1", "by then it had been taken as often as it can have been made."),
    ]
    for operations, kind, *texts in cases:
        result = analysis(BoundedStack(), operations)
        assert (result.valid, result.analyzer, result.kind) == (Verdict.INVALID, "flow", kind)
        for text in texts[1:] if kind == "phantom" else texts:
            assert text in result.explanation


def test_an_earlier_contradiction_goes_before_a_lack() -> None:
    """`op` is the first return at which no linearization is left, even if a missing source is found first."""
    operations = [
        operation(0, "max", 5, 0, 1, 5),
        operation(1, "read", None, 2, 3, 0),
        operation(1, "read", None, 4, 5, 99),
    ]
    result = analysis(MaxRegister(), operations)
    assert (result.valid, result.op) == (Verdict.INVALID, operations[1])
    assert "is not possible after process 0's max of 5" in result.explanation
    assert result.explanation.endswith("the maximum is 5.")


def test_the_history_of_the_issue_is_refuted_and_explained_at_once() -> None:
    """A read of 0 among 2,000 operations of 20 processes: two operations show it, in the model's terms."""
    operations = max_history(Random("issue"), 2_000, wrong=1_000)
    [wrong] = [op for op in operations if op.f == "read" and op.result == 0 and op.invoke_index > 500]
    for model in (MaxRegister(), SilentMaxRegister()):
        result = check_keys(model, operations, time_limit=200).worst
        assert result is not None
        assert (result.valid, result.op, result.culprit) == (Verdict.INVALID, wrong, wrong)
        assert len(result.counterexample) <= 3
        assert brute.linearizable(model, result.counterexample) is False
        assert "the maximum is" in result.explanation


def test_a_reason_that_needs_the_order_of_releases_begins_late() -> None:
    """Two leases at one time: much earlier events are omitted, and the effects of open operations are not guessed."""
    operations = []
    for token in range(1, 40):
        operations.append(operation(0, "acquire", None, 10 * token, 10 * token + 1, token))
        operations.append(operation(0, "release", token, 10 * token + 4, 10 * token + 5))
    operations += [operation(0, "acquire", None, 1000, 1001, 40), operation(1, "acquire", None, 1002, 1003, 41)]
    result = analysis(LeaseLock(), operations)
    assert result.valid is Verdict.INVALID
    assert len(result.counterexample) < 10
    assert "is not possible" in result.explanation


def test_a_flow_that_step_contradicts_is_refused() -> None:
    """A wrong `flow` gives no wrong verdict where brute force can check it."""
    with pytest.raises(ModelError, match="by its `step` it can; correct `flow`"):
        analysis(Liar(), [operation(0, "read", None, 0, 1, 0)])


class Halves(MaxRegister):
    """A maximum that accepts only even numbers."""

    def impossible(self, op: Call) -> str | None:
        """See `Model`."""
        odd = op.f == "read" and op.ok and op.result % 2
        return "all values are even" if odd else None


def test_an_operation_that_no_state_allows_is_found_before_any_search() -> None:
    """The first of them to return is named, in the model's terms."""
    operations = [
        operation(0, "max", 4, 0, 1, 4),
        operation(1, "read", None, 2, 9, 3),
        operation(2, "read", None, 3, 5, 1),
        operation(3, "read", None, 6, None),
    ]
    result = analysis(Halves(), operations)
    assert (result.valid, result.analyzer, result.kind) == (Verdict.INVALID, "flow", "impossible")
    assert (result.op, result.counterexample) == (operations[2], (operations[2],))
    assert result.explanation == "Process 2's read of 1 at 0.005 s is possible in no state: all values are even."
    assert analysis(Halves(), operations[:1]).valid is Verdict.VALID
    with pytest.raises(ModelError, match="by its `step` it can; correct `impossible`"):
        analysis(Halves(1), [operation(0, "read", None, 0, 1, 1)])


def test_the_effort_of_the_slowest_key() -> None:
    """Classes, observers, concurrent operations and crashed operations are counted."""
    operations = [
        operation(0, "max", 5, 0, 4, 5),
        operation(1, "read", None, 1, 3, 5),
        operation(2, "max", 7, 2, None),
        operation(1, "read", None, 5, 6, 5),
    ]
    effort = check_keys(MaxRegister(), operations, explain_model=True).search
    assert effort is not None
    assert (effort.operations, effort.classes, effort.observers, effort.widest) == (4, 3, 2, 2)
    assert effort.widest_at == operations[1]
    assert effort.crashed == {"max of 7": 1}
    reported = "\n".join(effort.lines())
    assert "4 operations, 2 of which only observe; 3 classes" in reported
    assert "1 operation never returned and may take effect at any later time: 1 of max of 7." in reported
    assert check_keys(MaxRegister(), operations).search is None
