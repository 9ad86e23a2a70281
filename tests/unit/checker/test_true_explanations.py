"""What Labrys shows of an invalid history is true in the whole history, by a brute force of the tests' own."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checker.explain.sentences import _STATE, _state_text
from checker.identity import identity
from checker.models import Inconsistent
from harness.op import OpType
from harness.verdict import Verdict
from tests import own_models
from tests.deciding import analysis
from tests.own_models import operation as made
from tests.unit.checker.conftest import draw_history

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from checker.models import Model
    from harness.op import Operation

FOREVER = 2**60
OWN = [
    own_models.MaxRegister,
    own_models.SilentMaxRegister,
    own_models.BoundedStack,
    own_models.Stack,
    own_models.Laconic,
    own_models.Line,
    own_models.Bank,
    own_models.LeaseLock,
]
NATIVE = [
    "register",
    "cas-register",
    "mutex",
    "owner-mutex",
    "multi-register",
    "set",
    "grow-set",
    "counter",
    "fifo-queue",
    "unordered-queue",
    "list",
    "kv",
]
RARE = "no order of the operations until then is legal"
MORE = re.compile(r" or (?:another of (\d+) reasons|(1) other reason)$")


def end_of(op: Operation) -> int:
    """Returns the end of an operation, or a time after all events."""
    return FOREVER if op.type is OpType.INFO or op.complete_index is None else op.complete_index


def states_before(model: Model, operations: Sequence[Operation], op: Operation) -> dict[Any, Any]:
    """Returns the states of all orders of what began before `op` returned, without `op`, by identity: every order is tried."""
    until = end_of(op)
    kept = [
        operation
        for operation in operations
        if operation is not op
        and operation.invoke_index <= until
        and (operation.type is not OpType.FAIL or operation.f in model.keeps_failed)
    ]
    calls = [model.call(operation) for operation in kept]
    must = frozenset(i for i, operation in enumerate(kept) if end_of(operation) < until)
    states: dict[Any, Any] = {}
    seen = set()

    def go_on(done: frozenset[int], state: Any) -> None:
        if (done, identity(state)) in seen:
            return
        seen.add((done, identity(state)))
        if must <= done:
            states[identity(state)] = state
        due = min((end_of(kept[i]) for i in must - done), default=FOREVER)
        for i in range(len(kept)):
            if i not in done and kept[i].invoke_index <= due:
                after = model.step(state, calls[i])
                if not isinstance(after, Inconsistent):
                    go_on(done | {i}, after)

    go_on(frozenset(), model.initial)
    return states


def is_legal(model: Model, operations: Sequence[Operation], op: Operation, may: Sequence[Operation] = ()) -> bool:
    """Returns whether operations have an order until `op` returned; others may take effect at any time, each once or never."""
    until = end_of(op)
    kept = [operation for operation in operations if operation.invoke_index <= until]
    starts = [operation.invoke_index for operation in kept] + [-1] * len(may)
    calls = [model.call(operation) for operation in (*kept, *may)]
    must = frozenset(i for i, operation in enumerate(kept) if end_of(operation) <= until)
    seen = set()

    def go_on(done: frozenset[int], state: Any) -> bool:
        if must <= done:
            return True
        if (done, identity(state)) in seen:
            return False
        seen.add((done, identity(state)))
        due = min(end_of(kept[i]) for i in must - done)
        for i in range(len(calls)):
            if i not in done and starts[i] <= due:
                after = model.step(state, calls[i])
                if not isinstance(after, Inconsistent) and go_on(done | {i}, after):
                    return True
        return False

    return go_on(frozenset(), model.initial)


def known_operations(model: Model, operations: Sequence[Operation]) -> list[Operation]:
    """Returns the operations that mean something to the model."""
    return [
        operation for operation in operations if operation.type is not OpType.FAIL or operation.f in model.keeps_failed
    ]


def listed(text: str) -> tuple[set[str], int]:
    """Returns the reasons of a list, and the number of those that it only counts."""
    more = MORE.search(text)
    count = 0 if more is None else int(more[1] or more[2])
    return set(MORE.sub("", text).split(" or ")), count


def check_reasons(model: Model, whole: dict[Any, Any], op: Operation, explanation: str) -> None:
    """Asserts that each reason of a sentence is the reason of a state, and that it has all reasons unless it says otherwise."""
    truth = set()
    for state in whole.values():
        after = model.step(state, model.call(op))
        assert isinstance(after, Inconsistent), (state, op)
        truth.add(after.message or f"the state is {_state_text({'state': state})}")
    _, separator, text = explanation.rpartition(" is not possible")
    assert separator, explanation
    text, _, rest = text.partition(": ")[2].partition(". ")
    reasons, counted = listed(text.rstrip("."))
    there = re.match(r"In other orders of all operations: (.*?)\.( |$)", rest)
    if there is not None:
        others, more = listed(there[1])
        assert not reasons & others
        reasons, counted = reasons | others, counted + more
    assert reasons <= truth, (explanation, truth)
    if "No other order" not in rest:
        assert len(reasons) + counted == len(truth), (explanation, truth)


def check_own(model: Model, operations: Sequence[Operation]) -> str | None:
    """Asserts that all is true that is said of a history of a user's own model; returns the kind of what is shown."""
    result = analysis(model, operations)
    if result.valid is not Verdict.INVALID:
        return None
    op, shown = result.culprit, result.counterexample
    assert op is not None
    assert result.op is op
    assert op in shown
    assert all(any(operation is other for other in operations) for operation in shown)
    assert not is_legal(model, shown, op), "the shown operations contradict each other"
    whole = states_before(model, operations, op)
    assert whole, "there is an order until then"
    if result.analyzer == "flow" and result.kind != "search":
        return "flow"
    if RARE in result.explanation:
        return "rare"
    check_reasons(model, whole, op, result.explanation)
    beside = result.explanation.partition(" is not possible")[2].partition(": ")[0]
    if beside.startswith(" after "):
        assert all(end_of(operation) < op.invoke_index for operation in shown if operation is not op)
    alone = states_before(model, shown, op)
    if alone and alone.keys() <= whole.keys():
        return "faithful"
    others = [
        operation
        for operation in known_operations(model, operations)
        if operation not in shown and operation.invoke_index <= end_of(op)
    ]
    if not is_legal(model, shown, op, others):
        return "whatever else"
    changing = {id(other) for other in others if not model.observes(model.call(other))}
    assert not changing, (result.explanation, shown)
    return "without observers"


