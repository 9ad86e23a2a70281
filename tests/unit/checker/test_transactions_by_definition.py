"""Verdicts on transactions agree with those by definition: with every order of a few transactions, without a graph."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import permutations, product
from random import Random
from typing import TYPE_CHECKING, Any, Final

import pytest

from checker.formats.columns import of_operations
from checker.formats.transactional import happened
from checker.judging import STEP_LIMIT
from checker.transactions.judge import judge
from harness.op import Operation, OpType
from harness.verdict import Verdict
from tests.unit.checker.transaction_orders import (
    Mop,
    any_order,
    doubled,
    is_read_committed,
    is_serial,
    is_snapshot_isolated,
    keeps_versions,
    random_history,
    real_time,
    session_order,
    transaction,
)
from tests.unit.checker.transaction_positions import positioned_history
from tests.unit.checker.transaction_rules import (
    BY_ORDERS,
    EXACT,
    NOT_WRONG,
    POSITIONED,
    SOURCES,
    contradicts,
    demanded_of_registers,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from checker.judging import Judgement

    Before = Callable[[Operation, Operation], bool]

HISTORIES: Final = 300
IN_A_NIGHT: Final = 10_000


def judged(operations: Sequence[Operation], model: str) -> Judgement:
    """Returns the judgement of a history of lists."""
    return judge(of_operations(operations), workload="list-append", model=model)


@pytest.mark.parametrize("model", BY_ORDERS)
@pytest.mark.parametrize("first", [0, pytest.param(1, marks=pytest.mark.night)])
def test_lists_are_decided_as_by_every_order(model: str, first: int) -> None:
    """A history has an anomaly that the model prohibits exactly if no order of its transactions explains the answers."""
    decide = BY_ORDERS[model]
    verdicts = {True: 0, False: 0}
    for seed in _seeds(first):
        operations = random_history(Random(seed), most=5, lists=True)
        legal = decide(operations)
        judgement = judged(operations, model)
        assert (judgement.verdict is not Verdict.INVALID) is legal, (seed, judgement.reason, judgement.counts)
        verdicts[legal] += 1
    assert min(verdicts.values()) > sum(verdicts.values()) / 20, "both verdicts occur often"


@pytest.mark.parametrize("model", BY_ORDERS)
@pytest.mark.parametrize("first", [0, pytest.param(1, marks=pytest.mark.night)])
def test_no_verdict_on_elements_that_were_appended_twice_is_wrong(model: str, first: int) -> None:
    """A history that is valid or invalid is so by every order of its transactions; most are one of both."""
    verdicts = Counter[Verdict]()
    for seed in _seeds(first):
        random = Random(seed)
        operations = doubled(random, random_history(random, most=5, lists=True))
        judgement = judged(operations, model)
        assert not contradicts(judgement, legal=BY_ORDERS[model](operations), demand=NOT_WRONG), (
            seed,
            judgement.reason,
        )
        verdicts[judgement.verdict] += 1
    assert min(verdicts.values()) > sum(verdicts.values()) / 20, "all verdicts occur often"


@pytest.mark.parametrize("lists", [True, False])
@pytest.mark.parametrize("model", BY_ORDERS)
@pytest.mark.parametrize("first", [0, pytest.param(1, marks=pytest.mark.night)])
def test_reads_of_transactions_without_an_answer_bind_if_they_happened(model: str, first: int, *, lists: bool) -> None:
    """They bind exactly if no order leaves the transaction out. For registers, no order that exists is called none."""
    decide = BY_ORDERS[model]
    only_by_them = 0
    for seed in _seeds(first):
        operations = random_history(Random(seed), most=4, lists=lists, shows=True)
        legal = decide(operations)
        workload = "list-append" if lists else "rw-register"
        judgement = judge(of_operations(happened(operations)), workload=workload, model=model)
        is_legal = judgement.verdict is not Verdict.INVALID
        assert is_legal is legal if lists else is_legal or not legal, (seed, judgement.reason, judgement.counts)
        blind = [
            replace(operation, result=None) if operation.type is OpType.INFO else operation for operation in operations
        ]
        only_by_them += (not is_legal) and judge(of_operations(blind), workload=workload, model=model).verdict is not (
            Verdict.INVALID
        )
    assert only_by_them


def test_appends_that_nobody_reads_may_have_no_order() -> None:
    """Two transactions read y first and append to x, and two others read x and append to y; the pairs cannot be disjoint."""
    mops: list[list[Any]] = [
        [["r", "yx"[number // 2], None], ["append", "xy"[number // 2], number]] for number in range(4)
    ]
    operations = [transaction(number, OpType.OK, own, start=number, end=9) for number, own in enumerate(mops)]
    assert not is_snapshot_isolated(operations, any_order)
    judgement = judged(operations, "snapshot-isolation")
    assert judgement.verdict is Verdict.INVALID
    assert judgement.counts == {"transactions": 4, "G-SI": 1}
    (anomaly,) = judgement.anomalies
    assert sorted(anomaly.rows) == [0, 1, 2, 3]
    assert sorted(anomaly.edges) == [(0, 1, "apart x"), (1, 0, ""), (2, 3, "apart y"), (3, 2, "")]
    for left_out in range(4):
        rest = [operation for operation in operations if operation.process != left_out]
        assert is_snapshot_isolated(rest, any_order)
        assert judged(rest, "snapshot-isolation").verdict is Verdict.VALID


def clauses(count: int, some: Sequence[tuple[int, ...]]) -> list[Operation]:
    """Returns a history that snapshot isolation allows exactly if clauses can be satisfied; all reads return nil.

    The comment of `overlaps.rs` has the construction. A literal is the number of a variable from 1, negative for its negation.
    """
    mops: list[list[Mop]] = [[["append", f"v{number // 2}", number % 2]] for number in range(2 * count)]
    keys = 0

    def precedes(one: int, other: int) -> None:
        """Adds an anti-dependency."""
        nonlocal keys
        keys += 1
        mops[one].insert(0, ["r", f"d{keys}", None])
        mops[other].append(["append", f"d{keys}", 0])

    for clause in some:
        copies = []
        for literal in clause:
            copies.append((len(mops), len(mops) + 1))
            mops += [[["append", f"c{len(mops) // 2}", 0]], [["append", f"c{len(mops) // 2}", 1]]]
            pair = (2 * abs(literal) - 2, 2 * abs(literal) - 1)
            # The copy has its first order if the literal is false.
            first, second = pair if literal < 0 else pair[::-1]
            precedes(second, copies[-1][1])
            precedes(copies[-1][0], first)
        for one, other in zip(copies, [*copies[1:], copies[0]], strict=True):
            precedes(one[1], other[0])
    return [transaction(number, OpType.OK, own, start=number, end=10_000) for number, own in enumerate(mops)]


@pytest.mark.parametrize("variables", [2, 3])
def test_the_order_of_unread_appends_decides_clauses(variables: int) -> None:
    """The verdict of snapshot isolation is that of clauses by all values of their variables, so the question is NP-hard.

    Clauses of two literals are all decided. Those of three may exceed the limit of steps, and then the verdict is unknown.
    """
    random = Random(3)
    verdicts = {True: 0, False: 0}
    for number in range(12):
        some = [
            tuple(random.choice([-1, 1]) * (1 + number) for number in random.sample(range(variables), variables))
            for _ in range(2 + number % 8 if variables == 2 else 2 + number)
        ]
        satisfied = any(
            all(any((literal > 0) is values[abs(literal) - 1] for literal in clause) for clause in some)
            for values in product([False, True], repeat=variables)
        )
        judgement = judged(clauses(variables, some), "snapshot-isolation")
        if variables > 2 and judgement.verdict is Verdict.UNKNOWN:
            assert judgement.figures["undecided-anomaly-types"] == ["G-SI"]
            assert "reached its limit" in judgement.reason
            assert judgement.cause == STEP_LIMIT
            continue
        assert judgement.verdict is (Verdict.VALID if satisfied else Verdict.INVALID), (some, judgement.reason)
        verdicts[satisfied] += 1
    assert min(verdicts.values()) > 1 or variables > 2, "both verdicts occur often"


@pytest.mark.parametrize("first", [0, pytest.param(1, marks=pytest.mark.night)])
def test_read_committed_is_decided_as_by_every_order(first: int) -> None:
    """The same for states that differ from key to key; a history with an internal contradiction is left out."""
    verdicts = {True: 0, False: 0}
    for seed in _seeds(first):
        operations = random_history(Random(seed), most=5, lists=True)
        judgement = judged(operations, "read-committed")
        if "internal" in judgement.figures.get("allowed-anomaly-types", ()):
            continue
        legal = is_read_committed(operations, any_order)
        assert (judgement.verdict is not Verdict.INVALID) is legal, (seed, judgement.reason, judgement.counts)
        verdicts[legal] += 1
    assert min(verdicts.values()) > sum(verdicts.values()) / 30, "both verdicts occur often"


@pytest.mark.parametrize("model", BY_ORDERS)
@pytest.mark.parametrize("first", [0, pytest.param(1, marks=pytest.mark.night)])
def test_registers_raise_no_false_alarm(model: str, first: int) -> None:
    """An invalid history of registers has no legal order, with what each legal order implies for versions and without it."""
    decide = BY_ORDERS[model]
    found_with, found_without, illegal = 0, 0, 0
    for seed in _seeds(first)[:: 1 if first else 3]:
        operations = random_history(Random(seed), most=5, lists=False)
        columns = of_operations(operations)
        without, with_sources = (
            judge(columns, workload="rw-register", model=model, sources=sources).verdict is Verdict.INVALID
            for sources in ((), SOURCES[model])
        )
        legal = decide(operations)
        assert not (legal and (without or with_sources)), seed
        assert with_sources or not without, (seed, "more is known of the versions, and less is found")
        illegal, found_with, found_without = illegal + (not legal), found_with + with_sources, found_without + without
    assert found_without > illegal / 3
    assert found_with > illegal / 2


@pytest.mark.parametrize("first", [0, pytest.param(1, marks=pytest.mark.night)])
@pytest.mark.parametrize(
    ("source", "order"),
    [("writes-follow-reads", any_order), ("sequential-keys", session_order), ("linearizable-keys", real_time)],
)
def test_each_source_of_versions_raises_no_false_alarm(source: str, order: Before, first: int) -> None:
    """An invalid history has no serial order whose versions are as the source says; and more is found with the source."""
    found_with, found_without, illegal = 0, 0, 0
    for seed in _seeds(first):
        operations = random_history(Random(seed), most=5, lists=False)
        columns = of_operations(operations)
        without, with_source = (
            judge(columns, workload="rw-register", model="serializable", sources=sources).verdict is Verdict.INVALID
            for sources in ((), (source,))
        )
        legal = is_serial(operations, any_order, keeps_versions(order))
        assert not (legal and with_source), seed
        assert with_source or not without, (seed, "more is known of the versions, and less is found")
        illegal, found_with, found_without = illegal + (not legal), found_with + with_source, found_without + without
    assert found_without < found_with or source == "writes-follow-reads"  # such histories are rare among these
    assert found_with > illegal / 2


@pytest.mark.parametrize("first", [0, pytest.param(1, marks=pytest.mark.night)])
@pytest.mark.parametrize(("source", "order"), [("sequential-keys", session_order), ("linearizable-keys", real_time)])
def test_the_assumptions_about_keys_are_exact_for_lists(source: str, order: Before, first: int) -> None:
    """A history is invalid exactly if it has no serial order whose versions of each key are as the source says."""
    outcomes: Counter[tuple[bool, bool]] = Counter()
    for seed in _seeds(first):
        operations = random_history(Random(seed), most=5, lists=True)
        columns = of_operations(operations)
        without, with_source = (
            judge(columns, workload="list-append", model="serializable", sources=sources).verdict is Verdict.INVALID
            for sources in ((), (source,))
        )
        legal = is_serial(operations, any_order, keeps_versions(order))
        assert legal is not with_source, seed
        outcomes[without, with_source] += 1
    assert not outcomes[True, False]
    assert outcomes[False, True] > 5
    assert outcomes[False, False] > 50


def _seeds(first: int) -> range:
    """Returns seeds; the first ones, or many others for a night."""
    return range(first * HISTORIES, HISTORIES if not first else HISTORIES + IN_A_NIGHT)


@pytest.mark.parametrize("model", ["read-atomic", "causal-cerone"])
@pytest.mark.parametrize("first", [0, pytest.param(1, marks=pytest.mark.night)])
def test_atomic_visibility_orders_what_a_transaction_saw(model: str, first: int) -> None:
    """A history is invalid only if no order of its writers is one of the model; for read atomic, exactly then."""
    outcomes: Counter[tuple[bool, bool]] = Counter()
    for seed in _seeds(first):
        operations = random_history(Random(seed), most=4, lists=False)
        read = {(key, value) for operation in operations for f, key, value in operation.result or () if f == "r"}
        rows = [
            row
            for row, operation in enumerate(operations)
            if operation.type is OpType.OK
            or any(f == "w" and (key, value) in read for f, key, value in operation.value)
        ]
        legal = any(
            POSITIONED[model]([replace(operation, order=order.get(row)) for row, operation in enumerate(operations)])
            for order in (dict(zip(rows, some, strict=True)) for some in permutations(range(len(rows))))
        )
        judgement = judge(of_operations(operations), workload="rw-register", model=model, sources=["atomic-visibility"])
        is_invalid = judgement.verdict is Verdict.INVALID
        assert not (legal and is_invalid), (seed, judgement.reason)
        assert model != "read-atomic" or legal is not is_invalid, (seed, judgement.reason)
        outcomes[legal, is_invalid] += 1
    assert outcomes[False, True] > outcomes[False, False]


@pytest.mark.parametrize("first", [0, pytest.param(1, marks=pytest.mark.night)])
def test_registers_with_the_systems_order_are_decided_as_lists(first: int) -> None:
    """With an order of all versions, the verdict of a model is that of its definition; some refinements are not searched."""
    verdicts: dict[tuple[str, bool], int] = {}
    names = list(POSITIONED)
    for seed in _seeds(first):
        operations = positioned_history(Random(seed), most=4)
        for model in (names[seed % len(names)], names[seed // 2 % len(names)]):
            judgement = of_positions(operations, model)
            demand = demanded_of_registers(operations, judgement, model)
            legal = POSITIONED[model](operations)
            assert not contradicts(judgement, legal=legal, demand=demand), (
                seed,
                model,
                judgement.reason,
                judgement.counts,
            )
            verdicts[demand, legal] = verdicts.get((demand, legal), 0) + 1
    assert verdicts[EXACT, False] > sum(verdicts.values()) / 20, "both verdicts occur often"


def of_positions(operations: Sequence[Operation], model: str) -> Judgement:
    """Returns the judgement of registers with the system's own order."""
    return judge(of_operations(operations), workload="rw-register", model=model, sources=["transaction-order"])
