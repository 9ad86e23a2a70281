"""The summary of a suite: on the terminal, as JSON, and as annotations of GitHub Actions.

Only the name distinguishes a case from others, so names are never cut. Reasons are not cut either.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from rich.padding import Padding
from rich.text import Text

from harness.console.plain import counted, one_line, plain
from harness.console.terminal import annotation
from harness.suites.case_result import standing
from harness.verdict import Verdict
from results.words.formatting import seconds

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from rich.console import Console

    from harness.op import Value
    from harness.suites.case import Case
    from harness.suites.case_result import CaseResult

COLOURS = {True: "green", False: "bold red"}
SIGNS = {True: "✓", False: "✗"}
INDENT = 2


def standing_of(results: Sequence[CaseResult], counts: tuple[int, int]) -> str:
    """Returns how many cases were as expected.

    Args:
        results: The result of each case that ran.
        counts: The number of cases that should run, and of all cases of the suite.
    """
    selected, cases = counts
    return standing(passed=sum(result.passed for result in results), ran=len(results), selected=selected, cases=cases)


def print_summary(console: Console, results: Sequence[CaseResult], counts: tuple[int, int]) -> None:
    """Prints each case with its verdict and its whole reason, and the reproduce lines of the failed cases.

    Args:
        console: The console.
        results: The result of each case that ran.
        counts: The number of cases that should run, and of all cases of the suite.
    """
    if results:
        console.print()
    width = max((len(result.ended) for result in results), default=0)
    for result in results:
        console.print(
            Text.assemble(
                (f"{SIGNS[result.passed]} {result.ended:<{width}}", COLOURS[result.passed]),
                f"  {plain(result.case.name)}  ",
                (seconds(result.seconds), "dim"),
            )
        )
        for line in _details(result):
            console.print(Padding(Text(line), (0, 0, 0, INDENT), expand=False))
    failed = [result for result in results if not result.passed]
    if failed:
        console.print()
    for result in failed:
        console.print(Text(plain(result.case.name), "bold"), soft_wrap=True)
        console.print(Text.assemble(("  reproduce  ", "dim"), one_line(result.case.reproduce)), soft_wrap=True)
    as_known = sum(result.failed_as_known and result.passed for result in results)
    console.print(
        standing_of(results, counts) + (f"; {as_known} of them by known failures" if as_known else ""), soft_wrap=True
    )


def _details(result: CaseResult) -> Iterator[str]:
    yield one_line(result.why)
    if result.left_out:
        yield f"Left out of the faults: {', '.join(one_line(kind) for kind in result.left_out)}."


def print_cases(console: Console, cases: Sequence[Case], seed: int, workload_s: float) -> None:
    """Prints the cases that would run, each with its command.

    Args:
        console: The console.
        cases: The cases.
        seed: The suite's seed.
        workload_s: The sum of the durations of their workloads.
    """
    for case in cases:
        notes = [f"expects {case.expect}"] if case.expect is not Verdict.VALID or case.runs > 1 else []
        notes += [f"in at least {case.at_least} of {case.runs} runs"] if case.runs > 1 else []
        notes += [str(threshold) for threshold in case.thresholds]
        console.print(Text.assemble((plain(case.name), "bold"), f"  {'; '.join(notes)}".rstrip()))
        console.print(Text(f"  {shlex.join(['labrys', *case.arguments()])}"), soft_wrap=True)
    total = f"{counted(len(cases), 'case')} of seed {seed}, whose workloads take {seconds(workload_s)}"
    console.print(f"{total}; nothing was run", soft_wrap=True)


def cases_json(cases: Sequence[Case]) -> list[Value]:
    """Returns the cases that would run, JSON-like."""
    return [
        {
            "name": case.name,
            "expect": str(case.expect),
            "thresholds": [str(threshold) for threshold in case.thresholds],
            "seed": str(case.seed),
            "command": ["labrys", *case.arguments()],
        }
        for case in cases
    ]


def summary_json(
    name: str, seed: int, folder: Path, results: Sequence[CaseResult], counts: tuple[int, int]
) -> dict[str, Value]:
    """Returns the output of `labrys suite --format json`."""
    return {
        "suite": name,
        "seed": str(seed),
        "folder": str(folder),
        "selected": counts[0],
        "total": counts[1],
        "passed": all(result.passed for result in results),
        "cases": [
            {
                "name": result.case.name,
                "passed": result.passed,
                "valid": None if result.verdict is None else result.verdict.as_json,
                "expect": str(result.case.expect),
                "exit_code": result.exit_code,
                "reason": result.why,
                "known_failures": result.failed_as_known,
                "crossed": list(result.outcome.crossed),
                "left_out": list(result.left_out),
                "seconds": result.seconds,
                "run": result.run,
                "reproduce": result.case.reproduce,
            }
            for result in results
        ],
    }


def github_lines(name: str, results: Sequence[CaseResult], counts: tuple[int, int]) -> Iterator[str]:
    """Yields an annotation of GitHub Actions for each failed case, and a notice with the totals."""
    for result in results:
        if not result.passed:
            level = "warning" if result.undecided else "error"
            yield annotation(
                level, f"{name} {result.case.name}", f"{result.ended}: {result.why}\n{result.case.reproduce}"
            )
    yield annotation("notice", name, standing_of(results, counts))
