"""Everything a finished run has to say, as one value; every file, page and sentence about a run is made from it alone.

It is put together once, when a run ends, and can be put together again from the run's folder: what was asked for from
`test.json`, the operations from `history.jsonl`, all else from `results.json`. So a report can be made anew, by a later
version, on another machine, and says the same.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from harness.expectation import Expectation, SuiteCase
from harness.verdict import Verdict
from harness.watch import Positions
from results import members as must
from results.availability import Codes
from results.errors import BadRecord

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness.faults import FaultRecord
    from harness.op import Operation, Value
    from harness.verdict import Part
    from harness.watch import Sighting

TEST_FORMAT = "labrys-test"
TEST_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class TestInfo:
    """What is known of a test before it runs; `test.json` holds it.

    Attributes:
        name: The test's name, which is also its folder's in the store.
        seed: The root seed.
        reproduce: The command that runs the same again.
        started_utc: When it began.
        system: The system under test, e.g. `dledger`.
        workload: E.g. `register`.
        nodes: The nodes' names, in order.
        versions: Of Labrys and of what it tests.
        options: Every option of the test with its value.
        answers: Codes of `fail` errors that a working system gives as an answer, such as a compare-and-set that did not
            match; they count as availability.
        refusals: Codes of `fail` errors by which a node names another to ask; availability counts them apart.
        left_out: Kinds of faults that were asked for by `all` and are not in the plan, each with the reason.
        defaults: The `file` of defaults and the `options` that it decided; None if it decided none.
        suite: The case of a suite that it is, with what the suite expects of it; None if no suite runs it.
    """

    __test__ = False  # not a test class, whatever its name begins with

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
    left_out: Mapping[str, str] = field(default_factory=dict)
    defaults: Mapping[str, Value] | None = None
    suite: SuiteCase | None = None

    @property
    def codes(self) -> Codes:
        """Returns what codes of errors mean for availability."""
        return Codes(answers=frozenset(self.answers), refusals=frozenset(self.refusals))


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """What a run left, checked.

    Attributes:
        test: What was asked for.
        duration_s: From the run's start to its verdict.
        parts: The parts of the verdict, in the order in which a reader should see them.
        faults: What became of each fault that began, or should have.
        operations: The client operations, in the order of their invokes, final phase included.
        sightings: What the nodes said about themselves, changes only, in the order of time.
        positions: How far each node had applied the log, poll by poll.
        timings: Name of a stage to seconds, e.g. `ready`, `workload`, `check`.
        problems: What went wrong beside the test itself, as sentences.
    """

    test: TestInfo
    duration_s: float
    parts: Sequence[Part]
    faults: Sequence[FaultRecord] = ()
    operations: Sequence[Operation] = ()
    sightings: Sequence[Sighting] = ()
    positions: Positions = field(default_factory=Positions)
    timings: Mapping[str, float] = field(default_factory=dict)
    problems: Sequence[str] = ()


def test_document(test: TestInfo) -> dict[str, Value]:
    """Returns what `test.json` says."""
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
        "left_out": left_out_document(test.left_out),
        "defaults": defaults_document(test.defaults),
        "suite": None if test.suite is None else suite_case_document(test.suite),
    }


def left_out_document(left_out: Mapping[str, str]) -> list[Value]:
    """Returns the kinds that were left out, as `test.json` and `results.json` say them."""
    return [{"kind": kind, "reason": reason} for kind, reason in left_out.items()]


def defaults_document(defaults: Mapping[str, Value] | None) -> Value:
    """Returns what a file of defaults decided, as `test.json` and `results.json` say it."""
    return None if defaults is None else {"file": str(defaults["file"]), "options": dict(defaults["options"])}


def suite_case_document(case: SuiteCase) -> dict[str, Value]:
    """Returns a case of a suite, as `test.json` says it."""
    return {
        "name": case.suite,
        "case": case.case,
        "line": case.line,
        "expect": str(case.expectation.verdict),
        "expect_during_fault": case.expectation.during_fault,
        "known_failures": sorted(case.expectation.known_failures),
        "expect_parts": sorted(case.expectation.parts),
    }


def suite_case_from(told: Value) -> SuiteCase:
    """Reads what `suite_case_document` wrote.

    Raises:
        BadRecord: It is not such a document.
    """
    members = must.mapping(told, "suite")

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


def _defaults(told: Value) -> Value:
    """Reads what `defaults_document` wrote."""
    if told is None:
        return None
    members = must.mapping(told, "defaults")
    return {
        "file": must.text(must.member(members, "file"), "defaults.file"),
        "options": must.mapping(must.member(members, "options"), "defaults.options"),
    }


def test_from_document(document: Value, where: str) -> TestInfo:
    """Returns the test that `test.json` describes.

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

    def either(name: str) -> Value:
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
            refusals=must.texts(either("refusals"), "refusals"),
            left_out={
                must.text(must.member(left, "kind"), "left_out.kind"): must.text(
                    must.member(left, "reason"), "left_out.reason"
                )
                for left in (must.mapping(each, "left_out") for each in must.listed(either("left_out"), "left_out"))
            },
            defaults=_defaults(document.get("defaults")),
            suite=None if document.get("suite") is None else suite_case_from(document["suite"]),
        )
    except BadRecord as error:
        raise BadRecord(f"{where}: {error}") from error
