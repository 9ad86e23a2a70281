"""The results of a suite as Markdown, which CI servers show beside a build."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commands.suite.summary import SIGNS, standing_of
from harness.console.plain import one_line
from results.words.formatting import seconds
from results.words.markdown import MAX_REASON, quoted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from harness.suites.case_result import CaseResult

MAX_ROWS = 100
MAX_COMMAND = 2000


def suite_markdown(suite: str, seed: int, results: Sequence[CaseResult], *, counts: tuple[int, int]) -> str:
    """Returns a heading, a table with the cases that failed first, and the commands that run these again.

    Args:
        suite: The suite's name.
        seed: Its root seed.
        results: The result of each case that ran.
        counts: The number of cases that should run, and of all cases of the suite.
    """
    return "\n".join(_lines(suite, seed, results, counts)) + "\n"


def _lines(suite: str, seed: int, results: Sequence[CaseResult], counts: tuple[int, int]) -> Iterator[str]:
    failed = [result for result in results if not result.passed]
    yield f"## {quoted(suite)}: {standing_of(results, counts)}"
    yield ""
    yield f"The seed of the suite is {seed}."
    if results:
        yield ""
        yield "| | case | outcome | time | reason |"
        yield "|---|---|---|---|---|"
    shown = sorted(results, key=lambda result: result.passed)[:MAX_ROWS]
    for result in shown:
        yield (
            f"| {SIGNS[result.passed]} | {quoted(result.case.name)} | {result.ended} "
            f"| {seconds(result.seconds)} | {quoted(one_line(result.why), MAX_REASON)} |"
        )
    if len(results) > len(shown):
        yield ""
        yield f"The file junit.xml has {len(results) - len(shown)} more cases."
    if failed:
        yield ""
        yield "These commands run the failed cases again:"
        yield ""
    for result in failed[:MAX_ROWS]:
        yield f"- {quoted(result.case.reproduce, MAX_COMMAND)}"
