"""A suite file gives cases; their names, options and seeds depend only on the file and the seed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
import pytest

from harness.errors import ExitCode, InputError
from harness.suites.case_result import exit_code
from harness.suites.suite import load_suite
from harness.verdict import Verdict
from tests.cases import case_result

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def known(_: Mapping[str, object]) -> dict[str, click.ParamType[Any]]:
    """Returns the types of the options of cases, for any system."""
    return dict.fromkeys(("seed", "time-limit", "nemesis", "read-mode", "final-reads"), click.STRING)


SUITE = """
name = "nightly"
[defaults]
time-limit = 60
[[test]]
name = "faults"
nemesis = ["kill", "pause"]
final-reads = false
repeat = 2
[[test]]
name = "control"
read-mode = "unsafe"
expect = "invalid"
"""


MATRIX = """
[[test]]
name = "reads"
time-limit = 5
nemesis = ["kill", "pause"]
final-reads = [true, false]
"""


def write(tmp_path: Path, text: str) -> Path:
    """Writes a suite file."""
    path = tmp_path / "suite.toml"
    path.write_text(text)
    return path


def test_lists_are_dimensions_and_defaults_are_overridden(tmp_path: Path) -> None:
    """Each repetition of each combination is a case with its own seed."""
    suite = load_suite(write(tmp_path, SUITE), seed=7, known=known)

    assert [case.name for case in suite.cases] == [
        "faults[nemesis=kill]#1",
        "faults[nemesis=kill]#2",
        "faults[nemesis=pause]#1",
        "faults[nemesis=pause]#2",
        "control",
    ]
    assert len({case.seed for case in suite.cases}) == 5
    first = suite.cases[0].arguments()
    assert first[:2] == ["test", "--seed"]
    assert first[3:] == ["--time-limit", "60", "--nemesis", "kill", "--no-final-reads"]


def test_a_suite_expects_something_else_of_some_combinations(tmp_path: Path) -> None:
    """Each table [[test.where]] applies to the combinations with its values, and a later one replaces an earlier one."""
    text = f"""{MATRIX}
