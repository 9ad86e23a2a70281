"""Histories in which a value was written to a key twice, or is the initial one: a read of it does not tell its writer.

Only such reads are lost. The kernel leaves them out, and judges the rest (`checker/kernel/src/transactions/doubled.rs`): what
contradicts a model there contradicts it in the whole history. If there are none, the verdict is that of the history.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from checker.judging import UNSUITED, Judgement
from checker.values import decode_value
from harness.console.documents import shown
from harness.console.plain import counted
from harness.verdict import Verdict

if TYPE_CHECKING:
    from checker._kernel import LeftOut, WrittenTwice
    from checker.formats.columns import Columns


def of_the_rest(rest: Judgement, history: Columns, twice: LeftOut) -> Judgement:
    """Returns the judgement of a history, from that of all but the reads that do not tell their writer."""
    reads = twice.reads
    if not reads:
        return rest
    anomaly = written_twice(history, twice.first)
    more = f" It is so with {counted(twice.values - 1, 'more value')}." if twice.values > 1 else ""
    are = "was" if reads == 1 else "were"
    left = f"{anomaly.reason}{more} So {counted(reads, 'read')} that may show several writes {are} left out."
    if rest.verdict is Verdict.INVALID:
        return replace(rest, reason=f"{rest.reason} {left}", basis=f"{left} {rest.basis}")
    return replace(
        rest,
        verdict=Verdict.UNKNOWN,
        cause=UNSUITED,
        reason=f"{left} The rest of the history shows no anomaly that is prohibited.",
    )


def written_twice(history: Columns, write: WrittenTwice) -> Judgement:
    """Returns the judgement of a history with two writes of a value, or with one of the initial value."""
    first, second = (
        f"event {history.start[row]}, micro-operation {at + 1}"
        for row, at in zip(write.rows, write.places, strict=True)
    )
    value = "nil" if write.element == "null" else shown(decode_value(write.element))
    what = f"{value} to the key {shown(decode_value(write.key))}"
    if write.rows[0] == write.rows[1] and write.places[0] == write.places[1]:
        return Judgement(
            verdict=Verdict.UNKNOWN,
            cause=UNSUITED,
            reason=f"{second[0].upper()}{second[1:]} writes {what}, which is the initial value; expected another value in each "
            "write, because a read shows its writer by the value alone.",
        )
    return Judgement(
        verdict=Verdict.UNKNOWN,
        cause=UNSUITED,
        reason=f"{second[0].upper()}{second[1:]} writes {what} again, after {first}; expected each value at most once for a "
        "key, because a read shows its writer by the value alone.",
    )
