"""JUnit's XML of verdicts, for CI servers.

A run is a test suite, and each part of its verdict is a test case. `invalid` is a failure and `unknown` is an error, so neither
lets a build pass. An extra part that is unknown is skipped. Every suite has its reproduce line, as a property and in
`system-out`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC
from typing import TYPE_CHECKING
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from harness.console.plain import plain
from harness.faults import called
from harness.outcome import failures
from harness.verdict import Verdict
from results.stored.reading import verdict_from
from results.words.formatting import availability, fault_availability, pretty

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime

    from harness.op import Value
    from harness.suites.case_result import CaseResult
    from results.record.record import RunRecord, TestInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class JunitCase:
    """One test case.

    Attributes:
        name: Its name.
        group: The class of JUnit: the test, or the suite and the test.
        problem: None if it passed, else `failure`, `error` or `skipped`.
        reason: The sentence.
        output: Further text, such as the reproduce line.
        seconds: Its duration; None if it is unknown.
    """

    name: str
    group: str
    problem: str | None
    reason: str
    output: str = ""
    seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JunitSuite:
    """One test suite.

    Attributes:
        name: Its name.
        cases: Its cases.
        seconds: Its duration.
        started_utc: Its start; None if it is unknown.
        properties: E.g. seed and versions.
        output: Further text, such as the reproduce line.
    """

    name: str
    cases: Sequence[JunitCase]
    seconds: float
    started_utc: datetime | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    output: str = ""


def of_run(record: RunRecord, document: Mapping[str, Value]) -> JunitSuite:
    """Returns the suite of one run, a case for each part of its verdict.

    Args:
        record: The run's record.
        document: The document of `results.json`, built from the same record.
    """
    test = record.test
    example = document["counterexample"]
    return JunitSuite(
        name=test.name,
        cases=[
            *(_of_threshold(row, test) for row in document["thresholds"]),
            *(
                JunitCase(
                    name=part.name,
                    group=test.name,
                    problem=_PROBLEMS[part.verdict] if part.decides else _SKIPPED,
                    reason=part.reason,
                    output=f"reproduce: {test.reproduce}"
                    + (
                        f"\n\ncounterexample: {pretty(example)}"
                        if example and part.details.get("counterexample")
                        else ""
                    ),
                )
                for part in record.parts
            ),
        ],
        seconds=record.duration_s,
        started_utc=test.started_utc,
        properties={
            "seed": str(test.seed),
            "reproduce": test.reproduce,
            "availability": availability(document["availability"]),
            **{f"version.{name}": version for name, version in test.versions.items()},
        },
        output="\n".join([f"reproduce: {test.reproduce}", *_availability_lines(document)]),
    )


def _of_threshold(row: Mapping[str, Value], test: TestInfo) -> JunitCase:
    return JunitCase(
        name=f"threshold {row['threshold']}",
        group=test.name,
        problem=_PROBLEMS[verdict_from(row["kept"])],
        reason=f"crossed the threshold {row['crossed']}" if row["crossed"] else f"it is {row['measured']:.6g}",
        output=f"reproduce: {test.reproduce}",
    )


def _availability_lines(document: Mapping[str, Value]) -> Iterator[str]:
    """Yields the availability over the run, and around each fault."""
    yield f"availability: {availability(document['availability'])}"
    for fault in document["faults"]:
        if fault["availability"] is not None:
            planned = fault["planned"]
            kind = called(planned["kind"], planned["role"])
            what = f"fault {planned['id']}, {kind} of {', '.join(fault['targets']) or 'no node'}"
            yield f"{what}: {fault_availability(fault['availability'])}"


def of_cases(name: str, results: Sequence[CaseResult]) -> JunitSuite:
    """Returns the JUnit suite of a Labrys suite, a case for each run; a run with the expected verdict passes."""
    cases = []
    for result in results:
        problem = None
        if not result.passed:
            problem = "error" if result.verdict is None or result.undecided else "failure"
        where = f"\nrun: {result.run}" if result.run else ""
        where += f"\nfailed, as known: {', '.join(failures(result.outcome.parts))}" if result.failed_as_known else ""
        where += f"\nleft out of the faults: {', '.join(result.left_out)}" if result.left_out else ""
        cases.append(
            JunitCase(
                name=result.case.name,
                group=f"{name}.{result.case.test}",
                problem=problem,
                reason=result.message,
                output=f"reproduce: {result.case.reproduce}{where}",
                seconds=result.seconds,
            )
        )
    return JunitSuite(name=name, cases=cases, seconds=sum(result.seconds for result in results))


_SKIPPED = "skipped"
_PROBLEMS = {Verdict.VALID: None, Verdict.INVALID: "failure", Verdict.UNKNOWN: "error"}


def junit_xml(suites: Sequence[JunitSuite]) -> str:
    """Returns the XML document."""
    root = Element("testsuites", {"name": "labrys", **_totals([case for suite in suites for case in suite.cases])})
    for suite in suites:
        root.append(_suite(suite))
    indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + tostring(root, encoding="unicode") + "\n"


def _totals(cases: Sequence[JunitCase]) -> dict[str, str]:
    return {
        "tests": str(len(cases)),
        "failures": str(sum(case.problem == "failure" for case in cases)),
        "errors": str(sum(case.problem == "error" for case in cases)),
        "skipped": str(sum(case.problem == _SKIPPED for case in cases)),
    }


def _suite(suite: JunitSuite) -> Element:
    attributes = {"name": plain(suite.name), **_totals(suite.cases), "time": f"{suite.seconds:.3f}"}
    element = Element("testsuite", attributes)
    if suite.started_utc is not None:
        element.set("timestamp", f"{suite.started_utc.astimezone(UTC):%Y-%m-%dT%H:%M:%S}")
    if suite.properties:
        properties = SubElement(element, "properties")
        for name, value in suite.properties.items():
            SubElement(properties, "property", name=plain(name), value=plain(value))
    for case in suite.cases:
        child = SubElement(element, "testcase", name=plain(case.name), classname=plain(case.group))
        if case.seconds is not None:
            child.set("time", f"{case.seconds:.3f}")
        if case.problem is not None:
            reason = plain(case.reason)
            attributes = {"message": reason} if case.problem == _SKIPPED else {"message": reason, "type": case.problem}
            SubElement(child, case.problem, attributes).text = reason
        if case.output:
            SubElement(child, "system-out").text = plain(case.output)
    if suite.output:
        SubElement(element, "system-out").text = plain(suite.output)
    return element
