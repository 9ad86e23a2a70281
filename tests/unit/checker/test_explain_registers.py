"""The explanation of a register's violation: the simplest operations, in order of time, with the decisive one."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from checker.decide.question import Explaining
from checker.keyed import EXPLAINED
from checker.models import model as chosen
from checker.near.patterns import patterns
from checker.search import brute
from checker.search.encode import encode
from checker.words import value_text
from harness.op import Operation, OpType
from harness.verdict import Verdict
from tests.deciding import analysis, check_keys

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness.op import Value


def ok(process: int, f: str, value: Value, at_ms: int, result: Value = None) -> Operation:
    """Returns an operation of 10 ms that succeeded."""
    return Operation(
        process=process,
        f=f,
        value=value,
        result=value if result is None else result,
        type=OpType.OK,
        start_ns=at_ms * 1_000_000,
        end_ns=(at_ms + 10) * 1_000_000,
        invoke_index=at_ms,
        complete_index=at_ms + 10,
    )


def failed(process: int, f: str, value: Value, at_ms: int, error: str) -> Operation:
    """Returns an operation of 10 ms that failed."""
    return replace(ok(process, f, value, at_ms), type=OpType.FAIL, result=None, error=error)


def crashed(process: int, f: str, value: Value, at_ms: int) -> Operation:
    """Returns an operation that never returned."""
    return replace(ok(process, f, value, at_ms), type=OpType.INFO, result=None, complete_index=None, end_ns=None)


def explained(*history: Operation, model: str = "cas-register") -> str:
    """Returns the explanation of an invalid history."""
    result = analysis(model, history)
    assert result.valid is Verdict.INVALID
    assert brute.linearizable(chosen(model), result.counterexample) is False
    return result.explanation


def test_a_stale_read_is_told_by_the_write_that_had_completed() -> None:
    """The message has the read, the write that had replaced its value, and that value's write, each with its time."""
    assert explained(ok(2, "write", 2, 0), ok(0, "write", 4, 20), ok(1, "read", None, 31, 2)) == (
        "Process 1 read 2 at 0.031 s, but process 0's write of 4 had completed at 0.030 s. "
        "Process 2's write of 2 had completed at 0.010 s, before that write began."
    )


def test_a_stale_read_of_a_value_that_a_cas_had_replaced() -> None:
    """The message names the read, and the cas that had replaced its value, with the new value and the time."""
    history = [
        ok(2, "write", 11, 100),
        ok(1, "cas", [11, 56], 200),
        ok(1, "cas", [56, 101], 300),
        ok(6, "read", None, 400, 56),
    ]
    assert explained(*history) == (
        "Process 6 read 56 at 0.400 s, but process 1's cas from 56 to 101 had completed at 0.310 s. "
        "Process 1's cas from 11 to 56 had completed at 0.210 s, before that cas began."
    )


def test_a_stale_cas_is_told_as_one() -> None:
    """A cas that succeeded on a replaced value is a read of that value."""
    assert explained(ok(0, "write", 2, 0), ok(0, "write", 4, 20), ok(1, "cas", [2, 5], 40)) == (
        "Process 1's cas from 2 to 5 began at 0.040 s and succeeded, but process 0's write of 4 had completed at 0.030 s. "
        "Process 0's write of 2 had completed at 0.010 s, before that write began."
    )


def test_a_value_that_was_written_often_is_told_by_the_last_of_its_writes() -> None:
    """A stale read is found also if values repeat. Then the message does not name a single write."""
    history = [ok(0, "write", 1, 0), ok(0, "write", 2, 20), ok(0, "write", 1, 40), ok(0, "write", 3, 60)]
    assert explained(*history, ok(1, "read", None, 80, 1), ok(0, "write", 1, 100)) == (
        "Process 1 read 1 at 0.080 s, but process 0's write of 3 had completed at 0.070 s. "
        "The last of the 2 operations that wrote 1 until then had completed at 0.050 s, before that write began."
    )


def test_a_read_of_the_initial_value_after_a_write() -> None:
    """No operation wrote the value of such a read, so the message calls it the initial value."""
    assert explained(ok(1, "write", 387, 100), ok(5, "read", None, 200)) == (
        "Process 5 read nil at 0.200 s, but process 1's write of 387 had completed at 0.110 s. "
        "By then no process had written nil; it is the initial value."
    )


