"""The record of a run: one value from which every file, page and sentence about the run is made.

The record is made when a run ends, and can be read again from the run's folder: the test from `test.json`, the operations from
`history.jsonl`, and the rest from `results.json`. So another machine can make the same report again.

`TestInfo` and `Observations` are the members of the two files. A new field of them, or of a type that they hold, is written,
read, checked and described in the schema without further code.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence  # noqa: TC003 - members are read by their annotations
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from harness.builds import Provenance  # noqa: TC001 - members are read by their annotations
from harness.console.members import Duration, Instant, Whole, read, written
from harness.faults import FaultRecord  # noqa: TC001 - members are read by their annotations
from harness.node_clocks import Clocks  # noqa: TC001 - members are read by their annotations
from harness.op import Value  # noqa: TC001 - likewise
from harness.phases import Phase  # noqa: TC001 - likewise
from harness.promise import PromiseTested  # noqa: TC001 - likewise
from harness.suites.expectation import Expectation, SuiteCase
from harness.suites.thresholds import Threshold  # noqa: TC001 - members are read by their annotations
from harness.switch import ConnectionNote  # noqa: TC001 - members are read by their annotations
from harness.watch import Positions, Sighting
from harness.world import Execution  # noqa: TC001 - members are read by their annotations
from results.measure.op_outcomes import Codes
from results.store.errors import BadRecord

if TYPE_CHECKING:
    from harness.op import Operation
    from harness.verdict import Part

TEST_FORMAT: Final = "labrys-test"
TEST_VERSION: Final = 2
WORLD = "world"  # of the timings


@dataclass(frozen=True, slots=True, kw_only=True)
class TestInfo:
    """A test before its run; `test.json` has its members.

    Attributes:
        name: The test's name, and the name of its folder in the store.
        seed: The root seed.
        reproduce: The command that runs the same test again.
        started_utc: The time of its start.
        system: The system under test, e.g. `my-store`.
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
        tested: Which promise the run tests, and who makes it; None if nobody asked.
    """

    __test__ = False  # not a test class of pytest

    name: str
    seed: Whole
    reproduce: str
    started_utc: Instant
    system: str
    workload: str
    nodes: tuple[str, ...]
    versions: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, Value] = field(default_factory=dict)
    answers: tuple[str, ...] = ()
    refusals: tuple[str, ...] = ()
    log_texts: tuple[str, ...] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)
    defaults: Mapping[str, Value] | None = None
    thresholds: tuple[Threshold, ...] = ()
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
    def software(self) -> str:
        """Returns the name of the program under test: the longest name with a version that the system's name begins with.

        `my-store-log` may be a view or a part of `my-store`. Without such a name, the name of the system.
        """
        names = [name for name in self.versions if f"{self.system}-".startswith(f"{name}-")]
        return max(names, key=len) if names else self.system

    @property
    def system_version(self) -> str | None:
        """Returns the version of the program under test; None if it is unknown."""
        return self.versions.get(self.software)

    @property
    def codes(self) -> Codes:
        """Returns the meaning of error codes for availability."""
        return Codes(answers=frozenset(self.answers), refusals=frozenset(self.refusals))


@dataclass(frozen=True, slots=True, kw_only=True)
class Observations:
    """What was observed of a run beside its operations; `results.json` has these members as they are.

    Times in nanoseconds are on the run's clock, which begins with the workload. Null always means: not observed.

    Attributes:
        duration_s: From the run's start to its verdict.
        faults: The record of each fault that began, or should have begun, in the order of the plan.
        sightings: The reported states of the nodes until the replicas were compared: only changes, in the order of time.
        other_sightings: The same of other services and groups; see `harness.watch.Watch`.
        positions: How many log entries each node had applied, poll by poll.
        clocks: The clocks of the nodes at the start of the workload; null if they are unknown.
        connections: What happened to the connections between nodes, in steps of 0.1 s; null if no switch carried their packets.
        execution: What the programs of a simulated world did; null if there are none.
        timings: Name of a stage to seconds, e.g. `ready`, `workload`, `check`; `world` is the time of the world at the start of
            the workload.
        phases: The phases of the run with their times. Phases can overlap.
        problems: Problems besides the test itself, as sentences.
    """

    duration_s: Duration
    faults: Sequence[FaultRecord] = ()
    sightings: Sequence[Sighting] = ()
    other_sightings: Mapping[str, Sequence[Sighting]] = field(default_factory=dict)
    positions: Positions = field(default_factory=Positions)
    clocks: Clocks | None = None
    connections: Sequence[ConnectionNote] | None = None
    execution: Execution | None = None
    timings: Mapping[str, Duration] = field(default_factory=dict)
    phases: Sequence[Phase] = ()
    problems: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord(Observations):
    """The record of a finished run: what was observed, its test, its verdict, and its operations.

    Attributes:
        test: The test.
        parts: The parts of the verdict, in the order for a reader.
        operations: The client operations, in the order of their invokes, with the final phase.
    """

    test: TestInfo
    parts: Sequence[Part]
    operations: Sequence[Operation] = ()

    def all_sightings(self) -> dict[str | None, Sequence[Sighting]]:
        """Returns `sightings` by None, and `other_sightings` by service and group."""
        sightings: dict[str | None, Sequence[Sighting]] = {None: self.sightings}
        return sightings | dict(self.other_sightings)

    def service_of(self, fault: FaultRecord) -> str | None:
        """Returns the service that a fault affects, if `other_sightings` has it; else None."""
        role = fault.planned.role
        return role if role in self.other_sightings else None


def test_document(test: TestInfo) -> dict[str, Value]:
    """Returns the document of `test.json`."""
    members: dict[str, Value] = written(test)
    return {"format": TEST_FORMAT, "version": TEST_VERSION, **members}


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
            f"{where}: expected version {TEST_VERSION}, got {document.get('version')!r}; use the labrys that wrote it"
        )
    try:
        return read(document, TestInfo, "", error=BadRecord)
    except BadRecord as error:
        raise BadRecord(f"{where}: {error}") from error
