"""Rules of families: queues with repeated elements, sets with removals, counters with different increments.

Each agrees with brute force and the plain search on small histories of every kind, and each decides long ones.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from checker import _kernel
from checker.models import model
from checker.near.necessary import lack
from checker.near.pairing import Queue
from checker.near.rules import by_rule, by_walk, has_walk
from checker.near.walking import LAST, Budget
from checker.search import brute
from checker.search.allowance import Allowance
from checker.search.certificate import replay
from checker.search.encode import encode
from checker.search.solving import Limits, positions, solve
from harness.op import OpType
from harness.verdict import Verdict
from tests.deciding import analysis
from tests.own_models import operation
from tests.simulated import simulated, spoiled

if TYPE_CHECKING:
    from collections.abc import Callable

    from checker._kernel import Outcome
    from checker.models import Model
    from checker.search.encode import Encoded
    from harness.op import Operation

HISTORIES = 400
LONG = 1500
LIMITS = Limits(threads=1)


def draw_queue(values: int) -> Callable[[Random], tuple[str, Any]]:
    """Returns a function that draws operations of queues."""
    return lambda random: ("enqueue", random.randrange(values)) if random.random() < 0.5 else ("dequeue", None)


def draw_set(elements: int, reads: float) -> Callable[[Random], tuple[str, Any]]:
    """Returns a function that draws operations of sets."""
    return lambda random: (
        ("read", None)
        if random.random() < reads
        else (random.choice(["add", "remove", "contains"]), random.randrange(elements))
    )


def draw_counter(amounts: list[int]) -> Callable[[Random], tuple[str, Any]]:
    """Returns a function that draws operations of counters."""
    return lambda random: (
        ("read", None)
        if random.random() < 0.4
        else (random.choice(["add", "add", "fetch-add"]), random.choice(amounts))
    )


def answer(state: Any, f: str, argument: Any, random: Random) -> Any:
    """Returns an honest object's answer."""
    if f == "dequeue":
        elements = state[0] if len(state) == 2 and isinstance(state[0], tuple) else state
        if elements is state:
            return elements[0] if elements else None
        return random.choice(elements) if elements else None
    if f == "contains":
        return any(element[-1] == argument if isinstance(element, tuple) else element == argument for element in state)
    if f == "read" and isinstance(state, frozenset):
        return sorted(element[-1] if isinstance(element, tuple) else element for element in state)
    return state if f in {"read", "fetch-add"} else argument


def wrong(op: Operation) -> Any:
    """Returns an answer that an honest object does not give; None if the operation has no answer."""
    if op.f == "dequeue" and op.result is not None:
        return op.result + 1
    if op.f == "contains":
        return not op.result
    return op.result + 1 if op.f in {"read", "fetch-add"} and isinstance(op.result, int) else None


KINDS: dict[str, tuple[str, Callable[[Random], Callable[[Random], tuple[str, Any]]]]] = {
    "pairs": ("fifo-queue", lambda random: draw_queue(random.choice([1, 2, 3]))),
    "copies": ("unordered-queue", lambda random: draw_queue(random.choice([1, 2, 3]))),
    "elements": ("set", lambda random: draw_set(random.choice([1, 2, 3]), 0)),
    "reads": ("set", lambda random: draw_set(2, 0.3)),
    "sums": ("counter", lambda random: draw_counter(random.choice([[1, 2], [0, 1, 3], [-1, -2], [5, 7, 12]]))),
}


def small(kind: str, random: Random) -> tuple[Model, list[Operation]]:
    """Returns a small history, often with wrong answers."""
    name, draws = KINDS[kind]
    object_ = model(name, **({"crashed_dequeue": random.choice(["takes", "never"])} if "queue" in name else {}))
    operations = simulated(
        object_, random, draws(random), answer, count=random.randint(2, 9), processes=random.randint(2, 5), crashes=2
    )
    for _ in range(random.choice([0, 1, 1, 2])):
        answered = [i for i, op in enumerate(operations) if op.type is OpType.OK and wrong(op) is not None]
        if answered:
            i = random.choice(answered)
            others = [op.result for op in operations if op.f == operations[i].f and op.type is OpType.OK]
            spoil = random.choice([*others, wrong(operations[i])])
            operations[i] = operations[i] if spoil is None else replace(operations[i], result=spoil)
    return object_, operations


def ruled(object_: Model, encoded: Encoded) -> Outcome | None:
    """Returns the rules' result for a history without missing sources."""
    events = encoded.events
    rule = by_walk if has_walk(events) else by_rule
    return rule(events, LIMITS, want_order=True) if lack(object_, encoded) is None else None


@pytest.mark.parametrize("kind", KINDS)
def test_a_rule_says_what_the_brute_force_and_the_search_say(kind: str) -> None:
    """The verdict, the order of a valid history, and the first return at which an invalid one fails."""
    random = Random(f"rules {kind}")
    seen = {"valid": 0, "invalid": 0, "lacking": 0}
    for _ in range(HISTORIES):
        object_, operations = small(kind, random)
        encoded = encode(object_, operations)
        truth = brute.linearizable(object_, operations)
        outcome = ruled(object_, encoded)
        if outcome is None:
            assert not truth or kind in {"reads", "copies"}, operations
            seen["lacking"] += 1
            continue
        seen[outcome.verdict] += 1
        assert outcome.verdict == ("valid" if truth else "invalid"), operations
        if truth:
            assert outcome.order is not None
            replay(object_, operations, [encoded.operations[i] for i in positions(outcome.order)])
            continue
        [searched] = solve([encoded.problem], Limits(algorithm="search", threads=1))
        # With reads of the whole set, an element may fail later than the set.
        assert outcome.op is not None
        assert searched.op is not None
        assert encoded.ends[outcome.op] >= encoded.ends[searched.op]
        assert kind == "reads" or outcome.op == searched.op, operations
        if outcome.core:
            end = encoded.operations[outcome.op].complete_index
            [part] = solve([encoded.part(outcome.core, end)], Limits(algorithm="search", threads=1))
            assert part.verdict == "invalid", operations
    assert seen["lacking"] > 0
    assert seen["valid"] > 0 or kind == "reads"
    assert seen["invalid"] > 0 or kind == "copies"


