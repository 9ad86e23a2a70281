"""JUnit: one case per part, unknown is never green, and any text gives well-formed XML."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st

from harness.errors import ExitCode
from harness.suites.case import Case
from harness.verdict import Part, Verdict
from results.stored.document import build
from results.stored.junit import junit_xml, of_cases, of_run
from tests.cases import case_result

if TYPE_CHECKING:
    from harness.suites.case_result import CaseResult
    from results.record.record import RunRecord


def parsed(text: str) -> ET.Element:
    """Reads the document."""
    return ET.fromstring(text.encode())  # noqa: S314 - our own document


def test_each_part_is_a_case(stale_record: RunRecord) -> None:
    """Invalid fails, unknown is an error, valid passes; counts and reproduce line are there."""
    root = parsed(junit_xml([of_run(stale_record, build(stale_record))]))
    (suite,) = root.findall("testsuite")
    assert [case.get("name") for case in suite.findall("testcase")] == [part.name for part in stale_record.parts]
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("6", "1", "1")
    failed = suite.find("testcase/failure")
    assert failed is not None
    assert failed.get("message") == stale_record.parts[0].reason
    output = suite.findtext("system-out")
    assert output is not None
    assert output.startswith(f"reproduce: {stale_record.test.reproduce}\navailability: ")
    assert "fault 0, " in output
    assert [p.get("value") for p in suite.findall("properties/property")][:2] == [
        str(stale_record.test.seed),
        stale_record.test.reproduce,
    ]


def test_an_extra_part_that_is_unknown_is_skipped(valid_record: RunRecord) -> None:
    """The build stays green, and the reason is readable. An invalid part fails."""
    reason = "The budget ended."
    for verdict, tag in ((Verdict.UNKNOWN, "skipped"), (Verdict.INVALID, "failure")):
        part = Part(name="order-agrees", verdict=verdict, reason=reason, extra=True)
        record = replace(valid_record, parts=[Part(name="linearizable", verdict=Verdict.VALID, reason="Fine."), part])
        root = parsed(junit_xml([of_run(record, build(record))]))
        counts = {name: root.get(name) for name in ("tests", "failures", "errors", "skipped")}
        assert counts == {"tests": "2", "failures": "0", "errors": "0", "skipped": "0"} | {
            "failures" if tag == "failure" else tag: "1"
        }
        element = root.find(f".//testcase/{tag}")
        assert element is not None
        assert (element.get("message"), element.text) == (reason, reason)


@given(st.text(), st.text())
def test_any_text_makes_well_formed_xml(valid_record: RunRecord, name: str, reason: str) -> None:
    """Control characters, lone surrogates and markup come from systems under test."""
    part = Part(name=name, verdict=Verdict.INVALID, reason=reason)
    record = replace(valid_record, parts=[part])
    root = parsed(junit_xml([of_run(record, build(record))]))
    assert root.get("failures") == "1"


def test_an_expected_verdict_passes() -> None:
    """A negative control that is found invalid is a success; with any other verdict it fails."""

    def result(exit_code: int) -> CaseResult:
        case = Case(
            reproduce="labrys suite s.toml --only c --seed 7",
            name="c",
            test="t",
            options={"read-mode": "unsafe"},
            seed=7,
            expect=Verdict.INVALID,
        )
        return case_result(case, exit_code, "because", seconds=1.5)

    codes = (ExitCode.INVALID, ExitCode.VALID, ExitCode.UNKNOWN, ExitCode.INTERNAL)
    suite = of_cases("nightly", [result(code) for code in codes])
    assert [case.problem for case in suite.cases] == [None, "failure", "error", "error"]
    root = parsed(junit_xml([suite]))
    assert [case.reason for case in suite.cases] == [
        "because", "valid, expected invalid: because", "unknown, expected invalid: because", "because"
    ]  # fmt: skip
    assert "labrys suite s.toml --only c --seed 7" in (root.findtext(".//testcase/system-out") or "")