def test_a_value_seen_replaced_and_seen_again_names_who_wrote_and_who_saw() -> None:
    """The write, the read of a later value, and the read of the old value, in order of time."""
    late = replace(ok(3, "write", 4, 5), end_ns=200_000_000, complete_index=200)
    assert explained(ok(0, "write", 2, 10), late, ok(1, "read", None, 30, 4), ok(2, "read", None, 50, 2)) == (
        "Process 0's write of 2 completed at 0.020 s, process 1 read 4 at 0.040 s, but process 2 read 2 at 0.050 s. "
        "No process wrote 2 in between."
    )


def test_a_crashed_write_that_was_seen_is_known_by_who_saw_it() -> None:
    """The write never returned, so the first read of its value shows that it had taken effect."""
    history = [crashed(9, "write", 2, 0), ok(1, "read", None, 20, 2), ok(0, "write", 4, 40), ok(2, "read", None, 60, 2)]
    assert explained(*history) == (
        "Process 2 read 2 at 0.060 s, but process 0's write of 4 had completed at 0.050 s. "
        "Process 1 read 2 at 0.030 s, before that write began."
    )


def test_an_update_that_was_lost_names_both_and_the_one_write() -> None:
    """Two compare-and-sets on a value that was written once."""
    history = [ok(0, "write", 1, 0), ok(1, "cas", [1, 2], 20), ok(2, "cas", [1, 3], 25)]
    assert explained(*history) == (
        "Process 1's cas from 1 to 2 succeeded at 0.030 s, and process 2's cas from 1 to 3 succeeded at 0.035 s, "
        "but 1 was written only once, by process 0 at 0.010 s."
    )


@pytest.mark.parametrize(
    ("others", "expected"),
    [
        ([], "no process ever wrote 7."),
        (
            [failed(3, "write", 7, 0, "not-leader: n2 leads")],
            "process 3's write of 7 failed at 0.010 s (not-leader), and no other operation wrote 7.",
        ),
        ([ok(2, "write", 7, 60)], "process 2's write of 7 began only at 0.060 s."),
        (
            [failed(3, "write", 7, 0, "not-leader"), ok(2, "write", 7, 60)],
            "process 3's write of 7 failed at 0.010 s (not-leader), and process 2's write of 7 began only at 0.060 s.",
        ),
        ([failed(3, "write", 7, 70, "late")], "no process ever wrote 7."),
    ],
    ids=["nobody", "failed", "later", "failed and later", "failed later"],
)
def test_a_value_from_nowhere_says_which_case_it_is(others: list[Operation], expected: str) -> None:
    """No operation wrote it, its write failed, or its write began later: the message names the operation."""
    history = sorted([ok(1, "read", None, 30, 7), *others], key=lambda op: op.invoke_index)
    assert explained(*history) == f"Process 1 read 7 at 0.040 s, but {expected}"


def test_a_part_of_a_history_claims_nothing_of_the_rest() -> None:
    """If some operations are missing, the message does not claim that no operation wrote a value."""
    result = analysis("register", [ok(1, "read", None, 30, 7)], is_part=True)
    assert result.explanation == (
        "Process 1 read 7 at 0.040 s, but no operation that wrote 7 can have taken effect by then."
    )


def test_a_stale_read_beats_what_takes_more_operations() -> None:
    """The simplest counterexample is explained, even if another one ends earlier."""
    flips = [replace(ok(p, "write", 10 + p, 1), end_ns=90_000_000, complete_index=90 + p) for p in (0, 1)]
    reads = [ok(2, "read", None, at, value) for at, value in ((10, 10), (25, 11), (40, 10), (55, 11))]
    simple = [ok(4, "write", 2, 100), ok(4, "write", 3, 120), ok(5, "read", None, 140, 2)]
    result = analysis("register", [flips[0], replace(flips[1], invoke_index=2), *reads, *simple])
    assert result.op == reads[2]
    assert (result.rank, result.counterexample, result.culprit) == (3, tuple(simple), simple[2])
    assert result.to_json()["culprit"]["index"] == simple[2].complete_index


def test_a_key_without_a_counterexample_is_told_in_short_by_what_the_analyzer_names() -> None:
    """The analyzer knows which cas had replaced the value of a stale read."""
    history = [ok(0, "write", 1, 0), ok(0, "cas", [1, 2], 20), ok(0, "cas", [2, 3], 40), ok(1, "read", None, 60, 1)]
    result = analysis("cas-register", history, counterexample=False)
    assert (result.counterexample, result.rank) == ((), None)
    assert result.explanation == (
        "Process 1 read 1 at 0.060 s, but process 0's cas from 1 to 2 had completed at 0.030 s."
    )


