"""The verdicts of the benchmark's user models equal those of brute force, and its planted mistakes are mistakes."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from random import Random
from typing import TYPE_CHECKING

import pytest

from benchmarks.checker.own import CAPACITY, random_table
from benchmarks.checker.own_cases import SETTINGS, own_cases
from benchmarks.checker.peer import Answer
from benchmarks.checker.run import Decidable, Ours, Row, Table
from benchmarks.checker.subjects import PLACES, AutomatonSubject, BankSubject, StoreSubject
from benchmarks.checker.window import refuted
from checker.search import brute
from harness.op import Operation, OpType
from harness.verdict import Verdict
from tests.deciding import analysis

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from benchmarks.checker.subjects import Subject

SUBJECTS: list[tuple[str, Callable[[], Subject]]] = [
    *((name, make) for name, make, _ in SETTINGS),
    ("bank", BankSubject),
    ("store", StoreSubject),
    *((f"automaton {i}", partial(AutomatonSubject, f"automaton {i}")) for i in (0, 12)),
]
EACH = pytest.mark.parametrize("make", [make for _, make in SUBJECTS], ids=[name for name, _ in SUBJECTS])


def test_automata_have_the_sizes_that_are_said() -> None:
    """States, kinds and answers are within their bounds."""
    for seed in map(str, range(50)):
        table = random_table(seed)
        assert 2 <= len(table) <= 12
        assert 3 <= len(table[0]) <= 8
        assert all(after < len(table) and answer < 3 for row in table for after, answer in row)


@EACH
def test_what_a_simulated_object_does_is_legal(make: Callable[[], Subject]) -> None:
    """The object and its model are written independently and agree."""
    for number in range(5):
        subject = make()
        operations = subject.history(count=300, processes=3, crashed=3, seed=str(number))
        assert len(operations) == 300
        assert sum(op.type is OpType.INFO for op in operations) == 3
        assert analysis(subject.model, operations).valid is Verdict.VALID


@EACH
def test_the_search_says_what_the_brute_force_says(make: Callable[[], Subject]) -> None:
    """Short histories, half of them with exchanged answers, also between refused and accepted operations."""
    seen = set()
    for number in range(24):
        subject = make()
        random = Random(number)
        operations = subject.history(count=12, processes=4, crashed=number % 3, seed=str(number))
        if number % 2:
            operations = _exchanged(operations, random)
        truth = Verdict.VALID if brute.linearizable(subject.model, operations) else Verdict.INVALID
        seen.add(truth)
        for algorithm in ("auto", "linear", "wgl"):
            assert analysis(subject.model, operations, algorithm=algorithm, counterexample=False).valid is truth, (
                operations
            )
    assert seen == {Verdict.VALID, Verdict.INVALID}


@EACH
@pytest.mark.parametrize("place", PLACES)
def test_a_planted_mistake_is_one(make: Callable[[], Subject], place: str) -> None:
    """One answer differs, and no order explains it."""
    for number in range(2):
        subject = make()
        operations = subject.history(count=150, processes=3, crashed=2, seed=str(number))
        changed = subject.with_mistake(operations, PLACES[place])
        [(at, old, new)] = [(i, a, b) for i, (a, b) in enumerate(zip(operations, changed, strict=True)) if a != b]
        assert replace(new, result=old.result) == old
        assert brute.linearizable(subject.model, operations)
        assert not brute.linearizable(subject.model, changed), (at, old, new)


def test_what_a_window_refutes_is_invalid() -> None:
    """The proof from a few events is sound, and finds some mistakes."""
    invalid_count = 0
    for number in range(16):
        subject = AutomatonSubject(f"window {number}")
        random = Random(number)
        operations = subject.history(count=40, processes=3, crashed=1, seed=str(number))
        changed = _exchanged(operations, random)
        truth = brute.linearizable(subject.model, changed)
        states = range(len(subject.model.table))
        refutes = [refuted(subject.model, states, changed, i) for i in (10, 30)]
        assert not (truth and any(refutes)), changed
        assert not any(refuted(subject.model, states, operations, i) for i in (10, 30) if operations[i].complete_index)
        invalid_count += any(refutes)
    assert invalid_count >= 3


def test_rows_are_found_by_their_names() -> None:
    """A pattern selects rows. The name has the verdict by construction."""
    cases = list(own_cases("stack, 1,000"))
    assert [case.name.rsplit(", ", 1)[1] for case in cases] == ["valid", *PLACES]
    assert [case.valid for case in cases] == [True, False, False, False]
    assert len(cases[0].histories[0]) == 1_000
    assert CAPACITY == 4  # as in porcupine/stack.go


def test_the_table_tells_contradictions_and_what_nobody_decides(capsys: pytest.CaptureFixture[str]) -> None:
    """A verdict counts as wrong if it contradicts the other side or the construction. Without a verdict there is no ratio."""
    decidable = Decidable(
        prepare=lambda: lambda _: [], whole=None, porcupine=("automaton", "0,0"), lines=list, valid=False, share=1.0
    )
    table = Table("some")
    for name, ours, theirs in [
        ("agreed", "invalid", "invalid"),
        ("open", "unknown", "unknown"),
        ("lenient", "valid", "unknown"),
        ("strict", "invalid", "valid"),
    ]:
        row = Row(name=name, histories=[decidable])
        table.add(row, [Ours(verdict=ours, seconds=1.0, whole=None, steps=1)], [Answer(verdict=theirs, seconds=4.0)])
    assert table.disagreements == 2
    table.summary()
    shown = capsys.readouterr().out
    assert "3 rows: geometric mean 4.0" in shown
    assert "Neither side decides within the limit (1 rows):\n  open\n" in shown
    assert "BUT the history is invalid, ours says valid, porcupine says unknown" in shown


def _exchanged(operations: Sequence[Operation], random: Random) -> list[Operation]:
    """Returns the operations with one answer exchanged for that of another operation with the same function."""
    returned = [i for i, op in enumerate(operations) if op.type is not OpType.INFO]
    random.shuffle(returned)
    for i in returned:
        one = operations[i]
        others = [
            op
            for op in operations
            if op.f == one.f and op.type is not OpType.INFO and (op.result, op.type) != (one.result, one.type)
        ]
        if others:
            other = random.choice(others)
            changed = list(operations)
            changed[i] = replace(one, result=other.result, type=other.type)
            return changed
    return list(operations)
