"""Carries out a run of programs in virtual time again, and compares what the programs got and said.

A program can do what no seed repeats: read the clock, draw random numbers, or wait by itself. Nobody but a second run can tell.
So the part `repeatable` of the verdict says whether the second run was the same, or where it first differs.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Final

from commands.run.trial import Unobserved, carried_out
from harness.console.plain import counted, one_line
from harness.errors import LabrysError
from harness.verdict import Part, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from commands.options.compose import Settled
    from harness.run import RunResult
    from results.store.store import Run

REPEATABLE: Final = "repeatable"
MESSAGES: Final = "messages.log"
MAX_LINE: Final = 200
NO_LINE: Final = "nothing"


def repeated(settled: Settled, first: RunResult, folder: Run) -> Part:  # noqa: ARG001 - as `commands.run.executions.compared`
    """Carries out a run again, and returns the part `repeatable`.

    Args:
        settled: The options of the run.
        first: What the first run left, with its logs.
        folder: The folder of the run.
    """
    try:
        with carried_out(settled, lambda _: Unobserved()) as (_, again, _):
            if again.interrupted or again.error is not None:
                why = again.error or "it was interrupted"
                return _part(Verdict.UNKNOWN, f"The second run with this seed did not end: {one_line(why)}.")
            one, other = _messages(first.logs), _messages(again.logs)
            silent = {*first.logs, *again.logs} - {*one, *other}
            return part_of(*compared(one, other), sorted(silent))
    except LabrysError as error:
        return _part(Verdict.UNKNOWN, f"The second run with this seed did not begin: {one_line(str(error))}.")


def part_of(lines: int, difference: str | None, silent: Sequence[str] = ()) -> Part:
    """Returns the part `repeatable` of a comparison; see `compared`.

    Args:
        lines: The number of equal lines.
        difference: The first difference.
        silent: The nodes that left no transcript in either run.
    """
    if difference is not None:
        return _part(Verdict.UNKNOWN, f"The seed does not repeat this run. {difference}")
    if not lines:
        return _part(Verdict.UNKNOWN, "Neither run left a message, so nothing was compared.")
    if silent:
        same = f"A second run with this seed had the same {counted(lines, 'message')}"
        return _part(Verdict.UNKNOWN, f"{same}, but neither run left a message of {', '.join(silent)}.")
    return _part(Verdict.VALID, f"A second run with this seed had the same {counted(lines, 'message')}.")


def _part(verdict: Verdict, reason: str) -> Part:
    return Part(name=REPEATABLE, verdict=verdict, reason=reason, extra=True)


def _messages(logs: Mapping[str, Sequence[Path]]) -> dict[str, Path]:
    """Returns the transcript of each node."""
    return {node: path for node, paths in logs.items() for path in paths if path.name == MESSAGES}


def compared(one: Mapping[str, Path], other: Mapping[str, Path]) -> tuple[int, str | None]:
    """Compares the transcripts of two runs.

    Returns:
        The number of equal lines; and the first difference in the order of time as a sentence, None if there is none.
    """
    equal, differences = 0, []
    for node in sorted({*one, *other}):
        pairs = itertools.zip_longest(_lines(one.get(node)), _lines(other.get(node)))
        for number, (first, second) in enumerate(pairs, 1):
            if first != second:
                times = [_seconds(line) for line in (first, second) if line is not None]
                differences.append((min(times), node, number, first, second))
                break
            equal += first is not None and first[:1].isdecimal()  # a last line in words says what is left out
    if not differences:
        return equal, None
    _, node, number, first, second = min(differences, key=lambda difference: difference[:3])
    return equal, (
        f"The first difference is in message {number} of {node}: {_shown(first)} in the first run, and {_shown(second)} in the "
        "second."
    )


def _lines(path: Path | None) -> Iterator[str]:
    if path is not None:
        with path.open(encoding="utf-8", errors="replace") as lines:
            yield from lines


def _seconds(line: str) -> float:
    try:
        return float(line.partition(" ")[0])
    except ValueError:
        return 0.0


def _shown(line: str | None) -> str:
    return NO_LINE if line is None else one_line(line.rstrip("\n"))[:MAX_LINE]
