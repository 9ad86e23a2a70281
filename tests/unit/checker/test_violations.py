"""Violations are ranked by their relation to faults, then simplicity and time count; late reads come last."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from checker.decide.question import Explaining
from checker.violations import Violation, When, count, of_keys, ranked
from harness.faults import FaultRecord, PlannedFault, Proof
from harness.op import Operation, OpType
from harness.targets import AllNodes
from harness.units import NS_PER_S as S
from tests.deciding import check_keys

if TYPE_CHECKING:
    from harness.op import Value


def operation(index: int, f: str, value: Value, *, key: str, start_s: float, result: Value = None) -> Operation:
    """Returns an operation with its own process, 0.1 s long, with the events `index` and the next."""
    return Operation(
        process=index, f=f, value=value, result=result, type=OpType.OK, start_ns=round(start_s * S),
        end_ns=round(start_s * S) + S // 10, invoke_index=index, complete_index=index + 1, key=key,
    )  # fmt: skip


def stale(key: str, index: int, at_s: float) -> list[Operation]:
    """Returns a write, an overwrite, and a read of the first value: three operations."""
    return [
        operation(index, "write", 1, key=key, start_s=at_s),
        operation(index + 2, "write", 2, key=key, start_s=at_s + 0.2),
        operation(index + 4, "read", None, key=key, start_s=at_s + 0.4, result=1),
    ]


def never_written(key: str, index: int, at_s: float) -> list[Operation]:
    """Returns a read of a value that no operation wrote: one operation."""
    return [operation(index, "read", None, key=key, start_s=at_s, result=99)]


def fault(number: int, start_s: float, end_s: float, *, effective: bool = True) -> FaultRecord:
    """Returns a fault that lasts from `start_s` to `end_s`."""
    planned = PlannedFault(id=number, kind="kill", target=AllNodes(), start_s=start_s, end_s=end_s)
    return FaultRecord(
        planned=planned, targets=("n1",), start_ns=round(start_s * S), end_ns=round(end_s * S),
        proof=Proof(effective=effective, reason="seen"),
    )  # fmt: skip


def places(operations: list[Operation], *faults: FaultRecord) -> list[tuple[str | None, When, tuple[int, ...]]]:
    """Returns the violations in order: key, time, and the active faults."""
    violations = ranked(of_keys(check_keys("cas-register", operations, explaining=Explaining(most=10))), faults)
    return [(violation.key, violation.when, violation.faults) for violation in violations]


def test_a_document_has_the_beginnings_of_large_values() -> None:
    """Texts, lists and objects of any size, nested or not, make no large results.json; small values stay as they are."""
    text = "y" * (2 << 20)
    many: Value = [[text] * 50 for _ in range(50)]
    for value in (text, [text], many, {text: text}, {str(number): many for number in range(300)}, [10**4000] * 100_000):
        read = operation(0, "read", None, key="k", start_s=0, result=value)
        write = operation(2, "write", value, key="k", start_s=1)
        violation = Violation(
            key="k", kind="odd", explanation="odd", operations=[read, write], decisive=read, subject=value
        )
        assert len(json.dumps(violation.to_json())) < 400_000
    small: Value = [1, "x" * 1000, {"a": [None, 0.5, True]}, []]
    written = operation(0, "write", small, key="k", start_s=0)
    document = Violation(
        key="k", kind=None, explanation="", operations=[written], decisive=None, subject=small
    ).to_json()
    assert document["subject"] == small
    assert isinstance(document["operations"], list)
    assert document["operations"][0]["value"] == small
    cut = operation(0, "read", None, key="k", start_s=0, result=[text])
    [shown] = Violation(key="k", kind=None, explanation="", operations=[cut], decisive=None).to_json()["operations"]
    assert shown["value"] == ["y" * 1000 + f"... ({len(text)} characters)"]


def test_a_violation_during_or_after_a_fault_comes_first() -> None:
    """A violation before any fault does not show a fault's effect, even if it is simple and early."""
    operations = [*never_written("early", 0, 0.4), *stale("during", 10, 13), *stale("after", 20, 30)]
    assert places(operations, fault(0, 12, 15)) == [
        ("during", When.DURING, (0,)),
        ("after", When.AFTER, ()),
        ("early", When.BEFORE, ()),
    ]


def test_of_those_the_simplest_comes_first() -> None:
    """A violation of one operation comes before one of three, even if it follows the fault."""
    operations = [*stale("during", 0, 13), *never_written("after", 10, 30), *stale("later", 20, 14)]
    keys = [key for key, _, _ in places(operations, fault(0, 12, 15))]
    assert keys == ["after", "during", "later"]


def test_the_time_is_that_of_the_decisive_operation() -> None:
    """The stale read counts, not the writes that it contradicts. A fault that begins during the read counts too."""
    operations = stale("k", 0, 11.8)
    assert places(operations, fault(3, 12.25, 15))[0][1:] == (When.DURING, (3,))
    assert places(operations, fault(3, 11, 12.1))[0][1:] == (When.AFTER, ())
    assert places(operations, fault(3, 12.31, 15))[0][1:] == (When.BEFORE, ())


def test_a_fault_without_a_seen_effect_does_not_count() -> None:
    """Such a fault explains nothing."""
    assert places(stale("k", 0, 13), fault(0, 12, 15, effective=False))[0][1:] == (When.BEFORE, ())


def test_a_late_read_comes_after_what_is_less_simple() -> None:
    """What is gone matters more to a user than an answer that was only late."""
    late, lost = (
        Violation(key=None, kind=kind, explanation=kind, operations=stale("k", 0, 13)[:size], decisive=None)
        for kind, size in (("stale", 2), ("lost", 3))
    )
    assert [violation.kind for violation in ranked([late, lost], [])] == ["lost", "stale"]


def test_counts_add_up() -> None:
    """The form of results.json, which suites read."""
    operations = [*stale("a", 0, 1), *stale("b", 10, 13), *stale("c", 20, 14), *stale("d", 30, 40)]
    violations = ranked(of_keys(check_keys("cas-register", operations)), [fault(0, 12, 15)])
    assert count(violations) == {"total": 4, "during_faults": 2, "after_faults": 1, "before_faults": 1}
    assert violations[0].to_json()["faults"] == [0]


def test_a_valid_history_has_none() -> None:
    """Without a violation there is no ranking."""
    assert places([operation(0, "write", 1, key="k", start_s=1)]) == []