def test_what_had_not_returned_is_no_contradiction() -> None:
    """A read that was open at the failure, with a value written after it, does not belong to the counterexample."""

    def txn(process: int, micros: list[Value], at_ms: int, end_ms: int) -> Operation:
        return replace(ok(process, "txn", micros, at_ms), complete_index=end_ms, end_ns=end_ms * 1_000_000)

    write, read = txn(0, [["w", "x", 1]], 0, 10), txn(1, [["r", "x", 0]], 20, 40)
    open_read, later = txn(2, [["r", "x", 5]], 25, 100), txn(0, [["w", "x", 5]], 50, 60)
    result = analysis("multi-register", [write, read, open_read, later])
    assert result.op == read
    assert result.counterexample == (write, read)
    assert result.culprit == read
    assert "the registers can only have held {x 1}, and no operation that was still open" in result.explanation


def test_no_operations_are_unknown() -> None:
    """Of an object and of a whole history, or as requested."""
    for nothing in (analysis("register", []), check_keys("register", [])):
        assert nothing.valid is Verdict.UNKNOWN
        assert nothing.explanation == "There are no operations, so nothing was tested."
        assert nothing.to_json()["cause"] == "empty"
    assert analysis("register", [], empty=Verdict.VALID).valid is Verdict.VALID
    assert check_keys("register", [], empty=Verdict.VALID).valid is Verdict.VALID


def test_times_have_as_many_decimals_as_tell_them_apart() -> None:
    """Three digits, or as many as needed. Numbers distinguish two events at the same instant."""
    first, second = ok(0, "write", 1, 1), ok(0, "write", 2, 20)
    near = replace(ok(1, "read", None, 40, 1), start_ns=30_000_400)
    assert "read 1 at 0.0300004 s, but process 0's write of 2 had completed at 0.0300000 s" in explained(
        first, second, near
    )
    same = replace(near, start_ns=30_000_000)
    assert "read 1 at 0.030 s (event 40), but process 0's write of 2 had completed at 0.030 s (event 30)" in explained(
        first, second, same
    )
    untimed = [replace(op, start_ns=0, end_ns=0) for op in (first, second, near)]
    assert "read 1 at event 40, but process 0's write of 2 had completed at event 30" in explained(*untimed)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "nil"),
        (True, "true"),
        (["r", ["x", None]], "[r [x nil]]"),
        ("a b", '"a b"'),
        ("nil", '"nil"'),
        ({"x": 1, "y": [2]}, "{x 1, y [2]}"),
        (["x" * 30] * 9, f"[{'x' * 30} {'x' * 27}…"),
    ],
)
def test_values_are_written_as_jepsen_writes_them(value: Value, shown: str) -> None:
    """Values do not look like Python's. A long one is shortened."""
    assert value_text(value) == shown


def test_every_explained_key_has_a_rank_and_the_first_is_always_explained(
    operation: Callable[..., Operation],
) -> None:
    """The requested number of keys get a counterexample, in order of the violations, while time lasts."""
    history = [
        op
        for index in range(12)
        for op in (
            operation(index, "write", 1, 10 * index, 10 * index + 1, 1, key=f"k{index}"),
            operation(index, "read", None, 10 * index + 2, 10 * index + 3, key=f"k{index}"),
        )
    ]
    by_default, five, hurried = (
        [a.rank for a in check_keys("register", history, explaining=explaining).keys.values()]
        for explaining in (Explaining(), Explaining(most=5), Explaining(most=5, limit_s=0.0))
    )
    assert by_default == [2] * EXPLAINED + [None] * 2
    assert five == [2] * 5 + [None] * 7
    assert hurried == [2] + [None] * 11
    assert all(a.op is not None and a.explanation for a in check_keys("register", history).keys.values())


@pytest.mark.parametrize("unique", [True, False])
def test_patterns_are_contradictions(draw: Callable[..., Any], unique: bool) -> None:
    """Each pattern in a part of a random history is invalid by itself, by brute force."""
    random = Random(f"patterns {unique}")
    kinds: Counter[str] = Counter()
    for number in range(1500):
        options = {"failed_cas": "observe"} if number % 3 == 0 else {}
        model, operations = draw("cas-register", random, longest=10, unique=unique, options=options)
        all_patterns = patterns(encode(model, operations))
        for pattern in all_patterns:
            kinds[pattern.kind] += 1
            assert brute.linearizable(model, pattern.operations) is False, (pattern, operations)
        if all_patterns:
            assert brute.linearizable(model, operations) is False, (all_patterns, operations)
    assert kinds.keys() == {"phantom", "future", "stale", "lost-update"}
