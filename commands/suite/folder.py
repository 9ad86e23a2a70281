"""The folder of a run of a suite, `store/suites/NAME/TIME/`, with `suite.json`, `junit.xml` and `summary.md`.

All three are written after each case. After an interruption, the suite goes on from its folder. `suite.json` has a digest of
each case, so that a file that changed meanwhile is noticed.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import to_builtins

from commands.suite.markdown import suite_markdown
from commands.suite.results import counting_parts
from harness.console.members import Whole, read, written
from harness.console.plain import name as plain_text
from harness.errors import InputError
from harness.outcome import RunOutcome, behind, failures
from harness.suites.case_result import CaseResult
from harness.suites.expectation import SuiteCase
from harness.suites.suite import PLAN
from harness.verdict import Verdict
from results.store.errors import BadRecord, StoreError
from results.store.store import CURRENT, SUITES, Store, fresh_folder, point, unpoint, write_text
from results.store.suites import FILE, FORMAT, VERSION, StoredCaseResult, StoredSuite, load_suite
from results.stored.junit import junit_xml, of_cases

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from harness.suites.case import Case
    from harness.suites.suite import Suite

MAX_PLAIN_NAME = 120
DIGEST_CHARACTERS = 12
MAX_NAMED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """How a suite's file differs from the one that an earlier run had.

    Attributes:
        new: The names of the cases that the earlier run did not have.
        changed: The names of the cases with another command, plan or expectation.
        removed: The names of the cases that are gone.
    """

    new: Sequence[str]
    changed: Sequence[str]
    removed: Sequence[str]

    def lines(self) -> Iterator[str]:
        """Yields what changed, and what follows from it."""
        for names, what, then in (
            (self.changed, "changed in", "; the earlier results of these cases do not count"),
            (self.new, "new in", ""),
            (self.removed, "gone from", "; the results of these cases are left out"),
        ):
            if names:
                shown = ", ".join(map(plain_text, names[:MAX_NAMED]))
                more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
                yield f"{what} the suite's file: {shown}{more}{then}"


@dataclass(frozen=True, slots=True)
class SuiteFolder:
    """The folder with the results of a suite.

    Attributes:
        path: The folder.
    """

    path: Path

    @classmethod
    def create(cls, store: Path, suite: Suite, utc: datetime) -> SuiteFolder:
        """Makes the folder of a new run of a suite."""
        parent = store / SUITES / plain_name(suite.name)
        try:
            return cls(fresh_folder(parent, utc))
        except OSError as error:
            raise StoreError(f"a folder in {parent} could not be made: {error.strerror or error}") from error

    def read(self) -> StoredSuite:
        """Returns the content of `suite.json`.

        Raises:
            InputError: It cannot be read.
        """
        try:
            return load_suite(self.path)
        except BadRecord as error:
            raise InputError(f"{self.path} has no suite to resume: {error}") from error

    def finished(self, suite: Suite) -> dict[str, CaseResult]:
        """Returns the results of the cases that finished before, by name, without those of cases that changed since.

        Raises:
            InputError: The folder belongs to another suite or seed, or cannot be read.
        """
        stored = self.read()
        if (stored.suite, stored.seed) != (suite.name, str(suite.seed)):
            raise InputError(f"{self.path / FILE} belongs to another suite or seed: {stored.suite}, seed {stored.seed}")
        changed = _changes(stored, suite).changed
        return _results(stored, [case for case in suite.cases if case.name not in changed])

    def results_of(self, cases: Iterable[Case]) -> dict[str, CaseResult]:
        """Returns the results of some cases, by name, as this folder has them.

        Raises:
            InputError: The folder cannot be read.
        """
        return _results(self.read(), cases)

    def changes(self, suite: Suite) -> Changes:
        """Returns how the suite's file differs from the one that this folder's cases are from.

        Raises:
            InputError: The folder cannot be read.
        """
        return _changes(self.read(), suite)

    def selection(self, suite: Suite) -> frozenset[str]:
        """Returns the names of the cases that its run selected. If it selected all, new cases are among them.

        Raises:
            InputError: The folder cannot be read.
        """
        stored = self.read()
        every = set(stored.cases) == set(stored.selected)
        return frozenset(case.name for case in suite.cases) if every else frozenset(stored.selected)

    def not_as_expected(self) -> frozenset[str]:
        """Returns the names of the selected cases that were not as expected, or have no result.

        Raises:
            InputError: The folder cannot be read.
        """
        stored = self.read()
        return frozenset(stored.selected) - {name for name, result in stored.results.items() if result.passed}

    @contextlib.contextmanager
    def current(self, store: Path) -> Iterator[None]:
        """Points `suites/current` of the store at this folder inside the context, for `labrys serve`."""
        link = store / SUITES / CURRENT
        try:
            link.parent.mkdir(parents=True, exist_ok=True)
            point(link, self.path)
        except OSError as error:
            raise StoreError(f"{link} could not be made: {error.strerror or error}") from error
        try:
            yield
        finally:
            unpoint(link, self.path)

    def save(
        self, suite: Suite, results: Mapping[str, CaseResult], *, selected: Collection[str], running: Sequence[str] = ()
    ) -> None:
        """Writes the results: `suite.json` for `--resume`, `junit.xml` and `summary.md` for CI.

        Args:
            suite: The suite.
            results: The results so far, by case.
            selected: The names of the cases that should run or have run.
            running: The names of the cases that run now.
        """
        stored = StoredSuite(
            format=FORMAT,
            version=VERSION,
            suite=suite.name,
            seed=str(suite.seed),
            cases=[case.name for case in suite.cases],
            selected=[case.name for case in suite.cases if case.name in selected],
            digests={case.name: digest_of(case) for case in suite.cases},
            running=list(running),
            results={name: _stored(result) for name, result in results.items()},
        )
        document = to_builtins(stored)
        write_text(self.path, self.path / FILE, json.dumps(document, indent=2, ensure_ascii=False) + "\n")
        write_text(self.path, self.path / "junit.xml", junit_xml([of_cases(suite.name, list(results.values()))]))
        counts = (len(selected), len(suite.cases))
        summary = suite_markdown(suite.name, suite.seed, list(results.values()), counts=counts)
        write_text(self.path, self.path / "summary.md", summary)


def seed_of(folder: Path) -> int:
    """Returns the seed of the suite in a folder.

    Raises:
        InputError: The folder cannot be read.
    """
    text = SuiteFolder(folder).read().seed
    try:
        return read(int(text), Whole, "seed")
    except (InputError, ValueError) as error:
        raise InputError(f"{folder} has no suite to resume: {error}") from error


def newest_folder(store: Path, suite: str) -> SuiteFolder:
    """Returns the folder of the newest run of a suite in a store.

    Raises:
        InputError: There is none.
    """
    name = plain_name(suite)
    folder = next((path for path in Store(store).suites() if path.parent.name == name), None)
    if folder is None:
        raise InputError(
            f"the store {store} has no run of the suite {plain_text(suite)!r}; run it once, or name its store"
        )
    return SuiteFolder(folder)


def digest_of(case: Case) -> str:
    """Returns a digest of what a case runs and expects, with the content of its plan."""
    expected = SuiteCase(suite="", case=case.name, line=case.line, expectation=case.expectation)
    parts = [json.dumps([case.arguments(), case.runs, case.at_least])]
    parts.append(json.dumps(written(expected), sort_keys=True))
    plan = case.options.get(PLAN)
    if isinstance(plan, str):
        with contextlib.suppress(OSError):  # the case's own command refuses a plan that it cannot read
            parts.append(hashlib.sha256(Path(plan).read_bytes()).hexdigest())
    return hashlib.sha256("\n".join(parts).encode("utf-8", "surrogatepass")).hexdigest()


def file_names(suite: Suite) -> dict[str, str]:
    """Returns a legible and unique file name for each case, by the case's name.

    So the store, `labrys serve` and the trends distinguish the runs of two cases.
    """
    plain = {case.name: plain_name(case.name) for case in suite.cases}
    times = Counter(plain.values())
    return {case: name if times[name] == 1 else _with_digest(name, case) for case, name in plain.items()}


def plain_name(text: str) -> str:
    """Returns a text as a file name; a long one is cut, and gets a digest so that it stays unique."""
    plain = re.sub(r"[^A-Za-z0-9.+-]+", "_", text).strip("_")
    plain = plain if plain[:1].isalnum() else f"s{plain}"
    return plain if len(plain) <= MAX_PLAIN_NAME else _with_digest(plain, text)


def _with_digest(plain: str, text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:DIGEST_CHARACTERS]
    return f"{plain[: MAX_PLAIN_NAME - DIGEST_CHARACTERS - 1]}-{digest}"


def _changes(stored: StoredSuite, suite: Suite) -> Changes:
    now = {case.name: case for case in suite.cases}
    return Changes(
        new=tuple(name for name in now if name not in stored.cases),
        changed=tuple(
            name for name, case in now.items() if stored.digests.get(name, digest_of(case)) != digest_of(case)
        ),
        removed=tuple(name for name in stored.cases if name not in now),
    )


def _results(stored: StoredSuite, cases: Iterable[Case]) -> dict[str, CaseResult]:
    named = {case.name: case for case in cases}
    return {name: _result(named[name], result) for name, result in stored.results.items() if name in named}


def _result(case: Case, stored: StoredCaseResult) -> CaseResult:
    verdict = next((candidate for candidate in Verdict if candidate.exit_code == stored.exit_code), None)
    return CaseResult(
        case=case,
        outcome=RunOutcome(
            judged=verdict,
            sentence=stored.reason,
            parts=counting_parts(stored.failures, stored.behind),
            error=stored.reason if verdict is None else None,
            crossed=tuple(stored.crossed),
        ),
        code=stored.exit_code,
        seconds=stored.seconds,
        run=stored.run,
        left_out=tuple(stored.left_out),
        fault_violations=stored.fault_violations,
    )


def _stored(result: CaseResult) -> StoredCaseResult:
    return StoredCaseResult(
        exit_code=result.exit_code,
        reason=result.outcome.reason,
        seconds=result.seconds,
        run=result.run,
        failures=list(failures(result.outcome.parts)),
        left_out=list(result.left_out),
        fault_violations=result.fault_violations,
        crossed=list(result.outcome.crossed),
        behind=behind(result.outcome.parts),
        passed=result.passed,
        ended=result.ended,
        why=result.why,
        reproduce=result.case.reproduce,
    )
