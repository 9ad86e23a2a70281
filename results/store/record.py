"""The record of a run: one value from which every file, page and sentence about the run is made.

The record is made when a run ends, and can be read again from the run's folder: the test from `test.json`, the operations from
`history.jsonl`, and the rest from `results.json`. So a later version, or another machine, can make the same report again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from harness.builds import Provenance
from harness.errors import InputError
from harness.faults import ROLE
from harness.suites.expectation import Expectation, SuiteCase
from harness.suites.thresholds import read_threshold
from harness.verdict import Verdict
from harness.watch import Positions
from results.measure.op_outcomes import Codes
from results.store import members as must
from results.store.errors import BadRecord

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness.faults import FaultRecord
    from harness.node_clocks import Clocks
    from harness.op import Operation, Value
    from harness.phases import Phase
    from harness.suites.thresholds import Threshold
    from harness.verdict import Part
    from harness.watch import Sighting

TEST_FORMAT = "labrys-test"
TEST_VERSION = 1


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

    @property
    def expectation(self) -> Expectation:
        """Returns the expectation for its run; a run without a suite is expected to be valid."""
        return Expectation() if self.suite is None else self.suite.expectation

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
        timings: Name of a stage to seconds, e.g. `ready`, `workload`, `check`.
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
    timings: Mapping[str, float] = field(default_factory=dict)
    phases: Sequence[Phase] = ()
    problems: Sequence[str] = ()

    def all_sightings(self) -> dict[str | None, Sequence[Sighting]]:
        """Returns `sightings` by None, and `other_sightings` by service and group."""
        found: dict[str | None, Sequence[Sighting]] = {None: self.sightings}
        return found | dict(self.other_sightings)

    def service_of(self, fault: FaultRecord) -> str | None:
        """Returns the service that a fault affects, if `other_sightings` has it; else None."""
        role = fault.planned.options.get(ROLE)
        return role if isinstance(role, str) and role in self.other_sightings else None


def test_document(test: TestInfo) -> dict[str, Value]:
    """Returns the document of `test.json`."""
    return {
        "format": TEST_FORMAT,
        "version": TEST_VERSION,
        "name": test.name,
        "seed": test.seed,
        "reproduce": test.reproduce,
        "started": test.started_utc.astimezone(UTC).isoformat(),
        "system": test.system,
        "workload": test.workload,
        "nodes": list(test.nodes),
        "versions": dict(test.versions),
        "options": dict(test.options),
        "answers": list(test.answers),
        "refusals": list(test.refusals),
        "log_texts": list(test.log_texts),
        "left_out": left_out_document(test.left_out),
        "defaults": defaults_document(test.defaults),
        "thresholds": [str(each) for each in test.thresholds],
        "suite": None if test.suite is None else suite_case_document(test.suite),
        "artifact": artifact_document(test.artifact),
    }


def artifact_document(artifact: Provenance | None) -> Value:
    """Returns what the system has built, for `test.json` and `results.json`."""
    return None if artifact is None else artifact.document()


def artifact_from(document: Value) -> Provenance | None:
    """Reads a document of `artifact_document`; files of earlier versions have none.

    Raises:
        BadRecord: It is not such a document.
    """
    try:
        return None if document is None else Provenance.of(document)
    except ValueError as error:
        raise BadRecord(f"artifact: {error}") from error


def left_out_document(left_out: Mapping[str, str]) -> list[Value]:
    """Returns the kinds that were left out, for `test.json` and `results.json`."""
    return [{"kind": kind, "reason": reason} for kind, reason in left_out.items()]


def defaults_document(defaults: Mapping[str, Value] | None) -> Value:
    """Returns the file of defaults and the options that it set, for `test.json` and `results.json`."""
    return None if defaults is None else {"file": str(defaults["file"]), "options": dict(defaults["options"])}


def suite_case_document(case: SuiteCase) -> dict[str, Value]:
    """Returns the case of a suite, for `test.json`."""
    return {
        "name": case.suite,
        "case": case.case,
        "line": case.line,
        "expect": str(case.expectation.verdict),
        "expect_during_fault": case.expectation.during_fault,
        "known_failures": sorted(case.expectation.known_failures),
        "expect_parts": sorted(case.expectation.parts),
    }


def suite_case_from(document: Value) -> SuiteCase:
    """Reads a document of `suite_case_document`.

    Raises:
        BadRecord: It is not such a document.
    """
    members = must.mapping(document, "suite")

    def of(name: str) -> Value:
        return must.member(members, name)

    return SuiteCase(
        suite=must.text(of("name"), "suite.name"),
        case=must.text(of("case"), "suite.case"),
        line=must.text(of("line"), "suite.line"),
        expectation=Expectation(
            verdict=must.one_of(of("expect"), Verdict, "suite.expect"),
            during_fault=must.flag(of("expect_during_fault"), "suite.expect_during_fault"),
            known_failures=frozenset(must.texts(of("known_failures"), "suite.known_failures")),
            parts=frozenset(must.texts(of("expect_parts"), "suite.expect_parts")),
        ),
    )


def _defaults(document: Value) -> Value:
    """Reads a document of `defaults_document`."""
    if document is None:
        return None
    members = must.mapping(document, "defaults")
    return {
        "file": must.text(must.member(members, "file"), "defaults.file"),
        "options": must.mapping(must.member(members, "options"), "defaults.options"),
    }


def _thresholds(value: Value) -> tuple[Threshold, ...]:
    """Reads thresholds; earlier versions have none."""
    try:
        return tuple(read_threshold(text) for text in must.texts(value, "thresholds"))
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

    def of(name: str) -> Value:
        return must.member(document, name)

    def listed(name: str) -> Value:
        return document.get(name, [])

    try:
        return TestInfo(
            name=must.text(of("name"), "name"),
            seed=must.whole(of("seed"), "seed"),
            reproduce=must.text(of("reproduce"), "reproduce"),
            started_utc=must.instant(of("started"), "started"),
            system=must.text(of("system"), "system"),
            workload=must.text(of("workload"), "workload"),
            nodes=must.texts(of("nodes"), "nodes"),
            versions={
                name: must.text(version, f"versions.{name}")
                for name, version in must.mapping(of("versions"), "versions").items()
            },
            options=must.mapping(of("options"), "options"),
            answers=must.texts(of("answers"), "answers"),
            refusals=must.texts(listed("refusals"), "refusals"),
            log_texts=must.texts(listed("log_texts"), "log_texts"),
            left_out={
                must.text(must.member(left, "kind"), "left_out.kind"): must.text(
                    must.member(left, "reason"), "left_out.reason"
                )
                for left in (must.mapping(each, "left_out") for each in must.listed(listed("left_out"), "left_out"))
            },
            defaults=_defaults(document.get("defaults")),
            thresholds=_thresholds(listed("thresholds")),
            suite=None if document.get("suite") is None else suite_case_from(document["suite"]),
            artifact=artifact_from(document.get("artifact")),
        )
    except BadRecord as error:
        raise BadRecord(f"{where}: {error}") from error
