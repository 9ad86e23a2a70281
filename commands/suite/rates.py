"""Decides the expected rates of cases by their runs in this suite and in earlier runs of the suite in the store."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from commands.suite.folder import SuiteFolder, plain_name
from harness.errors import InputError
from harness.suites.rates import decide
from results.store.store import Store

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from harness.suites.case_result import CaseResult
    from harness.suites.suite import Suite

MAX_NIGHTS: Final = 500  # earlier runs of the suite, the newest ones


def with_rates(suite: Suite, folder: SuiteFolder, store: Path, results: Sequence[CaseResult]) -> list[CaseResult]:
    """Returns the results with the decisions about their rates; see `harness.suites.rates`.

    Args:
        suite: The suite.
        folder: The folder of this run of the suite.
        store: The store, with the earlier ones.
        results: The results of this run.
    """
    cases = [case for case in suite.cases if case.expect_rate is not None]
    if not cases:
        return list(results)
    unexpected: dict[str, list[bool]] = defaultdict(list)
    for result in [*_earlier(suite, folder, store), *results]:
        if result.unexpected is not None:
            unexpected[result.case.line].append(result.unexpected)
    return [
        result
        if result.case.expect_rate is None
        else replace(result, rate=decide(result.case.expect_rate, unexpected[result.case.line]))
        for result in results
    ]


def _earlier(suite: Suite, folder: SuiteFolder, store: Path) -> Iterator[CaseResult]:
    """Yields the results of earlier runs of a suite, from the oldest on; a run that cannot be read is left out."""
    own, name = folder.path.resolve(), plain_name(suite.name)
    paths = [path for path in Store(store).suites() if path.parent.name == name and path.resolve() != own]
    for path in reversed(paths[:MAX_NIGHTS]):
        try:
            yield from (
                SuiteFolder(path).results_of(case for case in suite.cases if case.expect_rate is not None).values()
            )
        except InputError:
            continue  # a damaged folder is no trial; `labrys serve` shows it
