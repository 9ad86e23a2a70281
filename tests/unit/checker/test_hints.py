"""The order of a system: used if it is legal, rejected if it is not, and never trusted."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

import checker.checking
import checker.decide.hints
from benchmarks.checker.hinted import hinted_cases, without_hints
from benchmarks.checker.subjects import BankSubject, MaxRegisterSubject, StoreSubject
from checker.checking import Request, check_file
from checker.decide.chained import follow
from checker.decide.hints import examine
from checker.deciders import Wanted
from checker.formats.jepsen import write_history
from checker.formats.parquet import write_operations
from checker.identity import identity
from checker.linearizable import ORDER_PART, linearizability, order_part
from checker.models import Call, Inconsistent, Model, names
from checker.presentation import as_edn, as_json, as_text
from checker.search import brute
from checker.search.allowance import Allowance
from checker.search.certificate import replay
from checker.search.encode import encode
from checker.search.placement import place
from harness.event_lines import LineEncoder
from harness.op import Operation, OpType
from harness.pairing import events_of
from harness.verdict import Verdict, reason_of, verdict_of
from tests.deciding import analysis, check_keys
from tests.own_models import BoundedStack, MaxRegister
from tests.own_models import draw as draw_own

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from benchmarks.checker.subjects import Subject

HISTORIES = 60
REQUEST = Request(wanted=Wanted(model="register"))


class Automaton(Model):
    """A random object: each function's effect in each state is drawn. Some functions are observers in every state."""

    name = "automaton"
    initial = 0

    def __init__(self, random: Random) -> None:
        states, functions = random.randint(2, 6), random.randint(2, 5)
        self.functions = [f"f{number}" for number in range(functions)]
        self._observing = {f for f in self.functions if random.random() < 0.4}
        self._after = {
            (state, f): None if random.random() < 0.3 else state if f in self._observing else random.randrange(states)
            for state in range(states)
            for f in self.functions
        }

    def step(self, state: int, op: Call) -> int | Inconsistent:
        """See `Model`."""
        after = self._after[state, op.f]
        return Inconsistent(f"no {op.f} in {state}") if after is None else after

    def observes(self, op: Call) -> bool:
        """See `Model`."""
        return op.f in self._observing


def draw_of(automaton: Automaton, random: Random, *, longest: int = 7) -> list[Operation]:
    """Returns a history of a random object: legal in order of the middles, except for random changes."""
    state = automaton.initial
    operations = []
    free = dict.fromkeys(range(random.randint(1, 4)), -1)
    for number in range(random.randint(1, longest)):
        if not free:
            break
        process = random.choice(list(free))
        possible = [
            f for f in automaton.functions if not isinstance(automaton.step(state, _call(f)), Inconsistent)
        ] or automaton.functions
        f = random.choice(possible if random.random() < 0.9 else automaton.functions)
        kind = random.choices([OpType.OK, OpType.INFO, OpType.FAIL], [80, 15, 5])[0]
        middle = max(10 * number, free[process] + 1)
        start, end = random.randint(free[process] + 1, middle), middle + random.randrange(25)
        operations.append(_operation(process, f, kind, 100 * start + number, 100 * end + 50 + number))
        free[process] = end
        if kind is OpType.INFO:
            del free[process]
        after = automaton.step(state, _call(f))
        if kind is not OpType.FAIL and not isinstance(after, Inconsistent) and random.random() < 0.9:
            state = after
    return sorted(operations, key=lambda op: op.invoke_index)


def _call(f: str) -> Call:
    return Call(f=f, value=None, argument=None, result=None, ok=True)


def _operation(process: int, f: str, kind: OpType, start: int, end: int, **fields: Any) -> Operation:
    return Operation(
        **{
            "process": process,
            "f": f,
            "value": None,
            "result": None,
            "type": kind,
            "start_ns": start,
            "end_ns": end,
            "invoke_index": start,
            "complete_index": end,
            **fields,
        }
    )