def test_a_queue_up_to_a_return_is_what_the_search_says_of_it() -> None:
    """Operations that returned later may or may not have happened, with their results."""
    random = Random("until")
    for _ in range(HISTORIES):
        object_, operations = small("pairs", random)
        encoded = encode(object_, operations)
        ends = sorted((end, i) for i, end in enumerate(encoded.ends) if end < LAST[0])
        if not ends:
            continue
        until = random.choice(ends)
        kept = [i for i, start in enumerate(encoded.starts) if start <= until[0]]
        [searched] = solve([encoded.part(kept, until[0])], Limits(algorithm="search", threads=1))
        walked = Queue(encoded.events, range(len(encoded.codes)), until).search(Budget())
        assert walked.valid is (searched.verdict == "valid"), operations


@pytest.mark.parametrize("at", [None, 0.02, 0.5, 0.98])
@pytest.mark.parametrize(
    ("name", "draw", "analyzers"),
    [
        ("fifo-queue", draw_queue(100), {"pairs", "flow"}),
        ("unordered-queue", draw_queue(100), {"copies", "flow", "jit-dfs", "wgl"}),
        ("set", draw_set(100, 0), {"elements", "flow"}),
        ("counter", draw_counter([1, 2, 3, 5, 80, 700]), {"sums", "flow", "jit-dfs", "jit-bfs", "wgl"}),
    ],
)
def test_long_histories_are_decided(
    name: str, draw: Callable[[Random], tuple[str, Any]], analyzers: set[str], at: float | None
) -> None:
    """Valid, and with one wrong answer near the start, in the middle and near the end."""
    random = Random(f"long {name}")
    object_ = model(name)
    operations = simulated(object_, random, draw, answer, count=LONG, processes=8)
    if at is not None:
        operations = spoiled(operations, at, wrong)
    result = analysis(object_, operations, time_limit=60, threads=1, counterexample=at == 0.02)
    assert result.analyzer in analyzers
    assert result.valid is not Verdict.UNKNOWN
    if at is None:
        assert result.valid is Verdict.VALID


def test_a_wrong_order_of_repeated_elements_is_shown() -> None:
    """The planted mistake, two exchanged elements, has a counterexample without the other values."""
    object_ = model("fifo-queue")
    random = Random("shown")
    operations = simulated(object_, random, draw_queue(30), answer, count=300, processes=3)
    takes = [i for i, op in enumerate(operations) if op.f == "dequeue" and op.result is not None]
    first, second = next(
        (a, b) for a, b in zip(takes[40:], takes[45:], strict=False) if operations[a].result != operations[b].result
    )
    changed = [operations[first].result, operations[second].result]
    operations[first : first + 1] = spoiled([operations[first]], 0, lambda _: changed[1])
    operations[second : second + 1] = spoiled([operations[second]], 0, lambda _: changed[0])
    result = analysis(object_, operations, threads=1)
    assert result.valid is Verdict.INVALID
    assert brute.linearizable(object_, result.counterexample, bound=200_000) is False
    assert len(result.counterexample) < len(operations) / 4


def test_a_dequeue_that_starts_early_may_wait_for_an_empty_answer() -> None:
    """Of three dequeues of one value, the first to start is the last to end, and an empty answer comes before it."""
    operations = [
        operation(0, "enqueue", 2, 8, 20),
        operation(1, "enqueue", 2, 9, 12),
        operation(2, "dequeue", None, 16, 61, 2),
        operation(3, "dequeue", None, 22, 45),
        operation(4, "dequeue", None, 27, 30, 2),
        operation(5, "dequeue", None, 29, 31, 2),
        operation(6, "enqueue", 2, 53, 56),
    ]
    object_ = model("fifo-queue")
    assert brute.linearizable(object_, operations)
    outcome = by_walk(encode(object_, operations).events, LIMITS, want_order=False)
    assert outcome is not None
    assert outcome.verdict == "valid"


def test_a_walk_hears_a_cancellation() -> None:
    """It ends soon without a verdict, and so does the search after it."""
    cancellation = _kernel.Cancellation()
    assert not cancellation.is_cancelled()
    cancellation.cancel()
    object_ = model("fifo-queue")
    operations = simulated(object_, Random("cancelled"), draw_queue(3), answer, count=2_000, processes=8)
    events = encode(object_, operations).events
    walked = Queue(events, range(len(events.members))).search(Budget(allowance=Allowance(cancellation=cancellation)))
    assert walked.valid is None
    assert walked.steps < 1_000
    result = analysis("fifo-queue", operations, cancellation=cancellation)
    assert (result.valid, result.cause) == (Verdict.UNKNOWN, "cancelled")
