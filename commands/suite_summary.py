"""What a suite tells: on the terminal, as JSON, and as annotations of GitHub Actions.

Cases are told apart by their names alone, so a name is never cut, and neither is a reason.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from rich.padding import Padding
from rich.text import Text

from harness.plain import one_line, plain
from harness.terminal import annotation
from harness.verdict import Verdict
from results.formatting import seconds

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from rich.console import Console

    from harness.op import Value
    from harness.suite import Case, CaseResult

COLOURS = {True: "green", False: "bold red"}
SIGNS = {True: "✓", False: "✗"}
INDENT = 2


def print_summary(console: Console, results: Sequence[CaseResult]) -> None:
    """Prints each case with its verdict and its whole reason, and the reproduce lines of those that failed."""
    if results:
        console.print()
    width = max((len(outcome(result)) for result in results), default=0)
    for result in results:
        console.print(
            Text.assemble(
                (f"{SIGNS[result.passed]} {outcome(result):<{width}}", COLOURS[result.passed]),
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
        console.print(Text.assemble(("reproduce  ", "dim"), one_line(result.reproduce)), soft_wrap=True)
    as_known = sum(result.failed_as_known and result.passed for result in results)
    console.print(
        f"{len(results) - len(failed)} of {len(results)} cases were as expected"
        + (f", {as_known} of them by known failures" if as_known else "")
    )


def outcome(result: CaseResult) -> str:
    """Returns how a case ended, with what was expected where that is not `valid`."""
    if result.verdict is None:
        return f"error {result.exit_code}"
    if result.crossed:
        return f"{result.verdict}, {'crossed a threshold' if result.behind is None else 'thresholds unknown'}"
    if result.failed_as_known:
        return f"{result.verdict}, as known"
    if result.verdict is result.case.expect:
        return str(result.verdict) if result.verdict is Verdict.VALID else f"{result.verdict}, as expected"
    return f"{result.verdict}, expected {result.case.expect}"


def _details(result: CaseResult) -> Iterator[str]:
    yield one_line(result.why)
    if result.left_out:
        yield f"Left out of the faults: {', '.join(one_line(kind) for kind in result.left_out)}."


def print_cases(console: Console, cases: Sequence[Case], workload_s: float) -> None:
    """Prints the cases that would run, each with its command.

    Args:
        console: Where to print.
        cases: The cases.
        workload_s: How long their workloads take together.
    """
    for case in cases:
        told = [f"expects {case.expect}"] if case.expect is not Verdict.VALID or case.runs > 1 else []
        told += [f"in at least {case.at_least} of {case.runs} runs"] if case.runs > 1 else []
        told += [str(threshold) for threshold in case.thresholds]
        console.print(Text.assemble((plain(case.name), "bold"), f"  {'; '.join(told)}".rstrip()))
        console.print(Text(f"  {shlex.join(['labrys', *case.arguments()])}"), soft_wrap=True)
    plural = "" if len(cases) == 1 else "s"
    console.print(f"{len(cases)} case{plural}, whose workloads take {seconds(workload_s)}; nothing was run")


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


def summary_json(name: str, seed: int, folder: Path, results: Sequence[CaseResult]) -> dict[str, Value]:
    """Returns what `labrys suite --format json` prints."""
    return {
        "suite": name,
        "seed": str(seed),
        "folder": str(folder),
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
                "crossed": list(result.crossed),
                "left_out": list(result.left_out),
                "seconds": result.seconds,
                "run": result.run,
                "reproduce": result.reproduce,
            }
            for result in results
        ],
    }


def github_lines(name: str, results: Sequence[CaseResult]) -> Iterator[str]:
    """Yields a line of GitHub Actions for each case that failed, and a notice with the sum."""
    for result in results:
        if not result.passed:
            level = "warning" if result.undecided else "error"
            yield annotation(
                level, f"{name} {result.case.name}", f"{outcome(result)}: {result.why}\n{result.reproduce}"
            )
    passed = sum(result.passed for result in results)
    yield annotation("notice", name, f"{passed} of {len(results)} cases were as expected")