def follows(object_: Model, operations: Sequence[Operation]) -> bool:
    """Returns whether some legal order ascends by place, the rule of `checker.decide.hints`; tries every order."""
    known = encode(object_, operations).operations
    calls = [object_.call(op) for op in known]
    places = [op.order for op in known]
    ends = [op.complete_index if op.type is not OpType.INFO else None for op in known]
    must = {i for i, end in enumerate(ends) if end is not None or places[i] is not None}
    seen = set()
    stack: list[tuple[frozenset[int], Any]] = [(frozenset(), object_.initial)]
    while stack:
        done, state = stack.pop()
        if must <= done:
            return True
        left = [i for i in range(len(known)) if i not in done]
        first_end = min((end for i in left if (end := ends[i]) is not None), default=2**63)
        for i in left:
            mine = places[i]
            waits = mine is not None and any((its := places[j]) is not None and its < mine for j in left)
            if waits or known[i].invoke_index > first_end:
                continue
            after = object_.step(state, calls[i])
            key = (done | {i}, identity(after) if not isinstance(after, Inconsistent) else None)
            if not isinstance(after, Inconsistent) and key not in seen:
                seen.add(key)
                stack.append((key[0], after))
    return False


def hold(object_: Model, operations: Sequence[Operation]) -> Verdict | None:
    """Asserts that the result for a small history with hints equals brute force; returns whether the hints agree."""
    truth = Verdict.VALID if brute.linearizable(object_, operations) else Verdict.INVALID
    result = analysis(object_, operations, certificate=True, counterexample=False)
    assert result.valid is truth, operations
    if truth is Verdict.VALID:
        assert result.certificate is not None
        replay(object_, operations, result.certificate)
    encoded = encode(object_, operations)
    if all(op.order is None for op in encoded.operations):
        assert result.order_agrees is None
        assert not result.order_reason
        return None
    legal = follows(object_, operations)
    assert result.order_agrees is (Verdict.VALID if legal else Verdict.INVALID), (result.order_reason, operations)
    assert result.order_reason.endswith(".")
    assert (result.analyzer == "hints") is legal
    return result.order_agrees


def ordered(order: Sequence[Operation], random: Random, *, share: float) -> dict[int, int]:
    """Returns, by invoke, a system's numbers for an order: ascending, with gaps, negative or huge."""
    number = random.choice([0, -(2**63), 2**62])
    numbers = {}
    for op in order:
        number += random.randint(1, 3)
        if random.random() < share:
            numbers[op.invoke_index] = number
    return numbers


def hinted(operations: Sequence[Operation], numbers: dict[int, int]) -> list[Operation]:
    """Returns operations with orders, by invoke."""
    return [replace(op, order=numbers.get(op.invoke_index)) for op in operations]


def test_right_hints_decide_random_objects_and_wrong_ones_change_no_verdict() -> None:
    """Hints from a linearization agree. Drawn hints agree exactly if some legal order follows them."""
    random = Random("automata")
    seen = set()
    for _ in range(400):
        automaton = Automaton(random)
        operations = draw_of(automaton, random)
        order = brute.linearization(automaton, operations)
        if isinstance(order, list):
            right = hinted(operations, ordered(order, random, share=random.choice([0.3, 0.7, 1.0])))
            assert hold(automaton, right) in {Verdict.VALID, None}
        drawn = {op.invoke_index: random.randint(-2, 2) for op in operations if random.random() < 0.7}
        seen.add(hold(automaton, hinted(operations, drawn)))
    assert seen == {Verdict.VALID, Verdict.INVALID, None}


@pytest.mark.parametrize("name", names())
def test_hints_decide_every_built_in_model(draw: Callable[..., Any], name: str) -> None:
    """The same for the kernel's models."""
    random = Random(f"hints {name}")
    for number in range(HISTORIES):
        object_, operations = draw(name, random, unique=number % 2 == 0)
        if not operations:
            continue
        order = brute.linearization(object_, operations)
        if isinstance(order, list):
            right = hinted(operations, ordered(order, random, share=random.choice([0.5, 1.0])))
            assert hold(object_, right) in {Verdict.VALID, None}
        drawn = {op.invoke_index: random.randint(0, 5) for op in operations if random.random() < 0.8}
        hold(object_, hinted(operations, drawn))


