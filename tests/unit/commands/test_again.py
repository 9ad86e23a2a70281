"""The part `repeatable`: two transcripts that are equal, that differ, and that have nothing to compare."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commands.run.again import compared, part_of
from harness.verdict import Verdict

if TYPE_CHECKING:
    from pathlib import Path


def test_a_comparison_is_valid_only_with_messages(tmp_path: Path) -> None:
    """Without a transcript, nothing was tested."""
    one, other = tmp_path / "one", tmp_path / "other"
    one.write_text("0.1 > a\n0.2 < b\n")
    other.write_text("0.1 > a\n0.3 < c\n")
    same = part_of(*compared({"n0": one}, {"n0": one}))
    assert (same.verdict, same.reason) == (
        Verdict.VALID, "A second run with this seed had the same 2 messages."
    )  # fmt: skip
    differs = part_of(*compared({"n0": one}, {"n0": other}))
    assert differs.verdict is Verdict.UNKNOWN
    assert "message 2 of n0: 0.2 < b in the first run, and 0.3 < c in the second" in differs.reason
    half = part_of(*compared({"n0": one}, {"n0": one}), ["n1", "n2"])
    assert (half.verdict, half.reason) == (
        Verdict.UNKNOWN,
        "A second run with this seed had the same 2 messages, but neither run left a message of n1, n2.",
    )
    nothing = part_of(*compared({}, {}))
    assert (nothing.verdict, nothing.reason) == (
        Verdict.UNKNOWN, "Neither run left a message, so nothing was compared."
    )  # fmt: skip
