"""A stale read of a register is told as one, also where compare-and-sets lead from value to value."""

from __future__ import annotations

from typing import TYPE_CHECKING

from checker.analysis import analysis
from harness.op import Operation, OpType
from harness.verdict import Verdict

if TYPE_CHECKING:
    from harness.op import Value


def ok(process: int, f: str, value: Value, at_ms: int, result: Value = None) -> Operation:
    """An operation of 10 ms that succeeded."""
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


def test_a_read_of_a_value_that_a_cas_had_replaced_is_called_stale() -> None:
    """The sentence names the read, the cas that had replaced its value, by what, and when."""
    history = [
        ok(2, "write", 11, 100),
        ok(1, "cas", [11, 56], 200),
        ok(1, "cas", [56, 101], 300),
        ok(6, "read", None, 400, 56),
    ]

    found = analysis("cas-register", history)

    assert found.valid is Verdict.INVALID
    assert found.explanation == (
        "Process 6's read of 56 (0.400 s to 0.410 s) is stale: process 1's cas had replaced 56 by 101 at 0.310 s, before the "
        "read began."
    )


def test_a_read_of_the_initial_value_after_a_write_is_told_as_a_loss() -> None:
    """Nobody wrote what such a read saw, so the sentence says that it saw the register as if nothing had been written."""
    found = analysis("cas-register", [ok(1, "write", 387, 100), ok(5, "read", None, 200)])

    assert found.valid is Verdict.INVALID
    assert found.explanation == (
        "Process 1's write of 387 (0.100 s to 0.110 s) had ended before process 5's read of nil (0.200 s to 0.210 s) began, "
        "which saw nil as if nothing had been written yet."
    )


def test_the_initial_value_is_told_as_such_with_a_third_operation_too() -> None:
    """A cas that overwrote the value is named; the read still saw what nobody wrote."""
    history = [ok(1, "write", 3, 100), ok(2, "cas", [3, 4], 200), ok(5, "read", None, 300)]

    found = analysis("cas-register", history)

    assert found.valid is Verdict.INVALID
    assert found.explanation is not None
    assert found.explanation.endswith("which saw nil as if nothing had been written yet.")
