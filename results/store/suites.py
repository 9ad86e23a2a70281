"""The results of the suites in a store, for the pages of `labrys serve`.

`labrys suite` writes them to `suites/NAME/TIME/suite.json` after each case. A store may come from anyone, so each member is
checked and has a maximum size. A damaged file is a suite without results.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import PurePath
from typing import TYPE_CHECKING, Annotated, Final, Literal

from msgspec import Meta, Struct

from harness.console import below
from harness.console.documents import shown
from harness.console.members import MAX_WHOLE, Seconds, Whole, read
from harness.suites.case_result import standing
from harness.verdict import Verdict
from results.store.errors import BadRecord

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from results.store.store import Store

FORMAT: Final = "labrys-suite"
VERSION: Final = 1
FILE = "suite.json"
MAX_BYTES = 32 << 20
MAX_CASES = 500
MAX_TEXT = 2000
MAX_LEFT_OUT = 50


class StoredCaseResult(Struct, frozen=True, kw_only=True):
    """The result of a case in `suite.json`; see `harness.suites.case_result`.

    Attributes:
        passed: Whether it was as expected.
        ended: Its verdict beside the expected one.
        why: The reason, with the thresholds that it crossed.
        reproduce: The command that runs it again.
    """

    exit_code: Annotated[int, Meta(ge=-255, le=MAX_WHOLE)]
    reason: str
    seconds: Seconds
    run: str | None
    failures: list[str]
    left_out: list[str]
    fault_violations: Whole | None
    crossed: list[str]
    behind: str | None
    passed: bool
    ended: str
    why: str
    reproduce: str

    def __post_init__(self) -> None:
        for failure in self.failures:
            if failure.rpartition("=")[2] not in set(Verdict):
                raise ValueError(f"expected NAME=VERDICT in failures, found {shown(failure)}")


class StoredSuite(Struct, frozen=True, kw_only=True):
    """The document of `suite.json`.

    Attributes:
        format: The name of the format.
        version: Its version.
        suite: The suite's name.
        seed: Its seed, as text.
        cases: The names of its cases, in its order.
        selected: The names of those that should run or have run.
        digests: A digest of what each case runs and expects.
        running: The names of the cases that run now.
        results: The results so far, by case.
    """

    format: Literal["labrys-suite"]
    version: Literal[1]
    suite: str
    seed: str
    cases: list[str]
    selected: list[str]
    digests: dict[str, str]
    running: list[str]
    results: dict[str, StoredCaseResult]


def load_suite(folder: Path) -> StoredSuite:
    """Reads the `suite.json` of a folder.

    Raises:
        BadRecord: It cannot be read, or is not such a document.
    """
    try:
        with below.open_file(folder, folder / FILE) as file:
            return read(json.loads(file.read(MAX_BYTES)), StoredSuite, "", error=BadRecord)
    except (BadRecord, OSError, ValueError, RecursionError) as error:
        raise BadRecord(f"{FILE} cannot be read: {error}") from error


class State(StrEnum):
    """The state of a case."""

    PASSED = "passed"
    FAILED = "failed"
    RUNNING = "running"
    WAITING = "waiting"
    NOT_RUN = "not run"
    NOT_SELECTED = "not selected"


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseRow:
    """A case of a suite.

    Attributes:
        name: Its name.
        state: Its state.
        ended: Its verdict beside the expected one; empty without a result.
        why: The reason, with the thresholds that it crossed; empty without a result.
        reproduce: The command that runs it again; empty without a result.
        left_out: The kinds of faults that the nodes could not have.
        seconds: Its duration; None without a result.
        run: The test's name and the time of its run; None without a run.
    """

    name: str
    state: State
    ended: str = ""
    why: str = ""
    reproduce: str = ""
    left_out: tuple[str, ...] = ()
    seconds: float | None = None
    run: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteRow:
    """A suite of a store.

    Attributes:
        name: Its name.
        folder: The names of its folders: its name as a file name, and the time of its start.
        seed: Its seed.
        running: Whether it runs now.
        cases: Its cases, in its order; at most `MAX_CASES`.
        states: The number of cases in each state, of all its cases.
        problem: Why there are no results; empty if there are.
    """

    name: str
    folder: tuple[str, str]
    seed: str = ""
    running: bool = False
    cases: tuple[CaseRow, ...] = ()
    states: Mapping[str, int] = field(default_factory=dict)
    problem: str = ""

    @property
    def total(self) -> int:
        """Returns the number of all its cases."""
        return sum(self.states.values())

    def count(self, *states: str) -> int:
        """Returns the number of cases in one of these states."""
        return sum(self.states.get(state, 0) for state in states)

    @property
    def selected(self) -> int:
        """Returns the number of cases that should run or have run."""
        return self.total - self.count(State.NOT_SELECTED)

    @property
    def standing(self) -> str:
        """Returns how many cases were as expected. Of a suite that runs, no case counts as one that did not run."""
        passed, ran = self.count(State.PASSED), self.count(State.PASSED, State.FAILED)
        return standing(
            passed=passed, ran=self.selected if self.running else ran, selected=self.selected, cases=self.total
        )

    @property
    def passed(self) -> bool | None:
        """Returns whether all selected cases passed; None if none failed and some have no result."""
        if self.count(State.FAILED):
            return False
        return True if self.selected and self.count(State.PASSED) == self.selected else None


def newest_suites(store: Store, most: int) -> list[SuiteRow]:
    """Returns the newest suites of a store, newest first."""
    return [_read(store, folder) for folder in store.suites()[:most]]


def find_suite(store: Store, name: str, stamp: str) -> SuiteRow | None:
    """Returns the suite with these names of folders, if the store lists it. The names are never joined to a path."""
    return next(
        (_read(store, suite) for suite in store.suites() if (suite.parent.name, suite.name) == (name, stamp)), None
    )


def _read(store: Store, folder: Path) -> SuiteRow:
    current = store.current_suite()
    return read_suite(folder, running=current is not None and folder.resolve() == current)


def read_suite(folder: Path, *, running: bool) -> SuiteRow:
    """Returns the suite in a folder.

    Args:
        folder: The folder.
        running: Whether the suite runs now.
    """
    names = (folder.parent.name, folder.name)
    try:
        return _row(load_suite(folder), names, running=running)
    except BadRecord as error:
        return SuiteRow(name=folder.parent.name, folder=names, running=running, problem=str(error))


def _row(stored: StoredSuite, names: tuple[str, str], *, running: bool) -> SuiteRow:
    def without_result(name: str) -> State:
        if running and name in stored.running:
            return State.RUNNING
        if name not in stored.selected:
            return State.NOT_SELECTED
        return State.WAITING if running else State.NOT_RUN

    cases = [
        _case(name, stored.results[name])
        if name in stored.results
        else CaseRow(name=name[:MAX_TEXT], state=without_result(name))
        for name in stored.cases
    ]
    return SuiteRow(
        name=stored.suite[:MAX_TEXT],
        folder=names,
        seed=stored.seed[:MAX_TEXT],
        running=running,
        cases=tuple(cases[:MAX_CASES]),
        states=Counter(str(case.state) for case in cases),
    )


def _case(name: str, result: StoredCaseResult) -> CaseRow:
    parts = () if result.run is None else PurePath(result.run).parts[-2:]
    return CaseRow(
        name=name[:MAX_TEXT],
        state=State.PASSED if result.passed else State.FAILED,
        ended=result.ended[:MAX_TEXT],
        why=result.why[:MAX_TEXT],
        reproduce=result.reproduce[:MAX_TEXT],
        left_out=tuple(text[:MAX_TEXT] for text in result.left_out[:MAX_LEFT_OUT]),
        seconds=result.seconds,
        run=(parts[0], parts[1]) if len(parts) == 2 else None,
    )
