"""The record of a run: one value from which every file, page and sentence about the run is made.

The record is made when a run ends, and can be read again from the run's folder: the test from `test.json`, the operations from
`history.jsonl`, and the rest from `results.json`. So a later version, or another machine, can make the same report again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET, Struct, UnsetType

from harness.builds import Provenance  # noqa: TC001 - members are read by their annotations
from harness.console.documents import shown
from harness.console.members import Whole, instant, read
from harness.errors import InputError
from harness.promise import PromiseTested
from harness.suites.expectation import Expectation, SuiteCase
from harness.suites.thresholds import read_threshold
from harness.verdict import Verdict
from harness.watch import Positions
from results.measure.op_outcomes import Codes
from results.record.forms import Defaults, LeftOut, StoredPromise
from results.store.errors import BadRecord

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from harness.faults import FaultRecord
    from harness.node_clocks import Clocks
    from harness.op import Operation, Value
    from harness.phases import Phase
    from harness.suites.thresholds import Threshold
    from harness.verdict import Part
    from harness.watch import Sighting
    from harness.world import Execution

TEST_FORMAT = "labrys-test"
TEST_VERSION = 1
WORLD = "world"  # of the timings


@dataclass(frozen=True, slots=True, kw_only=True)
class TestInfo:
    """A test before its run; `test.json` has its members.

    Attributes:
        name: The test's name, and the name of its folder in the store.
        seed: The root seed.
        reproduce: The command that runs the same test again.
        started_utc: The time of its start.
        system: The system under test, e.g. `dledger`.
        workload: E.g. `register`.
        nodes: The nodes' names, in order.
        versions: The versions of Labrys and of the system under test.
        options: Every option of the test with its value.
        answers: Codes of `fail` errors that a working system gives as an answer, such as a compare-and-set that did not
            match; they count as availability.
        refusals: Codes of `fail` errors that name another node; availability counts them apart.
        log_texts: Texts in log lines that tell of elections and the like; pages show only lines with one of them. Empty: any.
        left_out: Kinds of faults that `all` asked for and that are not in the plan, each with the reason.
        defaults: The `file` of defaults, and the `options` that it set; None if it set none.
        thresholds: The limits for numbers of the run.
        suite: The case of a suite, with the expectation of the suite; None if no suite runs the test.
        artifact: What the system has built for the test; None if it builds nothing.
        tested: Which promise the run tests, and who makes it; None in a record of an earlier version.
    """

    __test__ = False  # not a test class of pytest

    name: str
    seed: int
    reproduce: str
    started_utc: datetime
    system: str
    workload: str
    nodes: Sequence[str]
    versions: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, Value] = field(default_factory=dict)
    answers: Sequence[str] = ()
    refusals: Sequence[str] = ()
    log_texts: Sequence[str] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)
    defaults: Mapping[str, Value] | None = None
    thresholds: Sequence[Threshold] = ()
    suite: SuiteCase | None = None
    artifact: Provenance | None = None
    tested: PromiseTested | None = None

    @property
    def promise(self) -> str | None:
        """Returns the sentences for the first lines of a report, about the promise that the run tests."""
        return None if self.tested is None else self.tested.sentence(self.system, self.workload)

    @property
    def expectation(self) -> Expectation:
        """Returns the expectation for its run; a run without a suite is expected to be valid."""
        return Expectation() if self.suite is None else self.suite.expectation

    @property
    def system_version(self) -> str | None:
        """Returns the version of the system: that of its own name, else of a name that its name begins with, before a dash.

        `dledger-log` is a view of `dledger`, and `rocketmq-controller` a part of `rocketmq`. None if there is no such name.
        """
        names = [name for name in self.versions if f"{self.system}-".startswith(f"{name}-")]
        return self.versions[max(names, key=len)] if names else None

    @property
    def codes(self) -> Codes:
        """Returns the meaning of error codes for availability."""
        return Codes(answers=frozenset(self.answers), refusals=frozenset(self.refusals))


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """The record of a finished run.

    Attributes:
        test: The test.
        duration_s: From the run's start to its verdict.
        parts: The parts of the verdict, in the order for a reader.
        faults: The record of each fault that began, or should have begun.
        operations: The client operations, in the order of their invokes, with the final phase.
        sightings: The reported states of the nodes, only changes, in the order of time.
        other_sightings: The same of other services and groups; see `harness.watch.Watch`.
        positions: How many log entries each node had applied, poll by poll.
        clocks: The clocks of the nodes at the start of the workload; None if they are unknown.
        execution: What the programs of a simulated world did; None if there are none.
        timings: Name of a stage to seconds, e.g. `ready`, `workload`, `check`; `WORLD` is the time of the world at the start of
            the workload.
        phases: The phases of the run with their times; empty if an earlier version wrote the record.
        problems: Problems besides the test itself, as sentences.
    """

    test: TestInfo
    duration_s: float
    parts: Sequence[Part]
    faults: Sequence[FaultRecord] = ()
    operations: Sequence[Operation] = ()
    sightings: Sequence[Sighting] = ()
    other_sightings: Mapping[str, Sequence[Sighting]] = field(default_factory=dict)
    positions: Positions = field(default_factory=Positions)
    clocks: Clocks | None = None
    execution: Execution | None = None
    timings: Mapping[str, float] = field(default_factory=dict)
    phases: Sequence[Phase] = ()
    problems: Sequence[str] = ()

    def all_sightings(self) -> dict[str | None, Sequence[Sighting]]:
        """Returns `sightings` by None, and `other_sightings` by service and group."""
        found: dict[str | None, Sequence[Sighting]] = {None: self.sightings}
        return found | dict(self.other_sightings)

    def service_of(self, fault: FaultRecord) -> str | None:
        """Returns the service that a fault affects, if `other_sightings` has it; else None."""
        role = fault.planned.role
        return role if role in self.other_sightings else None


class StoredCase(Struct, frozen=True, kw_only=True):
    """The case of a suite, with the expectation of the suite."""

    name: str
    case: str
    line: str
    expect: str
    expect_during_fault: bool
    known_failures: list[str]
    expect_parts: list[str]

    def __post_init__(self) -> None:
        if self.expect not in set(Verdict):
            raise ValueError(f"expected one of {', '.join(Verdict)} in expect, found {shown(self.expect)}")


class StoredTest(Struct, frozen=True, kw_only=True):
    """The document of `test.json`; see `TestInfo`. Members that earlier versions lack have a default."""

    format: str
    version: int
    name: str
    seed: Whole
    reproduce: str
    started: str
    system: str
    workload: str
    nodes: list[str]
    versions: dict[str, str]
    options: dict[str, Any]
    answers: list[str]
    refusals: list[str] = []
    log_texts: list[str] = []
    left_out: list[LeftOut] = []
    defaults: Defaults | None = None
    thresholds: list[str] = []
    suite: StoredCase | None = None
    artifact: Provenance | None = None
    promise: StoredPromise | UnsetType | None = UNSET


def test_document(test: TestInfo) -> dict[str, Value]:
    """Returns the document of `test.json`."""
    stored = StoredTest(
        format=TEST_FORMAT,
        version=TEST_VERSION,
        name=test.name,
        seed=test.seed,
        reproduce=test.reproduce,
        started=test.started_utc.astimezone(UTC).isoformat(),
        system=test.system,
        workload=test.workload,
        nodes=list(test.nodes),
        versions=dict(test.versions),
        options=dict(test.options),
        answers=list(test.answers),
        refusals=list(test.refusals),
        log_texts=list(test.log_texts),
        left_out=[LeftOut(kind=kind, reason=reason) for kind, reason in test.left_out.items()],
        defaults=None if test.defaults is None else Defaults(**test.defaults),
        thresholds=[str(each) for each in test.thresholds],
        suite=None if test.suite is None else _stored_case(test.suite),
        artifact=test.artifact,
        promise=promise_document(test),
    )
    document: dict[str, Value] = msgspec.to_builtins(stored)
    return document


def promise_document(test: TestInfo) -> StoredPromise | UnsetType:
    """Returns the promise that a run tests, for `test.json` and `results.json`; unset for a record of an earlier version."""
    tested, sentence = test.tested, test.promise
    if tested is None or sentence is None:
        return UNSET
    return StoredPromise(tested=sentence, sentence=tested.promise, source=tested.source, others=list(tested.others))


def _tested(stored: StoredPromise) -> PromiseTested:
    return PromiseTested(promise=stored.sentence, source=stored.source, others=tuple(stored.others))


def suite_case_document(case: SuiteCase) -> dict[str, Value]:
    """Returns the case of a suite, for `test.json`."""
    document: dict[str, Value] = msgspec.to_builtins(_stored_case(case))
    return document


def _stored_case(case: SuiteCase) -> StoredCase:
    return StoredCase(
        name=case.suite,
        case=case.case,
        line=case.line,
        expect=str(case.expectation.verdict),
        expect_during_fault=case.expectation.during_fault,
        known_failures=sorted(case.expectation.known_failures),
        expect_parts=sorted(case.expectation.parts),
    )


def suite_case_from(document: Value) -> SuiteCase:
    """Reads a document of `suite_case_document`.

    Raises:
        BadRecord: It is not such a document.
    """
    return _case(read(document, StoredCase, "suite", error=BadRecord))


def _case(stored: StoredCase) -> SuiteCase:
    expectation = Expectation(
        verdict=Verdict(stored.expect),
        during_fault=stored.expect_during_fault,
        known_failures=frozenset(stored.known_failures),
        parts=frozenset(stored.expect_parts),
    )
    return SuiteCase(suite=stored.name, case=stored.case, line=stored.line, expectation=expectation)


def _thresholds(texts: Sequence[str]) -> tuple[Threshold, ...]:
    try:
        return tuple(map(read_threshold, texts))
    except InputError as error:
        raise BadRecord(f"thresholds: {error}") from error


def test_from_document(document: Value, where: str) -> TestInfo:
    """Returns the test in a document of `test.json`.

    Args:
        document: The parsed file.
        where: Its path, for errors.

    Raises:
        BadRecord: It is not such a document.
    """
    if not isinstance(document, dict) or document.get("format") != TEST_FORMAT:
        raise BadRecord(f'{where}: expected an object with "format": "{TEST_FORMAT}"')
    if document.get("version") != TEST_VERSION:
        raise BadRecord(
            f"{where}: expected version {TEST_VERSION}, got {document.get('version')!r}; use a newer labrys"
        )
    try:
        stored = read(document, StoredTest, "", error=BadRecord)
        return TestInfo(
            name=stored.name,
            seed=stored.seed,
            reproduce=stored.reproduce,
            started_utc=instant(stored.started, "started", error=BadRecord),
            system=stored.system,
            workload=stored.workload,
            nodes=tuple(stored.nodes),
            versions=stored.versions,
            options=stored.options,
            answers=tuple(stored.answers),
            refusals=tuple(stored.refusals),
            log_texts=tuple(stored.log_texts),
            left_out={left.kind: left.reason for left in stored.left_out},
            defaults=None if stored.defaults is None else msgspec.to_builtins(stored.defaults),
            thresholds=_thresholds(stored.thresholds),
            suite=None if stored.suite is None else _case(stored.suite),
            artifact=stored.artifact,
            tested=_tested(stored.promise) if isinstance(stored.promise, StoredPromise) else None,
        )
    except BadRecord as error:
        raise BadRecord(f"{where}: {error}") from error