@pytest.mark.parametrize("make", OWN)
@given(random=st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_what_is_said_of_an_own_model_is_true_in_the_whole_history(make: Callable[[], Model], random: Random) -> None:
    """The shown operations contradict each other, and each reason is that of a state which the whole history leads to."""
    model = make()
    check_own(model, own_models.draw(model, random))


@pytest.mark.parametrize("make", OWN)
def test_the_property_looks_at_enough(make: Callable[[], Model]) -> None:
    """Most invalid histories are shown by operations that lead to states of the whole history."""
    random = Random(f"true {make}")
    kinds = [check_own(model, own_models.draw(model, random)) for model in [make() for _ in range(600)]]
    invalid = [kind for kind in kinds if kind is not None]
    assert len(invalid) > 20
    assert sum(kind in {"faithful", "flow"} for kind in invalid) > 0.9 * len(invalid), invalid
    assert "rare" not in invalid


@pytest.mark.parametrize("name", NATIVE)
@given(random=st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_the_states_that_a_built_in_model_is_said_to_have_are_all(name: str, random: Random) -> None:
    """The shown operations contradict each other; "can only have held" has all states that the whole history leads to."""
    model, operations = draw_history(name, random)
    result = analysis(model, operations)
    if result.valid is not Verdict.INVALID:
        return
    assert result.op is not None
    assert result.culprit is not None
    assert not is_legal(model, known_operations(model, result.counterexample), result.culprit)
    held = _STATE.get(model.name)
    if held is None or held not in result.explanation:
        return
    whole = states_before(model, operations, result.op)
    truth = {_state_text(model.describe(state)) for state in whole.values()}
    text = re.split(r", and no operation|\.$", result.explanation.partition(held)[2])[0]
    text, _, more = text.partition(" or one of ")
    said = set(text.split(" or "))
    assert said <= truth, (result.explanation, truth)
    assert len(said) + int(more.partition(" ")[0] or 0) == len(truth), (result.explanation, truth)


def stack(*calls: tuple[str, int], crashed: Sequence[tuple[str, int]] = ()) -> list[Operation]:
    """Returns operations one after the other, by one process each; the crashed ones began before all."""
    first = [made(10 + i, f, value, i, None) for i, (f, value) in enumerate(crashed)]
    return first + [
        made(0, f, value if f == "push" else None, 10 + 2 * i, 11 + 2 * i, None if f == "push" else value)
        for i, (f, value) in enumerate(calls)
    ]


def test_what_took_effect_is_not_left_out_of_a_stack() -> None:
    """The pushes below the wrong pop are shown, and the reason is the top of the whole history."""
    operations = stack(("push", 1), ("push", 2), ("push", 3), ("pop", 3), ("pop", 1))
    result = analysis(own_models.Stack(), operations)
    assert result.counterexample == (operations[0], operations[1], operations[4])
    assert result.explanation.endswith(": the top is 2.")
    assert " is not possible after process 0's push of 1 (" in result.explanation


def test_the_example_of_the_guide() -> None:
    """docs/guide/new-model.md has the sentence as it is."""
    calls = [("push", 1), ("push", 2), ("push", 3), ("pop", 3), ("pop", 1)]
    operations = [
        made(0, f, value if f == "push" else None, 2 * i, 2 * i + 1, None if f == "push" else value)
        for i, (f, value) in enumerate(calls)
    ]
    explanation = analysis(own_models.Stack(), operations).explanation
    assert f"\n    {explanation}\n" in (Path(__file__).parents[3] / "docs" / "guide" / "new-model.md").read_text(
        encoding="utf-8"
    )


def test_reasons_that_differ_between_orders_are_told_apart() -> None:
    """First the reason after the shown operations, then those after other orders; at most three of each."""
    result = analysis(own_models.Stack(), stack(("push", 1), ("pop", 7), crashed=[("push", 2), ("push", 3)]))
    assert result.explanation.endswith(
        ": the top is 1. In other orders of all operations: the top is 2 or the top is 3."
    )
    many = [("push", value) for value in range(2, 7)]
    result = analysis(own_models.Stack(), stack(("push", 1), ("pop", 9), crashed=many))
    assert result.explanation.endswith("the top is 2 or the top is 3 or the top is 4 or another of 2 reasons.")


def test_a_model_without_reasons_is_explained_by_its_states() -> None:
    """An empty reason is replaced by the state."""
    result = analysis(own_models.Laconic(), stack(("push", 1), ("push", 2), ("pop", 1)))
    assert result.explanation.endswith(": the state is [1 2].")


def leases(count: int) -> list[Operation]:
    """Returns one lease after another, and at the end a second one beside the last."""
    operations = []
    for token in range(1, count):
        operations.append(made(0, "acquire", None, 10 * token, 10 * token + 1, token))
        operations.append(made(0, "release", token, 10 * token + 4, 10 * token + 5))
    operations.append(made(0, "acquire", None, 1000, 1001, count))
    operations.append(made(1, "acquire", None, 1002, 1003, count + 1))
    return operations


def test_two_leases_are_shown_without_the_forty_before_them() -> None:
    """If a faithful part is long, operations that contradict each other whatever the others do are shown instead."""
    operations = leases(40)
    result = analysis(own_models.LeaseLock(), operations)
    assert result.counterexample == tuple(operations[-2:])
    assert result.explanation.endswith(": it is leased with token 40.")


def test_a_machine_that_is_busy_with_other_work_shows_the_same_operations() -> None:
    """The budgets are processor time, so a wait costs nothing. In wall time, the computation of states ends after 0.3 s."""
    operations = leases(12)
    result = analysis(own_models.waiting(own_models.LeaseLock, 0.002), operations)
    assert result.counterexample == tuple(operations[-2:])


def test_a_key_that_is_told_in_short_has_a_true_reason() -> None:
    """Without a counterexample, the reasons are those of states that the search has reached, and may not be all."""
    result = analysis(own_models.Stack(), stack(("push", 1), ("push", 2), ("pop", 1)), counterexample=False)
    assert result.explanation == (
        "Process 0's pop that returned 1 at 0.015 s is not possible: the top is 2. No other order of all operations makes it "
        "possible."
    )