thresholds = ["p99_ms < 200"]
[[test.where]]
nemesis = ["kill", "pause"]
final-reads = false
expect = "invalid"
expect-parts = ["linearizable"]
[[test.where]]
nemesis = "pause"
final-reads = false
expect = "unknown"
expect-parts = []
thresholds = []
"""
    cases = load_suite(write(tmp_path, text), seed=7, known=known).cases
    assert [(case.name, case.expect, sorted(case.expect_parts), len(case.thresholds)) for case in cases] == [
        ("reads[nemesis=kill,final-reads=true]", Verdict.VALID, [], 1),
        ("reads[nemesis=kill,final-reads=false]", Verdict.INVALID, ["linearizable"], 1),
        ("reads[nemesis=pause,final-reads=true]", Verdict.VALID, [], 1),
        ("reads[nemesis=pause,final-reads=false]", Verdict.UNKNOWN, [], 0),
    ]
    assert "--no-final-reads" in cases[1].arguments()


def test_a_new_case_changes_no_seed(tmp_path: Path) -> None:
    """The seed of a case depends only on the seed of the suite and the name of the case."""
    before = load_suite(write(tmp_path, SUITE), seed=7, known=known)
    more = SUITE.replace('["kill", "pause"]', '["bridge", "kill", "pause"]')
    after = load_suite(write(tmp_path, more), seed=7, known=known)

    seeds = {case.name: case.seed for case in after.cases}
    assert all(seeds[case.name] == case.seed for case in before.cases)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[tests]]", "Did you mean 'test'"),
        ("name = 'x'", r"at least one table \[\[test\]\]"),
        ("[[test]]\nnemesis = 'kill'", "expected a name"),
        ("[[test]]\nname = 'a'\nnemsis = 'kill'", "Did you mean 'nemesis'"),
        ("[[test]]\nname = 'a'\nseed = 'x'", "seed takes a whole number"),
        ("[[test]]\nname = 'a'\nrepeat = 0", "repeat takes"),
        ("[[test]]\nname = 'a'\nrepeat = 99999999999", "repeat takes a whole number from 1 to 10000"),
        ("[[test]]\nname = 'a'\nrepeat = 5000\ntime-limit = [1, 2, 3]", "more than 10000 cases"),
        ("[[test]]\nname = 'a'\nrepeat = 6000\n[[test]]\nname = 'b'\nrepeat = 6000", "more than 10000 cases"),
        ("test = [1]", r"at least one table \[\[test\]\]"),
        ("name = 5\n[[test]]\nname = 'a'", "name takes a printable text"),
        ("[[test]]\nname = '" + "x" * 300 + "'", "expected a name, which is a printable text of 1 to 60"),
        ("[[test]]\nname = 'a'\nexpect = []", "expect takes"),
        ("[[test]]\nname = 'a'\ntime-limit = nan", "expected a finite number"),
        ("[[test]]\nname = 'a'\nexpect = 'good'", "expect takes"),
        ("[[test]]\nname = 'a'\nexpect-during-fault = true", 'needs expect = "invalid", and valid is expected'),
        ("[[test]]\nname = 'a'\nexpect = 'invalid'\nexpect-during-fault = 1", "takes true or false, not 1"),
        (
            "[[test]]\nname = 'a'\nmatrix = {nemesis = ['kill']}",
            r'makes a case of each value, e.g. nemesis = \["kill", "pause"\]',
        ),
        ("[[test]]\nname = 'a'\nnemesis = {}", "takes a value"),
        ("[[test]]\nname = 'a'\nnemesis = []", "nemesis has an empty list, which gives no case"),
        ("[defaults]\nnemesis = []\n[[test]]\nname = 'a'", "nemesis has an empty list"),
        ("[[test]]\nname = 'a'\nthresholds = 'p99_ms < 3'", "thresholds takes a list such as"),
        ("[[test]]\nname = 'a'\nthresholds = ['p99 < 3']", "Did you mean 'p99_ms'"),
        ("[[test]]\nname = 'a'\nknown-failures = ['recovered']", "takes a list of PART=invalid"),
        ("[[test]]\nname = 'a'\n[[test]]\nname = 'a'", "two cases are named 'a'"),
        ("[[test]", "cannot be read as TOML"),
        ("[[test]]\nname = 'a'\nwhere = 'x'", r"expected tables \[\[test.where\]\]"),
        ("[[test]]\nname = 'a'\n[[test.where]]\nexpect = 'invalid'", "expected a value of a dimension"),
        (MATRIX + "[[test.where]]\nnemesis = 'kill'", "expected a value of a dimension"),
        (MATRIX + "[[test.where]]\ntime-limit = 2\nexpect = 'invalid'", "'time-limit' is neither an expectation nor"),
        (MATRIX + "[[test.where]]\nnemesis = 'crash'\nexpect = 'invalid'", "where 1: nemesis takes values of the test"),
        (MATRIX + "[[test.where]]\nnemesis = 'kill'\nexpect = 'bad'", "where 1: expect takes valid"),
        (
            MATRIX + "[[test.where]]\nnemesis = 'kill'\nexpect-parts = ['a']",
            'where 1: expect-parts needs expect = "invalid"',
        ),
    ],
)
def test_a_bad_suite_is_refused(tmp_path: Path, text: str, message: str) -> None:
    """The error has the expectation."""
    with pytest.raises(InputError, match=message):
        load_suite(write(tmp_path, text), seed=7, known=known)


@pytest.mark.parametrize(
    ("codes", "expected"),
    [
        ([0, 0, 1], ExitCode.VALID),  # the control is expected to be invalid
        ([0, 2, 1], ExitCode.UNKNOWN),
        ([0, 255, 1], ExitCode.INTERNAL),
        ([1, 2, 255], ExitCode.INVALID),
        ([0, 0, 0], ExitCode.INVALID),  # a control that finds nothing has failed
    ],
)
def test_the_worst_case_decides_the_exit_code(tmp_path: Path, codes: list[int], expected: ExitCode) -> None:
    """The order is: unexpected verdict, error, unknown, valid."""
    suite = load_suite(write(tmp_path, SUITE), seed=7, known=known)
    cases = [suite.cases[0], suite.cases[2], suite.cases[4]]
    results = [case_result(case, code) for case, code in zip(cases, codes, strict=True)]

    assert exit_code(results) is expected


@pytest.mark.parametrize(
    ("code", "failures", "passed"),
    [
        (1, ["recovered=invalid"], True),
        (1, ["recovered=invalid", "replicas-equal=unknown"], True),
        (2, ["replicas-equal=unknown"], True),
        (1, ["recovered=invalid", "replicas-equal=invalid"], False),
        (1, ["linearizable=invalid", "recovered=invalid"], False),
        (1, [], False),
        (255, ["recovered=invalid"], False),
    ],
)
def test_only_known_failures_may_fail(tmp_path: Path, code: int, failures: list[str], passed: bool) -> None:
    """A case passes if it has only known failures; a run that broke off never passes."""
    text = SUITE.replace("time-limit = 60", "known-failures = ['recovered=invalid', 'replicas-equal=unknown']")
    suite = load_suite(write(tmp_path, text), seed=7, known=known)
    result = case_result(suite.cases[0], code, failures=failures)
    assert result.passed is passed
    control = case_result(suite.cases[4], 2, failures=failures)
    assert not control.passed


@pytest.mark.parametrize(
    ("code", "seen", "problem"),
    [
        (1, 1, None),
        (1, 0, "invalid, but no violation was seen during or after a fault"),
        (1, None, "invalid, but it is unknown whether a violation was seen during or after a fault"),
        (0, 0, None),
        (2, 3, None),
    ],
)
def test_a_control_of_a_fault_is_invalid_by_the_fault(
    tmp_path: Path, code: int, seen: int | None, problem: str | None
) -> None:
    """With `expect-during-fault` an invalid verdict passes only with a violation during or after a fault."""
    asked = SUITE.replace('expect = "invalid"', 'expect = "invalid"\nexpect-during-fault = true')
    (*_, control) = load_suite(write(tmp_path, asked), seed=7, known=known).cases
    assert control.expect_during_fault
    assert "during" not in " ".join(control.arguments())
    result = case_result(control, code, "Why.", fault_violations=seen)
    assert result.passed is (code == 1 and problem is None)
    assert result.why == ("Why." if problem is None else f"{problem}: Why.")
    (*_, plain) = load_suite(write(tmp_path, SUITE), seed=7, known=known).cases
    assert case_result(plain, 1, fault_violations=seen).passed