@pytest.mark.parametrize("name", ["register", "set", "fifo-queue", "bounded-stack", "max-register"])
def test_the_kernel_follows_an_order_as_the_search_for_places_does(draw: Callable[..., Any], name: str) -> None:
    """Both find an order or none; the kernel leaves to the other one only what it cannot represent."""
    own = {model.name: model for model in (BoundedStack, MaxRegister)}
    random = Random(f"followed {name}")
    seen = Counter[bool]()
    for _ in range(4 * HISTORIES):
        if name in own:
            object_: Model = own[name]()
            operations = draw_own(object_, random)
        else:
            object_, operations = draw(name, random)
        drawn = {op.invoke_index: random.randint(0, 3) for op in operations if random.random() < 0.7}
        operations = hinted(operations, drawn)
        encoded = encode(object_, operations)
        places = [i for i, op in enumerate(encoded.operations) if op.order is not None]
        chain = checker.decide.hints._steps(object_, encoded, places)
        if not chain or checker.decide.hints._against_time(encoded, chain) is not None:
            continue
        placed = follow(object_, encoded, chain, Allowance.of(5.0))
        if placed is None:
            continue
        other = place(object_, encoded, chain, Allowance.of(5.0))
        assert placed.exhausted
        assert other.exhausted
        assert (placed.order is None) is (other.order is None), operations
        if placed.order is not None:
            replay(object_, operations, [encoded.operations[i] for i in placed.order])
        seen[placed.order is None] += 1
    assert min(seen[True], seen[False]) > 10


@pytest.mark.parametrize("name", ["register", "fifo-queue", "max-register"])
def test_a_race_changes_no_verdict(draw: Callable[..., Any], name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without time for the first attempt, the order and the search run at the same time: the answers are as with it."""
    random = Random(f"race {name}")
    compared = 0
    for _ in range(HISTORIES // 2):
        if name == MaxRegister.name:
            object_: Model = MaxRegister()
            operations = draw_own(object_, random)
        else:
            object_, operations = draw(name, random)
        drawn = {op.invoke_index: random.randint(0, 3) for op in operations if random.random() < 0.7}
        operations = hinted(operations, drawn)
        first = check_keys(object_, operations)
        with monkeypatch.context() as patched:
            patched.setattr(checker.decide.hints, "_MOMENT_S", 1e-9)
            second = check_keys(object_, operations)
        assert (first.valid, first.order_agrees) == (second.valid, second.order_agrees), operations
        compared += first.order_agrees is not None
    assert compared > 20


def test_what_would_need_two_at_once_is_found_in_a_later_round() -> None:
    """A returned operation needs several consecutive crashed ones before it, more than the first rounds allow."""

    class Sum(Model):
        name = "sum"
        initial = 0

        def step(self, state: int, op: Call) -> int | Inconsistent:
            if op.f == "add":
                return state + int(op.argument)
            return state if op.result == state else Inconsistent(f"read {op.result}, but the sum is {state}")

        def observes(self, op: Call) -> bool:
            return op.f == "read"

    adds = [_operation(i, "add", OpType.INFO, i, 100, value=10**i) for i in range(7)]
    for needed in ([0], [1, 3], [0, 1, 2, 4, 6], range(7)):
        total = sum(10**i for i in needed)
        result = analysis(Sum(), [*adds, _operation(9, "read", OpType.OK, 20, 30, result=total, order=4)])
        assert (result.valid, result.analyzer, result.order_agrees) == (Verdict.VALID, "hints", Verdict.VALID)
    result = analysis(Sum(), [*adds, _operation(9, "read", OpType.OK, 20, 30, result=2, order=4)])
    assert (result.valid, result.order_agrees) == (Verdict.INVALID, Verdict.INVALID)
    assert "read 2, but the sum is" in result.order_reason


WRITES = [
    _operation(0, "write", OpType.OK, 0, 1, value=1, result=1, order=-3),
    _operation(1, "write", OpType.OK, 2, 3, value=2, result=2, order=8),
]
TURNED = [replace(WRITES[0], order=8), replace(WRITES[1], order=-3)]


def test_an_order_against_real_time_names_both_operations_and_decides_nothing() -> None:
    """Two sequential writes with exchanged numbers: valid, but not in the system's own order."""
    first = _operation(0, "write", OpType.OK, 0, 10, value=1, order=8)
    second = _operation(1, "write", OpType.OK, 20, 30, value=2, order=-3)
    result = analysis("register", [first, second])
    assert (result.valid, result.order_agrees) == (Verdict.VALID, Verdict.INVALID)
    assert result.analyzer != "hints"
    assert result.order_reason == (
        "The system's own order is not a legal one: it puts process 1's write of 2 (0.00000002 s to 0.00000003 s) at -3 before "
        "process 0's write of 1 (0.00000000 s to 0.00000001 s) at 8, which ended before the first one began."
    )
    assert result.to_json()["order_agrees"] is False


def test_an_answer_that_the_order_makes_impossible_is_named_with_the_models_reason() -> None:
    """A read has a number after a write that it has not seen."""
    history = [
        _operation(0, "max", OpType.OK, 0, 10, value=3, order=1),
        _operation(1, "max", OpType.OK, 1, 11, value=7, order=2),
        _operation(2, "read", OpType.OK, 2, 12, result=3, order=3),
    ]
    result = analysis(MaxRegister(), history)
    assert (result.valid, result.order_agrees) == (Verdict.VALID, Verdict.INVALID)
    assert result.order_reason.endswith("is not possible: the maximum is 7.")
    assert "after 2 operations, process 2's read of 3" in result.order_reason
    assert "at 3" in result.order_reason
    right = [history[0], history[1], replace(history[2], order=1)]
    assert analysis(MaxRegister(), right).order_agrees is Verdict.VALID


def test_an_algorithm_that_is_asked_for_decides_and_the_order_is_told_beside_it() -> None:
    """Hints do not replace the user's choice of algorithm, and the second opinion checks them too."""
    subject = MaxRegisterSubject(60)
    model, history = subject.model, subject.history(count=200, processes=4, crashed=0, seed="max", ordered=True)
    for algorithm in ("wgl", "linear", "search"):
        result = analysis(model, history, algorithm=algorithm)
        assert (result.valid, result.order_agrees) == (Verdict.VALID, Verdict.VALID)
        assert result.analyzer != "hints"
    result = analysis(model, history, cross_check=True)
    assert (result.valid, result.analyzer) == (Verdict.VALID, "hints")


def test_an_invalid_history_is_invalid_whatever_the_system_says() -> None:
    """An invalid history has no legal order. The verdict and its counterexample are those without hints."""
    random = Random("invalid")
    subject = MaxRegisterSubject(60)
    model, history = subject.model, subject.history(count=60, processes=4, crashed=0, seed="max", ordered=True)
    wrong = [
        replace(op, result=op.result - 1) if op.f == "read" and op.result and number > 50 else op
        for number, op in enumerate(history)
    ]
    plain = analysis(model, without_hints(wrong))
    assert plain.valid is Verdict.INVALID
    for _ in range(5):
        numbers = [random.choice([None, random.randint(-5, 5), -(2**63), 2**63 - 1]) for _ in wrong]
        result = analysis(model, [replace(op, order=number) for op, number in zip(wrong, numbers, strict=True)])
        assert (result.valid, result.order_agrees) == (Verdict.INVALID, Verdict.INVALID)
        assert result.op is not None
        assert plain.op is not None
        assert result.op.invoke_index == plain.op.invoke_index


def test_a_history_that_the_search_cannot_decide_is_decided_by_its_order() -> None:
    """A bank is decided in milliseconds with hints, and not in a second without. So is a store that fails half the requests."""
    for name, time_limit, expected in (
        ("bank", 0.3, (Verdict.UNKNOWN, "timeout")),
        ("failing store", 60, (Verdict.VALID, None)),  # the search also decides it
    ):
        cases = [case for case in hinted_cases(name) if case.name.endswith("valid, order told")]
        assert cases
        for model, history in ((case.model, case.histories[0]) for case in cases):
            result = analysis(model, history, certificate=True, time_limit=60)
            assert (result.valid, result.analyzer) == (Verdict.VALID, "hints")
            assert result.certificate is not None
            replay(model, history, result.certificate)
            plain = analysis(model, without_hints(history), time_limit=time_limit)
            assert (plain.valid, plain.cause, plain.order_agrees) == (*expected, None)


@pytest.mark.parametrize("allowance", [Allowance.of(0.0), Allowance.of(60.0, wall_end_s=0.0)])
def test_a_budget_that_ends_says_so_and_leaves_time_for_the_verdict(allowance: Allowance) -> None:
    """If the search for an order is cut short, the order is `unknown`, and the verdict comes without it."""
    subject = BankSubject()
    model, history = subject.model, subject.history(count=500, processes=20, crashed=50, seed="bank", ordered=True)
    encoded = encode(model, history)
    hints = examine(model, history, encoded, allowance)
    assert hints is not None
    assert hints.agrees is Verdict.UNKNOWN
    assert hints.reason.startswith("It is not known whether the system's own order is a legal one: the budget ended")
    register = [_operation(0, "write", OpType.OK, 0, 1, value=1, order=5)]
    [only] = [examine(MaxRegister(), without_hints(register), encode(MaxRegister(), []), Allowance.of(0.0))]
    assert only is None


def test_a_budget_that_ends_leaves_a_run_the_verdict_of_its_operations(monkeypatch: pytest.MonkeyPatch) -> None:
    """A linearizable run stays valid and names the undecided part. A wrong order stays invalid."""
    monkeypatch.setattr(checker.decide.hints, "LIMIT_S", 0.0)
    for operations, order, run in (
        (WRITES, Verdict.UNKNOWN, Verdict.VALID),
        (TURNED, Verdict.INVALID, Verdict.INVALID),
    ):
        parts = linearizability("register", operations)
        assert {part.name: part.verdict for part in parts} == {"linearizable": Verdict.VALID, ORDER_PART: order}
        assert verdict_of(parts) is run
        assert reason_of(parts).endswith(f"Not decided: {ORDER_PART}.") is (run is Verdict.VALID)
    stale = _operation(2, "read", OpType.OK, 8, 9, result=1)
    parts = linearizability("register", [*WRITES, stale])
    assert {part.name: part.verdict for part in parts} == {"linearizable": Verdict.INVALID, ORDER_PART: Verdict.INVALID}


def test_an_order_that_is_hard_to_follow_takes_no_time_from_an_easy_verdict() -> None:
    """Thousands of operations with few numbers: the verdict is definite, even if the order is not decided in time."""
    subject = MaxRegisterSubject(60)
    ordered = subject.history(count=20_000, processes=20, crashed=0, seed="max-register", ordered=True)
    for history, verdict in ((ordered, Verdict.VALID), (subject.with_mistake(ordered, 0.5), Verdict.INVALID)):
        result = analysis(subject.model, history, counterexample=False, time_limit=8)
        assert result.valid is verdict
        assert result.order_agrees in {Verdict.UNKNOWN, verdict}


def test_each_key_is_held_to_its_own_order_and_the_worst_one_decides() -> None:
    """Keys without orders do not count. A key that disagrees is named. The part has the number of keys."""

    def write(key: str, process: int, start: int, order: int | None) -> Operation:
        return _operation(process, "write", OpType.OK, start, start + 1, value=process, key=key, order=order)

    agrees = [write("a", 0, 0, 1), write("a", 1, 10, 2), write("c", 4, 40, None)]
    result = check_keys("register", agrees)
    assert result.order_agrees is Verdict.VALID
    part = order_part(result)
    assert part is not None
    assert (part.name, part.verdict, part.details) == (
        ORDER_PART,
        Verdict.VALID,
        {"valid": 1, "unknown": 0, "invalid": 0},
    )
    assert part.reason == "The system's own order is a legal one on all keys whose operations carry one: 1 of 2 keys."
    result = check_keys("register", [*agrees, write("b", 2, 20, 4), write("b", 3, 30, 3)])
    assert (result.valid, result.order_agrees) == (Verdict.VALID, Verdict.INVALID)
    assert result.order_reason.startswith("Key b: The system's own order is not a legal one: ")
    assert result.to_json()["order_agrees"] is False
    part = order_part(result)
    assert part is not None
    assert (part.verdict, part.details["keys"]) == (Verdict.INVALID, ["b"])
    nothing = check_keys("register", without_hints(agrees))
    assert (nothing.order_agrees, nothing.order_reason, order_part(nothing)) == (None, "", None)
    assert "order_agrees" not in nothing.to_json()


def test_every_way_in_and_out_tells_of_the_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """JSONL, EDN and Parquet, short and long, give the same. So do the text, the JSON and the EDN of `labrys check`."""
    monkeypatch.setattr(checker.checking, "LONG_ROWS", 1)
    write_operations(tmp_path / "right.parquet", WRITES, run="r")
    write_operations(tmp_path / "wrong.parquet", TURNED, run="r")
    write_history(tmp_path / "right.edn", events_of(WRITES))
    write_history(tmp_path / "wrong.edn", events_of(TURNED))
    for name, operations in (("right.jsonl", WRITES), ("wrong.jsonl", TURNED)):
        lines = ['{"format":"labrys-history","version":1}', *map(LineEncoder().event, events_of(operations))]
        (tmp_path / name).write_text("\n".join(lines) + "\n")
    for suffix in ("jsonl", "edn", "parquet"):
        agrees = [
            json.loads(as_json(list(check_file(str(tmp_path / f"{name}.{suffix}"), REQUEST))))
            for name in ("right", "wrong")
        ]
        assert [(answer["valid"], answer["order_agrees"]) for answer in agrees] == [(True, True), (True, False)], suffix
        assert agrees[0]["analyzer"] == "hints"
        assert agrees[1]["order_reason"].startswith(
            "The system's own order is not a legal one: it puts process 1's write"
        )
    wrong = list(check_file(str(tmp_path / "wrong.jsonl"), REQUEST))
    assert agrees[1]["order_reason"] in as_text(wrong)
    assert ":order-agrees false" in as_edn(wrong)
    assert ':order-reason "The system' in as_edn(wrong)


def test_the_benchmarks_histories_are_what_they_say() -> None:
    """3,000 requests, half of them without an answer, and about 400 transfers among five accounts; with and without hints."""
    ordered, plain, *_ = hinted_cases("failing store")
    store = ordered.histories[0]
    assert (len(store), sum(op.type is OpType.INFO for op in store)) == (3000, 1500)
    assert all((op.order is None) == (op.type is OpType.INFO) for op in store)
    assert plain.histories[0] == without_hints(store)
    accounts = next(hinted_cases("bank")).histories[0]
    assert 370 < sum(op.f == "transfer" for op in accounts) < 430
    assert [case.name.split(", ", 3)[3] for case in hinted_cases("max-register")] == [
        "valid, order told", "valid, no order", "middle, order told", "middle, no order",
    ]  # fmt: skip


@pytest.mark.parametrize("make", [BankSubject, StoreSubject])
def test_a_mistake_is_found_whether_or_not_the_order_is_told(make: Callable[[], Subject]) -> None:
    """A wrong answer in a short history of the benchmark's objects makes it invalid, and its order disagrees."""
    subject = make()
    ordered = subject.history(count=60, processes=4, crashed=4, seed="short", ordered=True)
    assert analysis(subject.model, ordered).order_agrees is Verdict.VALID
    wrong = subject.with_mistake(ordered, 0.5)
    for history, order in ((wrong, Verdict.INVALID), (without_hints(wrong), None)):
        result = analysis(subject.model, history, counterexample=False)
        assert (result.valid, result.order_agrees) == (Verdict.INVALID, order)
